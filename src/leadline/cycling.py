"""Cycle the power of a visited drive: its outlets, its neighbours, the guard, the record."""

import time
from collections.abc import Iterator, Mapping, Sequence
from contextlib import AbstractContextManager, ExitStack, contextmanager, nullcontext, suppress
from dataclasses import asdict, dataclass
from typing import TYPE_CHECKING, Literal

from leadline.cuts_home import gone_dark, kept_for_home
from leadline.drive.bind import Drive, bind, scan
from leadline.drive.guard import Admission, HostAdmission, admit, admit_host
from leadline.errors import DriveFault, Misuse, RigTrouble, message_of
from leadline.host.lease import LeaseTaken, holder_text, take
from leadline.inventory.rig import DriveSpec, OutletSpec
from leadline.outcomes import Ended, ended_by
from leadline.power.comparison import unchanged_but_for
from leadline.power.cycle import Bench, PowerCycle, await_ready, power_cycle
from leadline.power.phases import NotReady
from leadline.power.sight import Sight
from leadline.power.supplies import open_supplies
from leadline.power.turns import CUTS, of_pdu
from leadline.power.wear import wear_of
from leadline.results.rows import drive_facts, finite
from leadline.results.schema import Phase, PowerCycleRow

if TYPE_CHECKING:
    from leadline.visiting import OpenVisit

# What the kernel says, rightly, when a drive loses power under it.
POWER_LOSS = frozenset(
    {"device-disabled", "device-gone", "flush-failed", "link-down", "link-reset", "phy-changed"}
)
# And when nobody told it: libata resets the link, slows it, and gives up.  What it took away for
# good is found by comparing the drive with itself (`power.comparison`).
UNANNOUNCED = frozenset(
    {
        "link-slower",
        "link-speed-limited",
        "ncq-disabled",
        "reset-failed",
        "setup-failed",
        "transfer-mode-limited",
    }
)


TURN_S = 900.0
"""How long others may take: a disk that is not let go, and one that does not come back."""


def cycle(
    visit: "OpenVisit", *, abrupt: bool = False, expected_firmware: str | None = None
) -> PowerCycle:
    """Cut the power of whatever feeds the drive, and see the drive come back.

    Every cut is on record, also one that ended in trouble.  Raises Misuse when no outlet
    feeds it, and what `power.cycle.power_cycle` raises.
    """
    outlets = visit.station.rig.outlets_of(visit.spec)
    if not outlets:
        raise Misuse(
            f"{visit.station.rig.path}: no outlet feeds slot {visit.spec.slot}, so its power "
            "cannot be cycled; add one, or leave these tests out with -k 'not power_cycle'"
        )
    asked = _Asked(outlets, "host" if outlets[0].feeds == "host" else "drive", abrupt, time.time())
    had = wear_of(visit.spec)
    try:
        done = _carried_out(visit, asked, expected_firmware)
    except (DriveFault, RigTrouble) as error:
        if wear_of(visit.spec) != had:  # else it was refused before anything was cut
            visit.station.record.add(_broken_off_row(visit, asked, error))
        raise
    if done.window is not None:
        visit.kernel_faults.excuse(*done.window, _excused(abrupt=abrupt))
    visit.station.record.add(_done_row(visit, asked, done), *_phases(visit.visit.cell.id, done))
    return done


@dataclass(frozen=True)
class _Asked:
    """The cut that is to be made; `began` is seconds since the epoch."""

    outlets: Sequence[OutletSpec]
    feeds: Literal["drive", "host"]
    abrupt: bool
    began: float


def _carried_out(visit: "OpenVisit", asked: _Asked, expected_firmware: str | None) -> PowerCycle:
    station, rig = visit.station, visit.station.rig
    others = [spec for slot, spec in gone_dark(rig, visit.spec).items() if slot != visit.spec.slot]
    station.live.show(f"  {visit.visit.cell.id}: power cycle of its {asked.feeds}")
    bench = Bench(station.host, rig.host, station.here_journal, station.watch, station.journal)
    with ExitStack() as stack:
        stack.callback(station.live.clear)
        for spec in others:
            stack.enter_context(_leased(visit, spec))
        sharing = [_other(visit, spec) for spec in others]
        cutting = stack.enter_context(_turn(visit, asked))
        stack.enter_context(_broken_off(visit, abrupt=asked.abrupt))
        disks = scan(station.host) if sharing else ()
        beside = [Sight(station.host, each, disks) for each in sharing]
        done = power_cycle(
            bench,
            visit.drive,
            stack.enter_context(open_supplies(rig, asked.outlets, station.byte_logs)),
            _leave(visit, asked.feeds, sharing, stack),
            feeds=asked.feeds,
            abrupt=asked.abrupt,
            expected_firmware=expected_firmware,
            sharing=sharing,
            when_dark=cutting.close,
            kept=kept_for_home(visit),
        )
        visit.rebound(done.after)
        for eyes in beside:
            _await_neighbour(eyes)
        return done


def _leased(visit: "OpenVisit", spec: DriveSpec) -> AbstractContextManager[object]:
    """The lease of a neighbour that goes dark along with the drive; what this run has of it is
    enough.  Raises LeaseTaken where another run has it."""
    holder = holder_text(visit.station.run.id)
    try:
        return take(visit.station.host, spec.resource, holder)
    except LeaseTaken as taken:
        if taken.holder != holder:
            raise
        return nullcontext()


def _await_neighbour(eyes: Sight) -> None:
    """See it come back, as itself: the next visit is perhaps to it.

    What is wrong with it is no fault of the drive of this visit: RigTrouble.
    """
    try:
        *_, identity = await_ready(eyes, time.monotonic())
        unchanged_but_for(eyes.drive, identity, None)
    except DriveFault as fault:
        raise RigTrouble(
            f"slot {eyes.drive.spec.slot}, whose power was cut along with this drive's: {fault}"
        ) from fault


@contextmanager
def _turn(visit: "OpenVisit", asked: _Asked) -> Iterator[ExitStack]:
    """Wait for our turn with the PDUs, and with the rig until what is given is closed.

    Drives that share no path are tested side by side.
    """
    station = visit.station
    holder = holder_text(station.run.id)
    ports = {station.rig.pdu_of(outlet).port for outlet in asked.outlets}
    with ExitStack() as stack:
        for port in sorted(ports):
            stack.enter_context(take(station.here, of_pdu(port), holder, patience=TURN_S))
        cutting = stack.enter_context(ExitStack())
        if asked.feeds == "drive":  # else the rig goes dark with all that it holds
            cutting.enter_context(take(station.host, CUTS, holder, patience=TURN_S))
        yield cutting


@contextmanager
def _broken_off(visit: "OpenVisit", *, abrupt: bool) -> Iterator[None]:
    """What the kernel says of a cut is our doing, too, when the cycle ends in trouble."""
    begin = visit.station.watch.mark()
    try:
        yield
    except (DriveFault, RigTrouble):
        with suppress(RigTrouble):  # a host without power has no log to show
            visit.kernel_faults.excuse(begin, visit.station.watch.mark(), _excused(abrupt=abrupt))
        raise


def _excused(*, abrupt: bool) -> frozenset[str]:
    return POWER_LOSS | UNANNOUNCED if abrupt else POWER_LOSS


def _leave(
    visit: "OpenVisit", feeds: str, sharing: Sequence[Drive], stack: ExitStack
) -> Admission | HostAdmission:
    """The write guard's admission to cut the power of everything that goes dark."""
    host, own = visit.station.host, visit.admitted("cut power")
    if feeds == "host":
        return stack.enter_context(admit_host(host, [visit.drive, *sharing], held=[own]))
    for other in sharing:
        # Looked over only: held, its node could not come anew.
        admit(host, other.spec, other, "cut power").release()
    return stack.enter_context(own)


def _other(visit: "OpenVisit", spec: DriveSpec) -> Drive:
    """A neighbour on the same supply, with whichever of its firmware it has."""
    revisions = [each.shows for each in visit.station.run.matrix.model(spec.model).firmware]
    return bind(visit.station.host, spec, or_firmware=revisions)


def _done_row(visit: "OpenVisit", asked: _Asked, done: PowerCycle) -> PowerCycleRow:
    drives = zip(("before", "after"), (done.before, done.after), done.smart, strict=True)
    details = {name: drive_facts(drive, smart) for name, drive, smart in drives}
    ended = Ended.PASS if done.verified else Ended.INCONCLUSIVE
    return _row(visit, asked, ended, asdict(done.phases), details)


def _broken_off_row(visit: "OpenVisit", asked: _Asked, error: Exception) -> PowerCycleRow:
    """How far it came is known where it was the drive that was late."""
    late = isinstance(error, NotReady) and error.phases
    reached = asdict(late) if late else {}
    return _row(visit, asked, ended_by(error), reached, {"message": message_of(error)})


def _row(
    visit: "OpenVisit",
    asked: _Asked,
    ended: Ended,
    phases: Mapping[str, float | None],
    details: Mapping[str, object],
) -> PowerCycleRow:
    return PowerCycleRow(
        cell=visit.visit.cell.id,
        serial=visit.spec.serial,
        outlets=", ".join(outlet.name for outlet in asked.outlets),
        feeds=asked.feeds,
        abrupt=asked.abrupt,
        began=asked.began,
        outcome=ended.value,
        details=finite(dict(details)),
        **asdict(wear_of(visit.spec)),
        **finite(dict(phases)),
    )


def _phases(cell: str, done: PowerCycle) -> list[Phase]:
    spent = done.phases
    seconds = {
        "shutdown": spent.announce_s,
        "off": spent.off_s,
        "switch": spent.command_s + spent.readback_s + spent.on_s,
        "ready": spent.ready_s,
    }
    return [Phase(cell=cell, name=name, seconds=value) for name, value in seconds.items()]
