"""The order of tests: by visit, files as they are, power last."""

from pathlib import Path

import pytest

import leadline
from selftests.vendor import MATRIX, RIG, run, vendor

__all__ = ["vendor"]  # a fixture


def collected(vendor: pytest.Pytester, *arguments: str) -> list[tuple[str, str]]:
    """Test and what stands in its brackets, in order."""
    lines = run(vendor, "--collect-only", "-q", *arguments).outlines
    items = [line.partition("::")[2] for line in lines if "::" in line]
    return [(name, rest.rstrip("]")) for name, _, rest in (i.partition("[") for i in items)]


def test_items_are_sorted_by_visit_and_by_the_files_order_within(vendor: pytest.Pytester) -> None:
    vendor.makepyfile("def test_b(visit): pass\ndef test_a(visit): pass")
    lines = run(vendor, "--collect-only", "-q").outlines[:6]
    cells = [line.partition("[")[2].rstrip("]") for line in lines]
    names = [line.partition("::")[2].partition("[")[0] for line in lines]
    assert cells[0] == cells[1] != cells[2] == cells[3] != cells[4] == cells[5]
    assert names == ["test_b", "test_a"] * 3


def test_tests_of_no_drive_come_first(vendor: pytest.Pytester) -> None:
    vendor.makepyfile("def test_b(visit): pass\ndef test_a(): pass")
    assert [name for name, _ in collected(vendor)] == ["test_a", *["test_b"] * 3]


def test_power_is_cut_last_in_each_visit(vendor: pytest.Pytester) -> None:
    vendor.makepyfile("def test_b(visit, power_cycle): pass\ndef test_a(visit): pass")
    assert [name for name, _ in collected(vendor)] == ["test_a", "test_b"] * 3


def test_error_counters_are_read_when_all_else_is_done(vendor: pytest.Pytester) -> None:
    vendor.makepyfile(
        "def test_c(visit, power_cycle): pass\n"
        "def test_b(visit, smart_changes): pass\n"
        "def test_a(visit): pass"
    )
    assert [name for name, _ in collected(vendor)] == ["test_a", "test_b", "test_c"] * 3


def test_verified_writes_cut_power_too(vendor: pytest.Pytester) -> None:
    vendor.makepyfile("def test_b(visit, verified_writes): pass\ndef test_a(visit): pass")
    assert [name for name, _ in collected(vendor, "--allow-writes")] == ["test_a", "test_b"] * 3
    assert [name for name, _ in collected(vendor)] == ["test_a"] * 3, "and they write"


def test_the_plans_order_holds_whatever_else_is_parametrized(vendor: pytest.Pytester) -> None:
    """pytest groups tests by the first session-wide parameter: drives would alternate."""
    vendor.makepyfile(
        "import pytest\n"
        "@pytest.fixture(scope='session', params=['red', 'blue'])\n"
        "def colour(request): return request.param\n"
        "def test_b(colour, visit): pass\ndef test_a(colour, visit): pass\n"
    )
    cells = [
        next(word for word in ("1.1", "VSCSI", "1.0") if word in rest)
        for _, rest in collected(vendor)
    ]
    assert cells == [*["1.0"] * 4, *["1.1"] * 4, *["VSCSI"] * 4]


def test_tests_that_write_are_collected_where_both_keys_allow_it(vendor: pytest.Pytester) -> None:
    vendor.makepyfile(
        "import pytest\n"
        "def test_a(visit): pass\n"
        "def test_b(visit, random_write): pass\n"
        "@pytest.mark.writes\n"
        "def test_c(visit): pass\n"
    )
    assert {name for name, _ in collected(vendor)} == {"test_a"}
    assert {name for name, _ in collected(vendor, "--allow-writes")} == {
        "test_a",
        "test_b",
        "test_c",
    }


def test_a_drive_that_may_not_be_written_to_is_asked_to_read_alone(vendor: pytest.Pytester) -> None:
    vendor.makepyfile("def test_a(visit): pass\ndef test_b(visit, random_write): pass\n")
    rig = vendor.path / "rig.yaml"
    text = RIG.read_text().replace("profile: profiles/", f"profile: {RIG.parent}/profiles/")
    rig.write_text(text.replace("writes: allowed", "writes: forbidden", 1))
    files = (f"--rig={rig}", f"--matrix={MATRIX}", "--allow-writes", "--collect-only", "-q")
    lines = vendor.runpytest_subprocess(*files, "-p", "no:cacheprovider").outlines
    writers = [line for line in lines if "test_b" in line]
    assert len(writers) == 1, lines
    assert "VSCSI" in writers[0]


STATIONS = """
def test_r(visit, released): pass
def test_s(visit, released): pass
def test_a(visit): pass
def test_p(visit, power_cycle): pass
"""


def test_stations_lie_next_to_the_flash_between_them_in_mirrored_order(
    vendor: pytest.Pytester,
) -> None:
    vendor.makepyfile(STATIONS)
    ssd = "virtual-ssd1-LEADLINE_VSSD-"
    found = [(name, where.removeprefix(ssd)) for name, where in collected(vendor)]
    assert found == [
        *[("test_a", "1.0"), ("test_p", "1.0")],
        *[("test_s", "1.0-station1"), ("test_r", "1.0-station1")],
        *[("test_r", "1.1-station2"), ("test_s", "1.1-station2")],
        *[("test_a", "1.1"), ("test_p", "1.1")],
        *[("test_s", "1.1-station3"), ("test_r", "1.1-station3")],
        *[("test_r", "1.0-visit3-station4"), ("test_s", "1.0-visit3-station4")],
        *[("test_a", "virtual-scsi1-LEADLINE_VSCSI-1.0")],
        *[("test_p", "virtual-scsi1-LEADLINE_VSCSI-1.0")],
    ]


def test_without_claims_that_compare_a_drive_does_not_go_back(vendor: pytest.Pytester) -> None:
    vendor.makepyfile(STATIONS)
    assert not [where for _, where in collected(vendor, "-k", "test_a") if "visit3" in where]


def test_a_drive_that_may_not_be_flashed_is_compared_at_no_station(
    vendor: pytest.Pytester,
) -> None:
    """The first of them would be on firmware that it has, and for nothing."""
    vendor.makepyfile(STATIONS)
    rig = vendor.path / "rig.yaml"
    rig.write_text(RIG.read_text().partition("\nvirtual:")[0])

    def stations(*arguments: str) -> int:
        files = (f"--rig={rig}", f"--matrix={MATRIX}", "--collect-only", "-q", *arguments)
        lines = vendor.runpytest_subprocess(*files, "-p", "no:cacheprovider").outlines
        assert [line for line in lines if "test_a[" in line]
        return len([line for line in lines if "-station" in line])

    assert stations() == 0
    assert stations("--allow-flash") == 8


def test_a_stored_baseline_needs_the_candidate_alone(vendor: pytest.Pytester) -> None:
    vendor.makepyfile(STATIONS)
    found = collected(vendor, "--baseline", "stored", "-k", "test_r")
    assert [where.partition("VSSD-")[2] for _, where in found] == ["1.1-station2", "1.1-station3"]


def test_what_compares_firmware_is_left_out_where_there_is_nothing_to_compare(
    vendor: pytest.Pytester,
) -> None:
    vendor.makepyfile(STATIONS)
    matrix = vendor.path / "matrix.yaml"
    text = MATRIX.read_text().replace("status: candidate", "status: released")
    matrix.write_text(text.replace("image: rigs", f"image: {MATRIX.parent}/rigs"))
    lines = run(vendor, f"--matrix={matrix}", "--collect-only", "-q").outlines
    assert {line.partition("::")[2].partition("[")[0] for line in lines if "::" in line} == {
        "test_a",
        "test_p",
    }


WHERE = """
def test_r(visit, stay, request, pytestconfig):
    worker = getattr(pytestconfig, "workerinput", {}).get("workerid")
    with open(pytestconfig.rootpath / "visited", "a") as log:
        print(worker, stay.visit.cell.rig, stay.number, file=log)
"""


def test_workers_keep_the_visits_of_a_drive_together_and_in_order(
    vendor: pytest.Pytester,
) -> None:
    vendor.makepyfile(WHERE)
    other = vendor.path / "other.yaml"
    text = RIG.read_text().replace("profile: profiles/", f"profile: {RIG.parent}/profiles/")
    text = text.replace("rig: virtual", "rig: other").replace("VSSD0001", "VSSD0002")
    text = text.replace("VSCSI0001", "VSCSI0002").replace("c5000000a0", "c5000000b0")
    other.write_text(text.replace("virtual/virtual", "virtual/other"))
    run(vendor, f"--rig={other}", "-n", "2").assert_outcomes(passed=8)
    lines = [line.split() for line in (vendor.path / "visited").read_text().splitlines()]
    for rig in ("virtual", "other"):
        own = [(worker, number) for worker, where, number in lines if where == rig]
        assert [number for _, number in own] == ["1", "2", "3", "4"]
        assert len({worker for worker, _ in own}) == 1


def test_the_suite_compares_its_rates_where_it_may(vendor: pytest.Pytester) -> None:
    suite = str(Path(leadline.__file__).parent / "suite" / "test_regression.py")
    mix = "test_a_busy_server_is_as_fast_as_released"
    found = [name for name, _ in collected(vendor, suite)]
    assert len(found) == 7 * 4, "five kinds of reads, streams; what the drive says"
    assert mix not in found
    assert [name for name, _ in collected(vendor, suite, "--allow-writes")].count(mix) == 4
