"""The benchmark of faults under the whole suite, without a rig: misses, alarms, and neither."""

import json
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest

from bench import __main__ as front
from bench import fault_whole
from bench.fault_case import BESIDE, FAULTY
from bench.fault_cases import CASES
from bench.fault_rig import Ran, write_files
from bench.fault_whole import Row, Whole, fit, rows_of
from bench.faults import drawn, measure
from leadline.evidence import LONGEST_SLICE_S, needed_seconds
from leadline.inventory.matrix import load_matrix
from leadline.results.record import Record
from leadline.results.schema import OutcomeRow
from selftests.test_bench_faults import TRANSPORT_MS

EIGHT, OFF = "depth_8_over_depth_1", "ncq_off_over_on"
SAID = "FAIL: not queueing: random_read.at(depth=8)"


def row(
    slot: str, claim: str, outcome: str, said: str = "", file: str = "test_queue_depth.py"
) -> Row:
    return Row(slot, file, f"test_{claim}", claim, outcome, said)


NAMED = (row(FAULTY, EIGHT, "fail", SAID), row(FAULTY, OFF, "fail", SAID))
HEALTHY = (row(BESIDE, EIGHT, "pass"), row(BESIDE, "streams", "skipped"))


def whole(*more: Row, named: Sequence[Row] = NAMED, case: str = "V1", code: int = 1) -> Whole:
    return Whole(drawn(case, 1), [*named, *HEALTHY, *more], code, 4000.0)


def test_what_else_fails_on_the_faulty_drive_is_listed_and_no_mistake() -> None:
    found = whole(row(FAULTY, "refill_16_gb_s", "fail", "FAIL: too slow\nand more"))
    assert found.wrong == []
    assert found.figures()["others"] == ["test_refill_16_gb_s: fail: FAIL: too slow"]
    assert "| test_refill_16_gb_s | 0 not right, 0 of them for both drives | yes | 67 |" in (
        found.in_markdown()
    )


def test_a_fault_that_its_own_test_does_not_name_is_missed() -> None:
    (missed,) = whole(named=NAMED[:1]).wrong
    assert missed.startswith(f"faulty: {OFF}: expected fail with '^FAIL: not queueing: ': not run")
    (unnamed,) = whole(named=(NAMED[0], row(FAULTY, OFF, "fail", "FAIL: slow"))).wrong
    assert unnamed.endswith(f"test_{OFF}: fail: FAIL: slow")


@pytest.mark.parametrize("outcome", ["fail", "error", "inconclusive", "defect"])
def test_whatever_does_not_pass_beside_it_is_an_alarm(outcome: str) -> None:
    found = whole(row(BESIDE, "refill_16_gb_s", outcome, "x"))
    assert found.wrong == [f"beside: test_refill_16_gb_s: {outcome}: x"]


def test_tests_of_both_drives_at_once_see_the_fault_of_the_other() -> None:
    found = whole(row(BESIDE, "drives_over_linear", "fail", "x", "test_scaling.py"))
    assert (found.wrong, len(found.shared)) == ([], 1)


@pytest.mark.parametrize(("outcome", "is_alarm"), [("inconclusive", False), ("fail", True)])
def test_which_twin_is_the_odd_one_may_be_left_open_and_not_be_told_wrongly(
    outcome: str, is_alarm: bool
) -> None:
    found = whole(row(BESIDE, "as_fast_as_its_twins", outcome, "x", "test_agreement.py"))
    assert bool(found.wrong) == is_alarm


def test_a_claim_made_size_by_size_is_named_by_one_that_fails() -> None:
    sizes = [row(FAULTY, "request_size", "pass")]
    sizes += [row(FAULTY, "request_size", "fail", "requests of this size fail")]
    assert whole(named=sizes, case="V16").wrong == []
    left = (
        row(
            FAULTY, "ncq_ladder_holds", "fail", "a setting allows no queue: device queue depth is 1"
        ),
        row(FAULTY, "kernel_allows_a_queue", "fail", "the device queue depth is 1"),
    )
    eight = [row(FAULTY, EIGHT, "pass"), row(FAULTY, EIGHT, "fail", "x")]
    (wrong,) = whole(named=(*left, *eight), case="V6").wrong
    assert wrong.startswith(f"faulty: {EIGHT}: expected pass"), "where it holds none may fail"


def test_where_nothing_is_to_be_found_anything_is_an_alarm() -> None:
    passed = [row(FAULTY, EIGHT, "pass")]
    assert whole(named=passed, case="V22", code=0).wrong == []
    found = whole(row(FAULTY, "no_dip", "fail", "x"), named=passed, case="V22")
    assert found.wrong == ["faulty: test_no_dip: fail: x"]


def test_the_exit_code_is_part_of_it() -> None:
    assert whole(code=4).wrong == ["exit code 4, expected 1"]


@pytest.mark.parametrize("name", [each for each in CASES if each != "V23"])
@pytest.mark.parametrize("seed", range(5))
def test_no_healthy_drive_is_too_slow_for_a_test_that_offers_128_at_depth_1(
    name: str, seed: int
) -> None:
    """V23 is slowed down by warming up, and makes some inconclusive whatever it begins with."""
    made = drawn(name, seed)
    case = fit(made)
    healthy = [drive for drive in case.drives if "rotation" not in drive.profile]
    for drive in healthy if name == "V22" else [each for each in healthy if each.slot != FAULTY]:
        profile: Any = drive.profile
        rate = 1000 / (0.7 * profile["read_ms"] + 0.3 * profile["write_ms"] + TRANSPORT_MS)
        assert needed_seconds(128, rate) <= LONGEST_SLICE_S
    for before, after in zip(made.drives, case.drives, strict=True):
        assert before.profile.get("faults") == after.profile.get("faults")
        assert before.slot == after.slot


@pytest.mark.parametrize("name", ["V1", "V4", "V12", "V12sata"])
def test_a_drive_whose_outlet_feeds_the_host_is_given_the_time_of_its_boot(
    tmp_path: Path, name: str
) -> None:
    drives = fit(drawn(name, 1)).drives
    _, matrix_file = write_files(tmp_path, "r", drives)
    matrix = load_matrix(matrix_file)
    for drive in drives:
        limits = matrix.limits_for(drive.model, "1.0")
        assert limits["ready_s"].at_most == (10 if drive.is_scsi else 120)


def kept(results: Path) -> None:
    record = Record(results, "run-1")
    for node, cell, claim, outcome, said in (
        ("src/suite/test_streams.py::test_s[r-faulty-BENCH_SSD-1.0-4]", FAULTY, "s", "fail", "F"),
        ("tests/test_queue_depth.py::test_8[r-beside-BENCH_SSD-1.0]", BESIDE, EIGHT, "pass", ""),
    ):
        cell_id = f"r-{cell}-BENCH_SSD-1.0"
        record.add(
            OutcomeRow(
                cell=cell_id, claim=claim, node=node, outcome=outcome, message=said, seconds=1.0
            )
        )
    record.add(
        OutcomeRow(cell=None, claim="x", node="t.py::x", outcome="fail", message="", seconds=1.0)
    )
    record.close()


def test_tests_are_told_by_name_and_file_without_their_drive(tmp_path: Path) -> None:
    kept(tmp_path)
    assert rows_of(tmp_path) == [
        Row(FAULTY, "test_streams.py", "test_s[4]", "s", "fail", "F"),
        Row(BESIDE, "test_queue_depth.py", "test_8", EIGHT, "pass", ""),
    ]


def test_the_whole_suite_is_run_and_given_its_time(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    asked: list[object] = []

    @contextmanager
    def up(folder: Path, drives: object, arguments: str) -> Iterator[tuple[None, Path]]:
        yield None, folder

    def hil(rig: object, matrix: Path, results: Path, words: object, deadline_s: float) -> Ran:
        asked.append((words, deadline_s))
        kept(results)
        return Ran(1, {})

    monkeypatch.setattr(fault_whole, "running", up)
    monkeypatch.setattr(fault_whole, "hil", hil)
    monkeypatch.setattr("sys.argv", ["bench", "faults", "whole", "V1", "--seed", "7"])
    assert front.main() == 1, "the claims of V1 were not run"
    out, err = capsys.readouterr()
    found = json.loads(out)
    assert (found["seed"], found["whole"]["V1"]["there_for_it"]) == (7, [EIGHT, OFF])
    assert asked == [(["--allow-writes", "--no-excuses", "-m", "acceptance"], 14400.0)]
    assert "| V1 | " in err


@pytest.mark.parametrize("words", [["whole"], ["whole", "V99"], ["whole", "twins"]])
def test_the_whole_of_no_fault_is_refused(
    words: list[str], capsys: pytest.CaptureFixture[str]
) -> None:
    with pytest.raises(SystemExit):
        measure(words)
    assert "some of V1, V1mix, V2" in capsys.readouterr().err
