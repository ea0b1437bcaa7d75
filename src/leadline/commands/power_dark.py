"""`leadline power ... off` and `cycle`: with the drives that go dark, where they can be checked."""

import sys
import time
from collections.abc import Sequence
from contextlib import ExitStack, suppress
from dataclasses import asdict, replace
from itertools import chain
from typing import Any, Literal

from leadline.booting import await_boot, left_without_power
from leadline.commands.power_said import of_each, of_switched
from leadline.drive.bind import Drive, bind, scan
from leadline.drive.guard import Admission, HostAdmission, admit, admit_host
from leadline.errors import RigTrouble
from leadline.host.connection import Host, open_host
from leadline.host.journal import Journal
from leadline.host.lease import LeaseTaken, holder_text, take
from leadline.inventory.rig import DriveSpec, HostSpec, OutletSpec, Rig
from leadline.mend import mend_outlets
from leadline.power.byte_log import ByteLogs
from leadline.power.comparison import unchanged_but_for
from leadline.power.cycle import Bench, await_ready, power_cycle, power_off
from leadline.power.outlets import lent
from leadline.power.pdu import Switched
from leadline.power.sight import Sight
from leadline.power.supplies import Supply, open_supplies, switch_all
from leadline.power.turns import CUTS, of_pdu
from leadline.power.wear import Cut, Toll

TURN_S = 30.0
"""How long a cut that a run is in the middle of is waited for."""
HOST_S = 30.0
"""A host that hangs is what some come here for; one that is slow has what a run gives it."""
Feeds = Literal["drive", "host"]


def go_dark(
    rig: Rig,
    outlets: Sequence[OutletSpec],
    action: Literal["off", "cycle"],
    *,
    logs: ByteLogs,
    abrupt: bool,
    yes: bool,
) -> dict[str, Any]:
    """Cut the power of these outlets together; what was done, as `power_said` has it.

    Where not all drives on them can be checked: with `yes` without those, else RigTrouble.
    Raises Misuse for what the write guard refuses, DriveFault for a drive that comes back
    worse.
    """
    with ExitStack() as stack:
        here = stack.enter_context(open_host(HostSpec(reach="local")))
        cut_before = left_without_power(here, [rig])
        for sentence in mend_outlets(here, [rig], logs):
            _tell(sentence)
        holder = holder_text("power")
        for port in sorted({rig.pdu_of(outlet).port for outlet in outlets}):
            stack.enter_context(take(here, of_pdu(port), holder, patience=TURN_S))
        supplies = stack.enter_context(open_supplies(rig, outlets, logs))
        if action == "off" and not any(map(_may_be_on, supplies)):
            off = {"on": False, "verified": True}
            return of_each(outlets, [off] * len(outlets)) | {"drives": []}
        host = here if rig.host.reach == "local" else None
        try:
            for sentence in chain.from_iterable(map(await_boot, cut_before)):
                _tell(sentence)
            host = stack.enter_context(open_host(rig.host, deadline=HOST_S))
            drives = _bound(rig, outlets, host, stack)
        except LeaseTaken:
            raise  # somebody tests a drive on it: no --yes cuts their power
        except RigTrouble as trouble:
            specs = _going_dark(rig, outlets)
            if host is not None:
                _ask_for_the_rest(host, specs, outlets)
            if not yes:
                raise _not_checked(outlets, trouble) from trouble
            return of_switched(outlets, _unchecked(specs, supplies, here, action)) | {"drives": []}
        feeds: Feeds = "host" if _feed_a_host(outlets) else "drive"
        if feeds == "drive":
            stack.enter_context(take(host, CUTS, holder, patience=TURN_S))
        leave = _leave(host, drives, feeds, stack)
        journal = stack.enter_context(Journal(here, "power"))
        bench = Bench(host, rig.host, journal)
        cut = _cycled if action == "cycle" else _cut
        done = cut(bench, supplies, drives, leave, feeds=feeds, abrupt=abrupt)
        verified = done.pop("verified")
        each = {"on": action == "cycle" if verified else None, "verified": verified}
        slots = [drive.spec.slot for drive in drives]
        return of_each(outlets, [each] * len(outlets)) | done | {"drives": slots}


def _tell(sentence: str) -> None:
    print(f"leadline: {sentence}", file=sys.stderr)


def _may_be_on(supply: Supply) -> bool:
    return not supply.pdu.reads_back() or supply.pdu.status()[supply.outlet]


def _feed_a_host(outlets: Sequence[OutletSpec]) -> bool:
    return any(outlet.feeds == "host" for outlet in outlets)


def _going_dark(rig: Rig, outlets: Sequence[OutletSpec]) -> list[DriveSpec]:
    """Every drive on these outlets, in the file's order."""
    fed = {drive.slot for outlet in outlets for drive in rig.sharing(outlet)}
    return [drive for drive in rig.drives if drive.slot in fed]


def _bound(rig: Rig, outlets: Sequence[OutletSpec], host: Host, stack: ExitStack) -> list[Drive]:
    """Every drive that goes dark, leased and bound: all are leased before anything else is looked
    into, for what is wrong with one of them is no leave to cut another that is being tested."""
    specs = _going_dark(rig, outlets)
    for spec in specs:
        stack.enter_context(take(host, spec.resource, holder_text("power")))
    for spec in specs:
        _refuse_half(rig, outlets, spec)
    return [bind(host, spec) for spec in specs]


def _refuse_half(rig: Rig, outlets: Sequence[OutletSpec], spec: DriveSpec) -> None:
    """Raise RigTrouble where not all was named that keeps this drive, or its host, alive."""
    together = rig.host_outlets() if _feed_a_host(outlets) else rig.outlets_of(spec)
    missing = [outlet for outlet in together if outlet not in outlets]
    if missing:
        all_of_it = "" if _feed_a_host(outlets) else f", or give --drive {spec.slot}"
        raise RigTrouble(
            f"{rig.path}: {_listed(missing)} feeds the same as {_listed(outlets)}, so nothing goes "
            f"dark without it; name all of them{all_of_it}"
        )


def _ask_for_the_rest(
    host: Host, specs: Sequence[DriveSpec], outlets: Sequence[OutletSpec]
) -> None:
    """Have the write guard refuse what it can be asked about, where something cannot be checked.

    One drive that is gone says nothing of those beside it, nor whose host goes dark.  Raises
    Misuse: whatever `yes` says, and before it is said that `yes` would do.
    """
    free: list[Drive] = []
    for spec in specs:
        with suppress(RigTrouble):
            drive = bind(host, spec)
            admit(host, spec, drive, "cut power").release()  # it comes back with a new node
            free.append(drive)
    if _feed_a_host(outlets):
        with suppress(RigTrouble):
            admit_host(host, free).release()


def _not_checked(outlets: Sequence[OutletSpec], trouble: RigTrouble) -> RigTrouble:
    whose = "their" if len(outlets) > 1 else "its"
    return RigTrouble(
        f"{trouble}\n  So the drives on {_listed(outlets)} cannot be checked, and {whose} power "
        "was not cut. To cut it all the same, give --yes"
    )


def _listed(outlets: Sequence[OutletSpec]) -> str:
    names = " and ".join(outlet.name for outlet in outlets)
    return f"outlet{'s' if len(outlets) > 1 else ''} {names}"


def _leave(
    host: Host, drives: Sequence[Drive], feeds: Feeds, stack: ExitStack
) -> Admission | HostAdmission:
    if feeds == "host":
        return stack.enter_context(admit_host(host, drives))
    for other in drives[1:]:
        admit(host, other.spec, other, "cut power").release()  # looked over; the first is held
    return stack.enter_context(admit(host, drives[0].spec, drives[0], "cut power"))


def _cycled(
    bench: Bench,
    supplies: Sequence[Supply],
    drives: Sequence[Drive],
    leave: Admission | HostAdmission,
    *,
    feeds: Feeds,
    abrupt: bool,
) -> dict[str, Any]:
    first, *sharing = drives
    disks = scan(bench.host)
    others = [Sight(bench.host, drive, disks) for drive in sharing]
    cycle = power_cycle(bench, first, supplies, leave, feeds=feeds, abrupt=abrupt, sharing=sharing)
    for other in others:
        *_, identity = await_ready(other, time.monotonic())
        unchanged_but_for(other.drive, identity, None)
    phases = {name: s and round(s, 3) for name, s in asdict(cycle.phases).items()}
    return {"verified": cycle.verified, "phases": phases}


def _cut(
    bench: Bench,
    supplies: Sequence[Supply],
    drives: Sequence[Drive],
    leave: Admission | HostAdmission,
    *,
    feeds: Feeds,
    abrupt: bool,
) -> dict[str, Any]:
    first, *sharing = drives
    dark = power_off(bench, first, supplies, leave, feeds=feeds, abrupt=abrupt, sharing=sharing)
    return {"verified": dark.verified, "gone_s": round(dark.gone_s, 3)}


def _unchecked(
    specs: Sequence[DriveSpec], supplies: Sequence[Supply], here: Host, action: str
) -> list[Switched]:
    """The outlets alone, by their readback if they have one; no drive is asked at all."""
    toll = Toll([Cut(spec, emergency_unload=True) for spec in specs], "power")  # maybe disks
    toll.afford()
    toll.count()
    if action == "off":
        return switch_all(supplies, on=False)
    with Journal(here, "power") as journal, lent(journal, supplies, lambda: None):
        off = switch_all(supplies, on=False)
        time.sleep(max(drive.off_s for drive in specs))
        on = switch_all(supplies, on=True)
    pairs = zip(off, on, strict=True)
    return [replace(late, verified=early.verified and late.verified) for early, late in pairs]
