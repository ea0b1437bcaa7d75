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


def test_estimate_interval_and_cost_are_in_the_row() -> None:
    rows = [row("c", "excused", estimate="1.4 [1.3, 1.5]", drive_seconds=8.25)]
    text = summary_table(rows, seconds=1, width=80)
    (line,) = [line for line in text.splitlines() if "depth_8" in line]
    assert line.split("depth_8_over_depth_1")[1].split() == [
        *("FAIL,", "known", "issue"),
        *("1.4", "[1.3,", "1.5]"),
        "8.2",
    ]


def test_every_outcome_has_a_word() -> None:
    text = summary_table([row("c", ended.value) for ended in Ended], seconds=1, width=200)
    for word in ("PASS", "FAIL", "ERROR", "INCONCLUSIVE", "USAGE", "known issue", "DEFECT"):
        assert word in text


def test_brackets_in_a_drives_own_words_are_not_markup() -> None:
    text = summary_table([row("c [bold]x[/bold]", "pass")], seconds=1, width=120)
    assert "c [bold]x[/bold]" in text
