"""Cycle the power of a visited drive: its outlets, its neighbours, the guard, the record."""

from collections.abc import Iterator, Sequence
from contextlib import ExitStack, contextmanager, suppress
from typing import TYPE_CHECKING, Literal

from leadline.drive.bind import Drive, bind
from leadline.drive.guard import Admission, HostAdmission, admit, admit_host
from leadline.errors import DriveFault, Inconclusive, Misuse, RigTrouble
from leadline.inventory.rig import DriveSpec
from leadline.power.cycle import Bench, PowerCycle, power_cycle
from leadline.power.supplies import open_supplies
from leadline.results.schema import Phase

if TYPE_CHECKING:
    from leadline.visiting import OpenVisit

# What the kernel says, rightly, when a drive loses power under it.
POWER_LOSS = frozenset(
    {"device-disabled", "device-gone", "flush-failed", "link-down", "link-reset", "phy-changed"}
)


def cycle(visit: "OpenVisit", *, expected_firmware: str | None = None) -> PowerCycle:
    """Cut the power of whatever feeds the drive, gracefully, and see the drive come back.

    Raises Misuse when no outlet feeds it, and what `power.cycle.power_cycle` raises.
    """
    station, rig = visit.station, visit.station.rig
    outlets = rig.outlets_of(visit.spec)
    if not outlets:
        raise Misuse(
            f"{rig.path}: no outlet feeds slot {visit.spec.slot}, so its power cannot be "
            "cycled; add one, or leave these tests out with -k 'not power_cycle'"
        )
    feeds: Literal["drive", "host"] = "host" if outlets[0].feeds == "host" else "drive"
    dark = {drive.slot: drive for outlet in outlets for drive in rig.sharing(outlet)}
    sharing = [_other(visit, spec) for spec in dark.values() if spec.slot != visit.spec.slot]
    station.live.show(f"  {visit.visit.cell.id}: power cycle of its {feeds}")
    with ExitStack() as stack:
        stack.enter_context(_broken_off(visit))
        done = power_cycle(
            Bench(station.host, rig.host, station.here_journal, station.watch),
            visit.drive,
            stack.enter_context(open_supplies(rig, outlets, station.byte_logs)),
            _leave(visit, feeds, sharing, stack),
            feeds=feeds,
            expected_firmware=expected_firmware,
            sharing=sharing,
        )
    station.live.clear()
    if done.window is not None:
        visit.excuse(*done.window, POWER_LOSS)
    visit.rebound(done.after)
    station.record.add(*_phases(visit.visit.cell.id, done))
    return done


def proven(cycle: PowerCycle) -> PowerCycle:
    """The same, if its outlets were read back; Inconclusive if they cannot be.

    That is no fault of the drive's, and no proof either.
    """
    if not cycle.verified:
        raise Inconclusive(
            f"slot {cycle.before.spec.slot}: its outlet is unverified, for its PDU cannot be read "
            "back, so the power cycle proves nothing; use a PDU that tells what its outlets do"
        )
    return cycle


@contextmanager
def _broken_off(visit: "OpenVisit") -> Iterator[None]:
    """What the kernel says of a cut is our doing, too, when the cycle ends in trouble."""
    begin = visit.station.watch.mark()
    try:
        yield
    except (DriveFault, RigTrouble):
        with suppress(RigTrouble):  # a host without power has no log to show
            visit.excuse(begin, visit.station.watch.mark(), POWER_LOSS)
        raise


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
    revisions = [each.revision for each in visit.station.run.matrix.model(spec.model).firmware]
    return bind(visit.station.host, spec, or_firmware=revisions)


def _phases(cell: str, done: PowerCycle) -> list[Phase]:
    spent = done.phases
    seconds = {
        "shutdown": spent.announce_s,
        "off": spent.off_s,
        "switch": spent.command_s + spent.readback_s + spent.on_s,
        "ready": spent.ready_s,
    }
    return [Phase(cell=cell, name=name, seconds=value) for name, value in seconds.items()]
