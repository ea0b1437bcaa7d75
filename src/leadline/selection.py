"""Which tests are collected for which drives, what for, and what they may cost."""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, fields
from typing import TYPE_CHECKING, NoReturn, get_args

import pytest

from leadline import drive_time
from leadline.running import Run, claim_of, stay_of, subject_of, visit_of

if TYPE_CHECKING:
    from leadline.inventory.plan import Visit

DRIVE_TIME_S = drive_time.CLAIM_S
CURVE_BUDGETS = drive_time.CURVE_BUDGETS

_ON_RAID0 = {"random_read_on_raid0", "sequential_read_on_raid0"}
_OVER_DRIVES = {"random_read_over", "sequential_read_over"}
WRITING_LOADS = frozenset({"random_write", "random_mix", "random_mix_on"} | _ON_RAID0)
LOADS = WRITING_LOADS | _OVER_DRIVES | {"random_read", "random_read_8k", "sequential_read"}
"""The fixtures of `leadline.fixtures.load` and of `leadline.fixtures.layers`."""

PURPOSES = ("quick", "acceptance", "soak")
"""What tests are run for, by their marks; each includes the ones before."""
USUAL = "quick or not (acceptance or soak)"
"""What `leadline hil` runs unless it is told: tests without a purpose too, such as a vendor's."""


def imply_purposes(item: pytest.Item) -> None:
    """A quick test is part of every acceptance, and that of every soak."""
    marked = [item.get_closest_marker(purpose) is not None for purpose in PURPOSES]
    if any(marked):
        for purpose in PURPOSES[marked.index(True) + 1 :]:
            item.add_marker(purpose)


def imply_writes(item: pytest.Item, run: Run | None) -> None:
    """Mark a test by which data are lost, whatever it is known by: `-m` sees marks alone."""
    if writes(item) or (run is not None and destroys(item, run)):
        item.add_marker("writes")


def check_marks(test: pytest.Item) -> None:
    """Raise pytest's error of collection for a mark of ours that cannot be meant as it stands."""
    from leadline.inventory.must import Must
    from leadline.inventory.rig import Protocol

    names = [each.name for each in fields(Must) if each.name != "source"]
    for mark in test.iter_markers("must"):
        _refuse_unknown(test, "must", (*mark.args, *mark.kwargs), names)
    for mark in test.iter_markers("protocol"):
        _refuse_unknown(test, "protocol", mark.args, get_args(Protocol))
    for mark in test.iter_markers("claim"):
        if not mark.args:
            _refuse(test, "claim", "nothing", "the claim's name")
    for mark in test.iter_markers("drive_time"):
        if not (mark.args and isinstance(mark.args[0], int | float) and mark.args[0] > 0):
            _refuse(test, "drive_time", repr(mark.args), "seconds, more than 0")


def _refuse_unknown(
    test: pytest.Item, mark: str, found: Iterable[object], known: Sequence[str]
) -> None:
    for name in found:
        if name not in known:
            _refuse(test, mark, repr(name), f"one of: {', '.join(known)}")


def _refuse(test: pytest.Item, mark: str, found: str, expected: str) -> NoReturn:
    raise pytest.Collector.CollectError(
        f"{test.name}: mark {mark}: found {found}, expected {expected}"
    )


def applies(item: pytest.Item, run: Run) -> bool:
    """Whether a test is for the drive of its visit: its protocol, its controller, its limits, the
    keys for it."""
    visit = visit_of(item)
    if visit is None:
        return True
    if not run.serves(visit) or (compares(item) and not _comparable(item, run)):
        return False
    protocols = item.get_closest_marker("protocol")
    if protocols and run.drive_spec(visit).protocol not in protocols.args:
        return False
    if not _required(item, run, visit) or (writes(item) and not _may_write(item, run)):
        return False
    needs_limit = item.get_closest_marker("claim") and not item.get_closest_marker("no_limit")
    subject = subject_of(item) or visit
    return not needs_limit or limit_of(item) in run.limits(subject)


def _comparable(item: pytest.Item, run: Run) -> bool:
    """Whether it is at a station, and the drive comes to the others of that comparison, too."""
    here = stay_of(item)
    if here is None:
        return False
    together = (each for each in run.route.stays if each.candidate == here.candidate)
    return all(run.serves(each.visit) for each in together)


def limit_of(item: pytest.Item) -> str:
    """The name of a claim's limit in the firmware matrix: the claim's own unless its mark says."""
    mark = item.get_closest_marker("claim")
    return str(mark.kwargs.get("limit", mark.args[0])) if mark else claim_of(item)


def _required(item: pytest.Item, run: Run, visit: "Visit") -> bool:
    """Whether the firmware matrix says of the drive on its controller what a test is marked for."""
    marks = list(item.iter_markers("must"))
    if not marks:
        return True
    must = run.must(visit)
    said = all(getattr(must, name) is not None for mark in marks for name in mark.args)
    return said and all(
        getattr(must, name) == value for mark in marks for name, value in mark.kwargs.items()
    )


def not_flashed(run: Run) -> list[str]:
    """A line where drives keep their firmware for want of the second key."""
    left_out = [visit for visit in run.visits if not run.serves(visit)]
    if not left_out:
        return []
    firmware = ", ".join(f"{visit.cell.slot} {visit.cell.firmware}" for visit in left_out)
    return [f"leadline: left out, for want of --allow-flash: {firmware}"]


def _may_write(item: pytest.Item, run: Run) -> bool:
    """Whether both keys allow it on the drive of a test's visit."""
    visit = visit_of(item)
    return visit is not None and run.allow_writes and run.drive_spec(visit).writes == "allowed"


def compares(item: pytest.Item) -> bool:
    """Whether a test holds a candidate against what was released."""
    return "stay" in getattr(item, "fixturenames", ())


def compares_units(item: pytest.Item) -> bool:
    """Whether a test holds a drive against others of its kind, by what they have on record."""
    return "twins" in getattr(item, "fixturenames", ())


def cuts_power(item: pytest.Item) -> bool:
    """Whether a test asks for a power cycle."""
    cuts = {"power_cycle", "abrupt_power_cycle", "verified_writes"}
    return not cuts.isdisjoint(getattr(item, "fixturenames", ()))


def reads_counters(item: pytest.Item) -> bool:
    """Whether a test looks at what the drive has counted since its visit began."""
    return "smart_changes" in getattr(item, "fixturenames", ())


def writes(item: pytest.Item) -> bool:
    """Whether what is on the drive is lost by a test."""
    writing = WRITING_LOADS | {"verified_writes"}
    asked = not writing.isdisjoint(getattr(item, "fixturenames", ()))
    return asked or bool(item.get_closest_marker("writes"))


def destroys(item: pytest.Item, run: Run) -> bool:
    """Whether what is on the drive is lost by a test in this run; some write where they may."""
    may = "multitasking" in getattr(item, "fixturenames", ()) and _may_write(item, run)
    return writes(item) or may


@dataclass(frozen=True)
class Budget:
    """Seconds of drive time that one claim may cost, and that one of a curve may."""

    claim_s: float = DRIVE_TIME_S
    curve_s: float = CURVE_BUDGETS * DRIVE_TIME_S


def budget_of(item: pytest.Item, run: Run) -> Budget:
    """By `--drive-time`, else by the test's mark, else the usual."""
    mark = item.get_closest_marker("drive_time")
    if run.drive_time_s is not None:
        return Budget(run.drive_time_s, CURVE_BUDGETS * run.drive_time_s)
    return Budget(float(mark.args[0]), float(mark.args[0])) if mark else Budget()


def described(items: Iterable[pytest.Item], run: Run) -> list[str]:
    """A line for each test of each drive, and the sum: what `--collect-only` adds.

    The drive time is what one claim of a test may cost at most; most cost a part of it.  How long
    preconditioning takes is known when the drive has become steady.
    """
    of_drives = [item for item in items if visit_of(item) is not None]
    if not of_drives:
        return []
    minutes = sum(_most_s(item, run) for item in of_drives) / 60
    head = (
        f"leadline: {len(of_drives)} tests on drives, at most {minutes:.0f} min of drive time for "
        "a claim of each"
    )
    if any(writes(item) for item in of_drives):
        head += "; preconditioning, where one writes, takes its own"
    return [head, *(_line(item, run) for item in of_drives)]


def _line(item: pytest.Item, run: Run) -> str:
    purpose = next((each for each in PURPOSES if item.get_closest_marker(each)), "-")
    seconds = _most_s(item, run)
    cost = f"{seconds:g} s" if seconds else "-"
    costs = {"DESTROYS DATA": destroys(item, run), "cuts power": cuts_power(item)}
    words = [item.name, *(word for word, true in costs.items() if true)]
    return f"  {purpose:<10}  {cost:>7}  {', '.join(words)}"


def _most_s(item: pytest.Item, run: Run) -> float:
    """Seconds; 0 where no load is measured."""
    measures = not LOADS.isdisjoint(getattr(item, "fixturenames", ()))
    if not (measures or item.get_closest_marker("drive_time")):
        return 0.0
    if compares(item):
        from leadline.verdict.regression import STATIONS

        return budget_of(item, run).claim_s / (STATIONS * run.rounds)
    return budget_of(item, run).claim_s
