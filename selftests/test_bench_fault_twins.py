"""The story of two drives alike, of which one has its NCQ off, by what came of its runs."""

from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path

import pytest

from bench import fault_twins
from bench.fault_rig import Ran, Seeded
from bench.fault_twins import LADDER, OFF, ON, READS, REFILL, WRITES, figures_of
from bench.stories import of_twins

Came = Mapping[tuple[str, str], tuple[str, str]]
NO_OTHER = "nothing is on record of another M with 1.0 under random_write"
NO_DIFFERENCE = "INCONCLUSIVE (void)\n  void: no-difference: NCQ on over off is 1.12 [1, 1.2]"
DIFFERS = "FAIL: reads agrees with another M does not hold"
FIRST: Came = {
    (ON, LADDER): ("pass", ""),
    (ON, WRITES): ("inconclusive", NO_DIFFERENCE),
    (ON, READS): ("skipped", "nothing is on record"),
    (ON, REFILL): ("pass", ""),
    (OFF, LADDER): ("fail", "the kernel takes queueing away: by libata.force=2:noncq"),
    (OFF, WRITES): ("inconclusive", NO_DIFFERENCE),
    (OFF, READS): ("fail", DIFFERS),
    (OFF, REFILL): ("fail", "FAIL\n  time: 24000 [23000, 25000] s"),
}
AGAIN: Came = {(ON, READS): ("inconclusive", "which-is-off"), (OFF, READS): ("fail", DIFFERS)}


def ran(came: Came, refill_off_s: float | None = 24000.0) -> Ran:
    rows = [
        {"cell": f"r-{slot}-M-1.0", "claim": claim, "outcome": outcome, "message": said}
        for (slot, claim), (outcome, said) in came.items()
    ]
    verdicts = [
        {"cell": f"r-{slot}-M-1.0", "estimate": seconds, "explanation": "x.time_for(16 GB)"}
        for slot, seconds in ((OFF, refill_off_s), (ON, 4800.0))
    ]
    return Ran(1, {"outcomes": rows, "verdicts": verdicts})


def test_the_story_is_told_by_figures() -> None:
    found = figures_of(ran(FIRST), ran(AGAIN))
    assert (found["refill_off_over_on"], found["wrong"], found["within_limits"]) == (5.0, [], True)
    assert found["again"][OFF][READS] == ["fail", DIFFERS]


@pytest.mark.parametrize("came", ["pass", "inconclusive", "skipped"])
def test_the_healthy_one_may_agree_or_be_left_open(came: str) -> None:
    found = figures_of(ran({**FIRST, (ON, READS): (came, "")}), ran(AGAIN))
    assert found["wrong"] == []


def test_writes_that_differ_a_little_on_the_healthy_one_have_no_other_to_agree_with() -> None:
    found = figures_of(ran({**FIRST, (ON, WRITES): ("skipped", NO_OTHER)}), ran(AGAIN))
    assert found["wrong"] == []


@pytest.mark.parametrize(
    ("where", "came", "said"),
    [
        ((ON, LADDER), ("fail", "x"), "ncq_ladder_holds: fail, expected pass: x"),
        ((ON, WRITES), ("pass", ""), f"{WRITES}: pass, expected inconclusive: "),
        ((ON, WRITES), ("inconclusive", "x"), f"{WRITES}: inconclusive, expected inconclusive: x"),
        ((ON, READS), ("fail", "x"), f"first run: {READS} of the healthy drive: fail: x"),
        ((OFF, LADDER), ("pass", ""), "ncq_ladder_holds: pass, expected fail: "),
        ((ON, WRITES), ("skipped", "x"), f"{WRITES}: skipped, expected inconclusive: x"),
        ((OFF, WRITES), ("pass", ""), f"{WRITES}: pass, expected inconclusive: "),
        (
            (OFF, WRITES),
            ("skipped", NO_OTHER),
            f"{WRITES}: skipped, expected inconclusive: {NO_OTHER}",
        ),
        (
            (OFF, READS),
            ("inconclusive", "x"),
            f"first run: {READS}: inconclusive, expected fail: x",
        ),
    ],
)
def test_what_is_not_so_is_told_by_name(
    where: tuple[str, str], came: tuple[str, str], said: str
) -> None:
    found = figures_of(ran({**FIRST, where: came}), ran(AGAIN))
    assert (found["wrong"], found["within_limits"]) == ([said], False)


def test_the_other_ones_record_does_not_make_the_healthy_one_fail_in_a_second_run() -> None:
    found = figures_of(ran(FIRST), ran({**AGAIN, (ON, READS): ("fail", DIFFERS)}))
    assert found["wrong"] == [f"second run: {READS} of the healthy drive: fail: {DIFFERS}"]
    found = figures_of(ran(FIRST), ran({(ON, READS): ("pass", "")}))
    assert found["wrong"] == [f"second run: {READS}: not run, expected fail: "]


def test_a_refill_that_costs_nothing_without_a_queue_is_no_such_drive() -> None:
    found = figures_of(ran(FIRST, refill_off_s=6000.0), ran(AGAIN))
    assert found["wrong"] == ["a refill takes 1.25 times as long without NCQ"]


def test_a_refill_whose_evidence_is_void_has_no_figure_and_the_rest_is_told() -> None:
    found = figures_of(ran(FIRST, refill_off_s=None), ran(AGAIN))
    assert found["wrong"] == ["the refills came to no figures"]
    assert found["refill_s"] == {ON: 4800.0, OFF: None}
    assert "an unknown number of times" in of_twins(found)["found"]


def test_the_healthy_one_is_visited_first_and_the_second_loses_its_ncq(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    asked: list[tuple[list[str], str]] = []
    answers = iter([ran(FIRST), ran(AGAIN)])

    @contextmanager
    def up(folder: Path, drives: Sequence[Seeded], arguments: str) -> Iterator[tuple[str, str]]:
        asked.append(([drive.slot for drive in drives], arguments))
        yield "rig", "matrix"

    def hil(rig: str, matrix: str, results: Path, words: Sequence[str], deadline_s: float) -> Ran:
        files = [Path(word).name for word in words if word.endswith(".py")]
        asked.append((files, words[words.index("-k") + 1]))
        return next(answers)

    monkeypatch.setattr(fault_twins, "running", up)
    monkeypatch.setattr(fault_twins, "hil", hil)
    assert fault_twins.measure()["wrong"] == []
    suite = ["test_agreement.py", "test_cache_refill.py", "test_ncq_support.py"]
    assert asked == [
        ([ON, OFF], "libata.force=2:noncq"),
        (["test_writes.py", *suite], "twins or cache or ladder"),
        (["test_agreement.py"], "twins"),
    ]
