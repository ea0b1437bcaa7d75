"""What a drive must do on its controller, by the files; and which tests that selects."""

from pathlib import Path

import pytest

from leadline.inventory.matrix import Matrix, load_matrix
from leadline.inventory.must import Must, must_of, overlooked
from leadline.inventory.plan import Cell
from selftests.vendor import RIG, run, vendor

__all__ = ["vendor"]  # a fixture

MATRIX = """\
classes: {}
controllers:
  - {name: chipset, pci_id: "1002:4391", driver: ahci, ncq: required, max_queue_depth: 31,
     link_gbps: 3, quirks: [nopmp],
     must_not_queue: [{model: "ACME 8*", firmware: "2.?", source: bug 203475}]}
  - {name: ide, pci_id: "8086:7010", driver: ata_piix, ncq: none}
  - {name: plain, pci_id: "8086:a282", driver: ahci}
models:
  - model: ACME 860
    class: ssd
    protocol: sata
    queue_depth: 32
    quirks: [noncqtrim]
    firmware: [{revision: "1.0", status: released}, {revision: "2.0", status: released}]
  - model: ACME 990
    class: ssd
    protocol: sata
    queue_depth: 32
    controllers: [chipset]
    firmware: [{revision: "1.0", status: released}]
  - model: ACME 900
    class: ssd
    protocol: sata
    queue_depth: 32
    firmware: [{revision: "2.0", status: released}]
"""


@pytest.fixture
def matrix(tmp_path: Path) -> Matrix:
    (tmp_path / "matrix.yaml").write_text(MATRIX)
    return load_matrix(tmp_path / "matrix.yaml")


def cell(model: str, firmware: str, controller: str) -> Cell:
    return Cell("bench", "slot1", model, firmware, controller)


def test_a_drive_must_queue_as_deep_and_as_fast_as_its_controller_must(matrix: Matrix) -> None:
    assert must_of(matrix, cell("ACME 860", "1.0", "chipset")) == Must(
        "required", 31, 3.0, ("noncqtrim", "nopmp")
    )


def test_a_known_pair_must_not_queue_and_the_kernel_is_to_know_it(matrix: Matrix) -> None:
    must = must_of(matrix, cell("ACME 860", "2.0", "chipset"))
    assert (must.ncq, must.source) == ("none", f"bug 203475 ({matrix.path}:5)")
    assert must.quirks == ("noncqtrim", "nopmp", "noncq")
    assert must_of(matrix, cell("ACME 900", "2.0", "chipset")).ncq == "required"


def test_no_drive_queues_on_a_controller_that_cannot(matrix: Matrix) -> None:
    must = must_of(matrix, cell("ACME 860", "1.0", "ide"))
    assert must.ncq == "none"
    assert must.source == f"controller ide has `ncq: none` ({matrix.path}:6)"
    assert must.quirks == ("noncqtrim",), "the kernel need not know what cannot be"


def test_a_controller_that_cannot_queue_is_no_excuse_for_a_drive_that_is_not_meant_for_it(
    matrix: Matrix,
) -> None:
    assert must_of(matrix, cell("ACME 990", "1.0", "ide")).ncq == "required"
    assert must_of(matrix, cell("ACME 990", "1.0", "chipset")).ncq == "required"


def test_what_the_matrix_does_not_say_is_not_held_against_a_drive(matrix: Matrix) -> None:
    assert must_of(matrix, cell("ACME 900", "2.0", "plain")) == Must("required")
    assert must_of(matrix, cell("ACME 900", "2.0", "onboard")) == Must("required")
    assert must_of(matrix, cell("ACME 860", "1.0", "onboard")).quirks == ("noncqtrim",)


def test_a_controller_that_the_matrix_has_by_another_name_is_pointed_out(matrix: Matrix) -> None:
    assert overlooked(matrix, cell("ACME 860", "1.0", "onboard"), "1002:4391", "ahci") == (
        f"slot slot1 hangs on chipset of {matrix.path}, whose limits and known issues are not "
        'looked up: write `pci_id: "1002:4391"` for controller onboard of rig bench'
    )


@pytest.mark.parametrize(
    ("controller", "pci_id", "driver"),
    [("chipset", "1002:4391", "ahci"), ("onboard", "1234:5678", "ahci"), ("x", "1002:4391", "y")],
)
def test_a_controller_by_its_own_name_or_that_the_matrix_lacks_needs_no_word(
    matrix: Matrix, controller: str, pci_id: str, driver: str
) -> None:
    assert overlooked(matrix, cell("ACME 860", "1.0", controller), pci_id, driver) == ""


TESTS = """
import pytest

def test_any(visit): pass

@pytest.mark.must(ncq="required")
def test_required(visit): pass

@pytest.mark.must(ncq="none")
def test_none(visit): pass

@pytest.mark.must("max_queue_depth")
def test_depth(visit): pass

@pytest.mark.must("link_gbps", ncq="required")
def test_both(visit): pass
"""


def collected(vendor: pytest.Pytester, ahci: str) -> dict[str, list[str]]:
    """The tests that would run on each drive of the virtual rig, its AHCI controller being so."""
    text = f"""\
classes: {{}}
controllers:
  - {{name: c, pci_id: "8086:2922", driver: ahci{ahci}}}
models:
  - {{model: LEADLINE VSSD, class: ssd, protocol: sata, queue_depth: 32,
      firmware: [{{revision: "1.0", status: released}}]}}
  - {{model: LEADLINE VSCSI, class: ssd, protocol: scsi, queue_depth: 128,
      firmware: [{{revision: "1.0", status: released}}]}}
"""
    (vendor.path / "matrix.yaml").write_text(text)
    vendor.makepyfile(TESTS)
    words = (f"--rig={RIG}", "--matrix=matrix.yaml", "--collect-only", "-q")
    result = vendor.runpytest_subprocess(*words, "-p", "no:cacheprovider")
    found: dict[str, list[str]] = {"VSSD": [], "VSCSI": []}
    for line in result.stdout.lines:
        for drive, names in found.items():
            if drive in line and "::test_" in line:
                names.append(line.partition("::test_")[2].partition("[")[0])
    return found


def test_tests_are_selected_by_what_the_pair_must_do(vendor: pytest.Pytester) -> None:
    silent = collected(vendor, "")
    assert silent == {"VSSD": ["any", "required"], "VSCSI": ["any", "required"]}
    queues = collected(vendor, ", ncq: required, link_gbps: 6")
    assert queues == {"VSSD": ["any", "required", "both"], "VSCSI": ["any", "required"]}
    cannot = collected(vendor, ", ncq: none, max_queue_depth: 1, link_gbps: 6")
    assert cannot == {"VSSD": ["any", "none", "depth"], "VSCSI": ["any", "required"]}


@pytest.mark.parametrize(
    ("mark", "said"),
    [
        ("must('depth')", "found 'depth', expected one of: ncq, max_queue_depth, link_gbps, "),
        ("must(NCQ='none')", "found 'NCQ', expected one of: ncq, max_queue_depth, "),
        ("protocol('SATA')", "found 'SATA', expected one of: sata, sas, scsi"),
        ("claim()", "found nothing, expected the claim's name"),
        ("drive_time('60 s')", "found ('60 s',), expected seconds, more than 0"),
    ],
)
def test_a_mark_that_cannot_be_meant_is_wrong_usage(
    vendor: pytest.Pytester, mark: str, said: str
) -> None:
    """Where it were passed over, the test would never be collected, and nobody would know."""
    vendor.makepyfile(f"import pytest\n@pytest.mark.{mark}\ndef test_any(visit): pass\n")
    result = run(vendor)
    assert result.ret == pytest.ExitCode.USAGE_ERROR
    assert f"test_any: mark {mark.partition('(')[0]}: {said}" in result.stdout.str()
    assert "Traceback" not in result.stdout.str() + result.stderr.str()
