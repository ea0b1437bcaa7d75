"""Which limit holds in a cell: from class to controller, each with its line, and by kernel."""

import argparse
import json
from pathlib import Path

import pytest

from leadline.commands import plan as command
from leadline.errors import Misuse
from leadline.inventory.fields import packaged
from leadline.inventory.matrix import Matrix, load_matrix

MATRIX = """\
classes:
  ssd:
    ratio: {at_least: 3, source: sweeps}
    ready_s:
      at_most: 10
      source: libata
  hdd:
    ratio: {at_least: 0.5, source: disks}
controllers:
  - name: slow
    pci_id: "8086:0001"
    driver: ahci
    must_not_queue:
      - {model: "MAKER*", firmware: "1.?", source: an erratum}
    max_queue_depth: 31
    link_gbps: 1.5
    quirks: []
    classes:
      ssd:
        ratio: {at_least: 1.5, source: its link}
  - {name: fast, pci_id: "8086:0001", driver: ata_piix}
models:
  - model: MAKER SSD
    class: ssd
    protocol: sata
    queue_depth: 32
    limits:
      ratio:
        at_least: 4
        source: data sheet
        kernels:
          - {kernel: 5.10.*, at_least: 2, source: a bug of that kernel}
    firmware:
      - revision: "1.0"
        status: released
      - revision: "1.1"
        status: candidate
        limits:
          ready_s: {at_most: 20, source: its notes}
        known_issues:
          - {claim: ratio, summary: It serialises., link: LINK, expires: 2001-02-03}
  - model: MAKER DISK
    class: hdd
    protocol: sata
    queue_depth: 32
    firmware:
      - {revision: "2.0", status: released}
"""
RIG = """\
rig: bench
host: {reach: local}
controllers: [{name: c, pci_id: "8086:0001", driver: DRIVER}]
drives:
  - {slot: a, model: MAKER SSD, serial: S1, firmware: "1.1", controller: c, protocol: sata}
  - {slot: b, model: MAKER DISK, serial: S2, firmware: "2.0", controller: c, protocol: sata}
"""


@pytest.fixture
def matrix(tmp_path: Path) -> Matrix:
    path = tmp_path / "matrix.yaml"
    path.write_text(MATRIX)
    return load_matrix(path)


def held(matrix: Matrix, *cell: str) -> dict[str, tuple[float | None, float | None, str]]:
    limits = matrix.limits_for(*cell)
    return {claim: (each.at_least, each.at_most, each.source) for claim, each in limits.items()}


def test_the_nearer_limit_holds_claim_by_claim(matrix: Matrix) -> None:
    assert held(matrix, "MAKER SSD") == {
        "ratio": (4, None, "data sheet"),
        "ready_s": (None, 10, "libata"),
    }
    assert held(matrix, "MAKER SSD", "1.1")["ready_s"] == (None, 20, "its notes")
    assert held(matrix, "MAKER SSD", "1.0")["ready_s"] == (None, 10, "libata")
    assert held(matrix, "MAKER SSD", "1.1", "slow")["ratio"] == (1.5, None, "its link")
    assert held(matrix, "MAKER SSD", "1.1", "fast")["ratio"] == (4, None, "data sheet")


def test_a_controllers_limits_are_of_a_class(matrix: Matrix) -> None:
    assert held(matrix, "MAKER DISK", "2.0", "slow") == {"ratio": (0.5, None, "disks")}


def test_a_limit_that_holds_elsewhere_gives_way_to_its_kernels(matrix: Matrix) -> None:
    on = ("MAKER SSD", "1.0", "fast")
    assert held(matrix, *on, "5.10.0-28-amd64")["ratio"] == (2, None, "a bug of that kernel")
    assert held(matrix, *on, "5.100.1")["ratio"] == (4, None, "data sheet")
    slow = held(matrix, "MAKER SSD", "1.0", "slow", "5.10.0-28-amd64")
    assert slow["ratio"] == (1.5, None, "its link"), "the model's does not hold there"


def test_which_drives_must_not_queue(matrix: Matrix) -> None:
    slow, fast = (matrix.controller(name) for name in ("slow", "fast"))
    assert slow is not None
    assert fast is not None
    found = [slow.unqueued(*each) for each in (("MAKER SSD", "1.1"), ("MAKER DISK", "1.0"))]
    assert [pair and pair.source for pair in found] == ["an erratum", "an erratum"]
    assert slow.unqueued("MAKER SSD", "2.0") is None
    assert slow.unqueued("OTHER", "1.1") is None
    assert fast.unqueued("MAKER SSD", "1.1") is None


def run(folder: Path, *arguments: str, driver: str = "ahci") -> int:
    (folder / "rig.yaml").write_text(RIG.replace("DRIVER", driver))
    (folder / "matrix.yaml").write_text(MATRIX)
    parser = argparse.ArgumentParser()
    command.register(parser.add_subparsers())
    files = ["--rig", f"{folder}/rig.yaml", "--matrix", f"{folder}/matrix.yaml"]
    namespace = parser.parse_args(["plan", *files, *arguments])
    code: int = namespace.func(namespace)
    return code


def test_every_line_that_gives_a_limit_is_named(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert run(tmp_path, "--why", "bench-a-MAKER_SSD-1.1") == 0
    said = capsys.readouterr().out.replace(f"{tmp_path}/", "")
    assert said.splitlines() == [
        "bench-a-MAKER_SSD-1.1: MAKER SSD, firmware 1.1, controller slow",
        "",
        "ratio",
        "  before: at least 3, of class ssd (matrix.yaml:3)",
        "           source: sweeps",
        "  before: at least 4; at least 2 on kernel 5.10.*, of model MAKER SSD (matrix.yaml:28)",
        "           source: data sheet",
        "           source on kernel 5.10.* (matrix.yaml:32): a bug of that kernel",
        "  holds:  at least 1.5, of controller slow (matrix.yaml:20)",
        "           source: its link",
        "",
        "ready_s",
        "  before: at most 10, of class ssd (matrix.yaml:4)",
        "           source: libata",
        "  holds:  at most 20, of firmware 1.1 (matrix.yaml:39)",
        "           source: its notes",
        "",
        "must not queue on slow: an erratum (matrix.yaml:14)",
        "max_queue_depth 31, of controller slow (matrix.yaml:15)",
        "link_gbps 1.5, of controller slow (matrix.yaml:16)",
        "quirks none, of controller slow (matrix.yaml:17)",
        "",
        "EXPIRED, not excused: ratio: It serialises. (LINK, until 2001-02-03) at matrix.yaml:41",
    ]


def test_the_controller_is_known_by_its_driver_too(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert run(tmp_path, "--why", "bench-a-MAKER_SSD-1.1", driver="ata_piix") == 0
    said = capsys.readouterr().out
    assert "controller fast" in said
    assert "must not queue" not in said


def test_the_chain_as_json(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert run(tmp_path, "--why", "bench-a-MAKER_SSD-1.1", "--json") == 0
    report = json.loads(capsys.readouterr().out)
    assert report["controller"] == "slow"
    chain = report["claims"]["ratio"]
    assert [(each["of"], each["at_least"], each["holds"]) for each in chain] == [
        ("class ssd", 3, False),
        ("model MAKER SSD", 4, False),
        ("controller slow", 1.5, True),
    ]
    assert chain[1]["where"] == f"{tmp_path}/matrix.yaml:28"
    assert chain[1]["kernels"][0]["at_least"] == 2
    pair = report["pair"]
    assert (pair["ncq"], pair["source"]) == ("none", f"an erratum ({tmp_path}/matrix.yaml:14)")
    assert (pair["max_queue_depth"], pair["link_gbps"], pair["quirks"]) == (31, 1.5, ["noncq"])
    (issue,) = report["known_issues"]
    assert (issue["claim"], issue["expired"]) == ("ratio", True)
    assert issue["where"] == f"{tmp_path}/matrix.yaml:41"


def test_a_cell_that_is_not_there(tmp_path: Path) -> None:
    with pytest.raises(Misuse, match=r"found no cell 'bench-a-MAKER_SSD-1.2', expected bench-a-"):
        run(tmp_path, "--why", "bench-a-MAKER_SSD-1.2")
    with pytest.raises(Misuse, match="expected one that this lists: leadline plan"):
        run(tmp_path, "--why", "zzz")


def test_the_plan_warns_of_what_expired(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert run(tmp_path) == 0
    said = capsys.readouterr().out
    assert "matrix.yaml:41: models[MAKER SSD].firmware[1.1].known_issues[ratio].expires: " in said
    assert "    EXPIRED, not excused: ratio: It serialises. (LINK, until 2001-02-03)" in said
    assert run(tmp_path, "--json") == 0
    report = json.loads(capsys.readouterr().out)
    (warning,) = (each for each in report["warnings"] if "expires" in each)
    assert "found 2001-02-03" in warning
    (issue,) = report["visits"][0]["known_issues"]
    assert (issue["expired"], issue["expires"]) == (True, "2001-02-03")
    assert issue["where"] == f"{tmp_path}/matrix.yaml:41"


def test_the_reference_has_what_is_said_of_the_shipped_files(
    capsys: pytest.CaptureFixture[str],
) -> None:
    page = (Path(__file__).parents[1] / "docs" / "reference" / "firmware-matrix.md").read_text()
    shipped = packaged("firmware_matrix.yaml")
    parser = argparse.ArgumentParser()
    command.register(parser.add_subparsers())

    def said(*arguments: str) -> str:
        namespace = parser.parse_args(["plan", "--matrix", str(shipped), *arguments])
        assert namespace.func(namespace) == 0
        return capsys.readouterr().out.replace(str(shipped), "firmware_matrix.yaml")

    chain = said("--why", "virtual-ssd1-LEADLINE_VSSD-1.0").partition("\nready_s\n")[2]
    limits = [line for line in chain.partition("\n\n")[0].splitlines() if "source: " not in line]
    assert len(limits) == 2
    assert [line for line in limits if line not in page.splitlines()] == []
    report = json.loads(said("--json"))
    fields = [*report, *report["visits"][0]]
    assert [name for name in fields if f"`{name}`" not in page and f"`{name}." not in page] == []
