"""The table at the end of a run."""

from leadline.outcomes import Ended
from leadline.report.summary import SummaryRow, summary_table


def row(cell: str, outcome: str, **facts: object) -> SummaryRow:
    base = {"cell": cell, "claim": "depth_8_over_depth_1", "outcome": outcome, "message": ""}
    return SummaryRow.from_facts("node", {**base, **facts})


def test_a_cell_is_named_once_and_its_claims_stand_below() -> None:
    rows = [row("bench-a-slot1-X-1", "pass"), row("bench-a-slot1-X-1", "fail")]
    text = summary_table(rows, seconds=12, width=80)
    assert text.count("bench-a-slot1-X-1") == 1
    assert text.index("bench-a-slot1-X-1") < text.index("PASS") < text.index("FAIL")
    assert "1 PASS, 1 FAIL; 0.0 s of drive time in 12 s" in text


def test_a_cell_that_comes_again_is_named_again() -> None:
    rows = [row("cell-a", "pass"), row("cell-b", "pass"), row("cell-a", "fail")]
    text = summary_table(rows, seconds=1, width=80)
    assert text.count("cell-a") == 2


def test_drive_time_is_summed_and_a_test_without_any_has_none() -> None:
    rows = [row("c", "pass", drive_seconds=8.0), row("c", "pass", drive_seconds=4.5)]
    text = summary_table([*rows, row("c", "skipped")], seconds=90.4, width=80)
    assert "2 PASS, 1 skipped; 12.5 s of drive time in 90 s" in text
    (skipped,) = [line for line in text.splitlines() if "depth_8" in line and "skipped" in line]
    assert skipped.split()[-1] == "skipped"


def test_what_was_skipped_has_its_reason_below() -> None:
    rows = [row("c", "skipped", message="nothing is on record"), row("c", "pass", message="no")]
    last = summary_table(rows, seconds=1, width=80).splitlines()[-1]
    assert last == "skipped: depth_8_over_depth_1 of c: nothing is on record"


def test_what_failed_has_its_cause_below_or_the_first_line_of_what_was_said() -> None:
    rows = [
        row("a", "fail", message="FAIL: not queueing: a claim\n  figures", cause="not queueing"),
        row("b", "fail", message="FAIL: a claim does not hold on b\n  figures"),
        row("c", "fail", message="the controller cannot queue: ata_piix\nadvertised: unknown"),
        row("d", "fail"),
        row("e", "excused", message="FAIL: a claim", cause="not queueing"),
    ]
    text = summary_table(rows, seconds=1, width=80)
    assert text.splitlines()[-3:] == [
        "failed: depth_8_over_depth_1 of a: not queueing",
        "failed: depth_8_over_depth_1 of b: a claim does not hold on b",
        "failed: depth_8_over_depth_1 of c: the controller cannot queue: ata_piix",
    ]


def test_a_narrow_terminal_loses_nothing() -> None:
    long = "bench-a-slot1-" + "X" * 80
    rows = [row(long, "inconclusive", estimate="1.44 [1.31, 1.57]", drive_seconds=130.2)]
    text = summary_table(rows, seconds=1, width=20)
    assert "".join(text.split()).count("X") == 80
    (line,) = [line for line in text.splitlines() if "depth_8" in line]
    assert line.split() == [
        *("depth_8_over_depth_1", "INCONCLUSIVE"),
        *("1.44", "[1.31,", "1.57]", "130.2"),
    ]


def test_a_row_has_what_the_report_carried() -> None:
    made = row("c", "fail", message="too slow", explanation="the whole story")
    assert (made.message, made.explanation) == ("too slow", "the whole story")


def test_estimate_interval_and_cost_are_in_the_row() -> None:
    rows = [row("c", "excused", estimate="1.4 [1.3, 1.5]", drive_seconds=8.25)]
    text = summary_table(rows, seconds=1, width=80)
    (line,) = [line for line in text.splitlines() if "depth_8" in line]
    assert line.split("depth_8_over_depth_1")[1].split() == [
        *("FAIL,", "known", "issue"),
        *("1.4", "[1.3,", "1.5]"),
        "8.2",
    ]


def test_a_row_of_several_claims_is_of_the_one_that_decides_at_the_cost_of_all() -> None:
    holds = {"estimate": "7.2 [7, 7.4]", "drive_seconds": 8.0, "cause": "", "explanation": "one"}
    fails = {"estimate": "1.4 [1.3, 1.5]", "drive_seconds": 4.5, "cause": "not queueing"}
    facts = {**holds, **{f"{name}.2": value for name, value in fails.items()}, "explanation.2": "2"}
    failed, passed = row("c", "fail", **facts), row("c", "pass", **facts)
    assert (failed.estimate, failed.cause) == ("1.4 [1.3, 1.5]", "not queueing")
    assert (passed.estimate, passed.cause) == ("7.2 [7, 7.4]", "")
    assert {failed.drive_seconds, passed.drive_seconds} == {12.5}
    assert {failed.explanation, passed.explanation} == {"one\n2"}
    assert (row("c", "fail").estimate, row("c", "fail").drive_seconds) == ("", None)


def test_every_outcome_has_a_word() -> None:
    text = summary_table([row("c", ended.value) for ended in Ended], seconds=1, width=200)
    for word in ("PASS", "FAIL", "ERROR", "INCONCLUSIVE", "USAGE", "known issue", "DEFECT"):
        assert word in text


def test_brackets_in_a_drives_own_words_are_not_markup() -> None:
    text = summary_table([row("c [bold]x[/bold]", "pass")], seconds=1, width=120)
    assert "c [bold]x[/bold]" in text


def test_a_line_number_between_colons_is_no_emoji() -> None:
    said = "tests/test_x.py:100: ata1:up: not so"
    text = summary_table([row("c", "fail", message=said)], seconds=1, width=120)
    assert text.splitlines()[-1] == f"failed: depth_8_over_depth_1 of c: {said}"
