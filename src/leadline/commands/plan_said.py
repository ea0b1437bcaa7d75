"""What ``leadline plan`` says for people."""

from collections.abc import Iterator
from typing import TYPE_CHECKING

from leadline.commands.plan import Planned
from leadline.drive_time import CLAIM_S

if TYPE_CHECKING:
    from leadline.inventory.issues import KnownIssue
    from leadline.inventory.matrix import LimitSpec
    from leadline.inventory.plan import Visit

_UNSERVED_SHOWN = 20
"""Lines of what is missing: a matrix of a whole product line has thousands, and --json all."""


def said(planned: Planned) -> Iterator[str]:
    """The plan, a line at a time: visits in their order, what is missing, what it costs."""
    from leadline.inventory.effort import by_drive

    for of_drive in by_drive(planned.visits):
        for visit in of_drive:
            yield from _visit(visit, of_drive, planned)
        came_with, last = of_drive[0].cell.firmware, of_drive[-1].cell.firmware
        if came_with != last:
            yield f"    and then {came_with} is flashed again, which it came with"
    if planned.gaps:
        yield from ("", "missing:")
        yield from (f"    {gap.cell.id}: {gap.reason}" for gap in planned.gaps)
    yield from _unserved(planned)
    if warnings := (*planned.expired, *planned.unbound, *planned.away):
        yield from ("", "warnings:", *(f"    {warning}" for warning in warnings))
    yield from ("", *_sums(planned))


def _visit(visit: "Visit", of_drive: "list[Visit]", planned: Planned) -> Iterator[str]:
    cell, matrix = visit.cell, planned.matrix
    firmware = matrix.firmware(cell.model, cell.firmware)
    how = "on the drive" if visit.installed else "to be flashed"
    yield f"{visit.id}: {firmware.status}, {how}, controller {cell.controller}"
    if firmware.shows != firmware.revision:
        yield f"    its drive says {firmware.shows}"
    if visit.against:
        alone = "" if visit.compared else ", by what is stored alone: downgrades are refused"
        if visit.against not in [each.cell.firmware for each in of_drive]:
            alone = ", by what is stored alone: the drive is not visited with it"
        over = matrix.model(cell.model).passed_over(firmware, visit.against)
        yield f"    held against {visit.against}{alone}{f' ({over})' if over else ''}"
    limits = matrix.limits_for(cell.model, cell.firmware, cell.controller)
    yield from (f"    {claim} {bounds(limit)}" for claim, limit in limits.items())
    for issue in matrix.issues_of(cell.model, cell.firmware, cell.controller):
        yield f"    {issue_line(issue, planned)}"


def issue_line(issue: "KnownIssue", planned: Planned) -> str:
    """A known issue in a line: whether it excuses, its claim, itself, where, until when."""
    kind = "known issue" if issue.excuses else "noted, not excused"
    if issue.excuses and issue.expired(planned.today):
        kind = "EXPIRED, not excused"
    until = f", until {issue.expires}" if issue.expires else ""
    on = "" if issue.kernel == "*" else f", on kernel {issue.kernel}"
    return f"{kind}: {issue.claim}: {issue.summary} ({issue.link}{until}{on})"


def bounds(limit: "LimitSpec") -> str:
    """A limit in words: ``at least 3 and at most 9``, and what it is on other kernels."""
    words = _bounds(limit.at_least, limit.at_most)
    others = (f"{_bounds(k.at_least, k.at_most)} on kernel {k.kernel}" for k in limit.kernels)
    return "; ".join((words, *others))


def _bounds(at_least: float | None, at_most: float | None) -> str:
    low = f"at least {at_least:g}" if at_least is not None else ""
    high = f"at most {at_most:g}" if at_most is not None else ""
    return " and ".join(filter(None, (low, high)))


def _unserved(planned: Planned) -> Iterator[str]:
    """Cells that no attached drive stands for; those of attached drives are told by their id."""
    away = [each for each in planned.coverage.unserved if each.lacks == "drive"]
    if away or planned.absent:
        yield from ("", "not attached:", *(f"    {message}" for message in planned.absent))
    for each in away[:_UNSERVED_SHOWN]:
        count = len(each.firmware)
        names = f"{count} firmware" if count > 3 else ", ".join(each.firmware)
        yield f"    {each.model} with {names} on {each.controller}: {each.reason}"
    if len(away) > _UNSERVED_SHOWN:
        yield f"    and {len(away) - _UNSERVED_SHOWN} more: leadline plan --json has all"


def _sums(planned: Planned) -> Iterator[str]:
    covered, cost = planned.coverage, planned.effort
    yield f"of {covered.wanted} cells of the matrix, {covered.served} are served"
    flashes = f"{cost.flashes} flash{'' if cost.flashes == 1 else 'es'}"
    if cost.flashes_to_compare > cost.flashes:
        flashes += f" ({cost.flashes_to_compare} where candidates are compared)"
    yield (
        f"{flashes}, about "
        f"{cost.drive_time_s / 60:.0f} min of drive time ({CLAIM_S:g} s for each limit), "
        f"{cost.longest_path_s / 60:.0f} min of it on the busiest path"
    )
    drives = {(visit.cell.rig, visit.cell.slot) for visit in planned.visits}
    count = f"{len(drives)} drive" + ("" if len(drives) == 1 else "s")
    yield f"{len(planned.visits)} to run on {count}, {len(planned.gaps)} missing"
