"""The verified power cycle of one drive: off is proven, and so is who comes back.

Off is what the PDU's readback and the drive's absence say together; on is the
readback and the same IDENTIFY data.  A PDU that cannot be read back leaves a cycle
unverified, whatever the drive did.  Graceful: the drive is taken out of the kernel
first (`device/delete` flushes it and sends STANDBY IMMEDIATE), so that only a rescan
that finds nothing proves it gone.  Abrupt: it is never told.  The outlets end on,
whatever happens (`power.outlets`).
"""

import time
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Literal, Protocol

from leadline.drive.ask import Identity
from leadline.drive.bind import Drive, Seen, differences, scan
from leadline.drive.guard import HostAdmission
from leadline.drive.kernel_watch import KernelWatch
from leadline.errors import DriveFault, Misuse, RigTrouble
from leadline.host.connection import Host, HostLost
from leadline.host.journal import Journal
from leadline.inventory.rig import HostSpec
from leadline.power.dark import Eyes, HotPlug, Subject, WholeHost
from leadline.power.outlets import Rescan, lent
from leadline.power.sight import Sight
from leadline.power.supplies import Supply, command_seconds, off_by, switch_all

LOOK_S = 0.25
FIRST_RESCAN_S = 2.0  # most controllers notice by themselves
RESCAN_EVERY_S = 5.0  # a rescan resets an empty port: too often, and a disk never spins up


@dataclass(frozen=True)
class Dark:
    """How it went dark: the first `Phases`, and when, by the machine's clock, it was off."""

    announce_s: float
    command_s: float
    readback_s: float
    gone_s: float
    off_at: float
    verified: bool  # every outlet was read back as off


@dataclass(frozen=True)
class Phases:
    """How long each phase took, in seconds."""

    announce_s: float  # graceful: device/delete, or the host's shutdown; else nothing
    command_s: float  # the PDU had answered "off"
    readback_s: float  # after that: its status said off; nothing where it cannot tell
    gone_s: float  # from the readback: the drive was proven gone, which waits for off_s
    off_s: float  # from the readback until "on" was sent
    on_s: float  # from that until the status said on
    back_s: float  # from the readback of on: the kernel had the drive (with its host, booted)
    identify_s: float  # from there, too: it said who it is
    ready_s: float  # from there, too: it had read from its medium


@dataclass(frozen=True)
class PowerCycle:
    """A power cycle that went right.

    `window` are marks of the kernel watch before and after: error events between them
    are this cycle's doing.  `differences` in identity are empty but for a firmware
    revision that was expected, which is not among them.
    """

    before: Drive
    after: Drive
    feeds: Literal["drive", "host"]
    abrupt: bool
    phases: Phases
    window: tuple[int, int] | None
    verified: bool
    differences: tuple[str, ...]

    @property
    def ready_s(self) -> float:
        """Seconds from power on until the drive had read from its medium (boot included)."""
        return self.phases.ready_s


@dataclass(frozen=True)
class Bench:
    """What a cycle needs besides the drive and its outlets.

    `journal` is on this machine, not on the rig, whose power may be cut.
    """

    host: Host
    host_spec: HostSpec
    journal: Journal
    watch: KernelWatch | None = None


class Leave(Protocol):
    """The write guard's admission to cut the power, given up once it is cut."""

    def release(self) -> None: ...


def power_cycle(
    bench: Bench,
    drive: Drive,
    supplies: Sequence[Supply],
    leave: Leave,
    *,
    feeds: Literal["drive", "host"],
    abrupt: bool = False,
    expected_firmware: str | None = None,
    sharing: Sequence[Drive] = (),
) -> PowerCycle:
    """Cut the power of a drive, prove that it is off, and see the same drive come back.

    `supplies` are all outlets that feed it, switched together; `feeds` says whether
    they feed the drive alone or its whole host; `leave` is the guard's admission
    (`guard.admit` for "cut power", or `guard.admit_host`); `sharing` are the other
    drives that go dark with it.  With `expected_firmware` that revision must come
    back, and is the only difference allowed.

    Raises DriveFault when the drive comes back as another, slower, with a smaller
    queue, or not at all though its link is up; RigTrouble when power or the host are
    not proven; Misuse when the outlet feeds the machine that this runs on.
    """
    subject, sight = _subject(bench, drive, leave, feeds, sharing)
    mark = bench.watch.mark() if bench.watch else 0
    rescan = Rescan(bench.host_spec, sight.scan_path) if feeds == "drive" else None
    with lent(bench.journal, supplies, subject.put_back, rescan):
        phases, identity, verified = carry_out(
            subject, sight, supplies, leave, off_s=_off_s(drive, sharing), abrupt=abrupt
        )
    unchanged_but_for(drive, identity, expected_firmware)
    after = sight.bind(identity.firmware)
    as_fast_as_before(drive, after, abrupt=abrupt)
    window = (mark, bench.watch.mark()) if bench.watch else None
    return PowerCycle(drive, after, feeds, abrupt, phases, window, verified, ())


def power_off(
    bench: Bench,
    drive: Drive,
    supplies: Sequence[Supply],
    leave: Leave,
    *,
    feeds: Literal["drive", "host"],
    abrupt: bool = False,
    sharing: Sequence[Drive] = (),
) -> Dark:
    """Cut the power of a drive as `power_cycle` does, prove that it is off, and leave it so.

    Nothing switches it on again: it is off because somebody wanted it off.
    """
    subject, _ = _subject(bench, drive, leave, feeds, sharing)
    return go_dark(subject, supplies, leave, off_s=_off_s(drive, sharing), abrupt=abrupt)


def _off_s(drive: Drive, sharing: Sequence[Drive]) -> float:
    """As long as the slowest of those that go dark together needs."""
    return max(each.spec.off_s for each in (drive, *sharing))


def _subject(
    bench: Bench, drive: Drive, leave: Leave, feeds: str, sharing: Sequence[Drive]
) -> tuple[Subject, Sight]:
    if feeds == "host":
        _refuse_own_machine(bench.host)
    disks = scan(bench.host)
    sight = Sight(bench.host, drive, disks)
    others = [Sight(bench.host, other, disks) for other in sharing]
    if feeds != "host":
        return HotPlug(sight, others), sight
    at_risk = leave.at_risk if isinstance(leave, HostAdmission) else ()
    return WholeHost(bench.host, bench.host_spec, [sight, *others], at_risk), sight


def go_dark(
    subject: Subject, supplies: Sequence[Supply], leave: Leave, *, off_s: float, abrupt: bool
) -> Dark:
    """Announce, off, and the proof that it is off, `off_s` or more seconds later."""
    start = time.monotonic()
    subject.prepare(abrupt=abrupt)
    told = time.monotonic()
    switched = switch_all(supplies, on=False)
    off_at = time.monotonic()
    leave.release()  # while it is held, the kernel keeps the old node's name
    off = f"{' and '.join(map(str, supplies))} {off_by(switched)}"
    subject.prove_gone(abrupt=abrupt, off=off, discharged_at=off_at + off_s)
    command_s = command_seconds(supplies, switched)
    return Dark(
        announce_s=told - start,
        command_s=command_s,
        readback_s=off_at - told - command_s,
        gone_s=time.monotonic() - off_at,
        off_at=off_at,
        verified=all(one.verified for one in switched),
    )


def carry_out(
    subject: Subject,
    eyes: Eyes,
    supplies: Sequence[Supply],
    leave: Leave,
    *,
    off_s: float,
    abrupt: bool,
) -> tuple[Phases, Identity, bool]:
    """The cycle itself: announce, off, gone, wait, on, back, ready.

    Returns who came back, too, and whether every outlet was read back, off and on.
    """
    dark = go_dark(subject, supplies, leave, off_s=off_s, abrupt=abrupt)
    time.sleep(max(0.0, dark.off_at + off_s - time.monotonic()))
    on_from = time.monotonic()
    switched = switch_all(supplies, on=True)
    on_at = time.monotonic()
    subject.come_back()
    back, identified, ready, identity = await_ready(eyes, on_at)
    phases = Phases(
        announce_s=dark.announce_s,
        command_s=dark.command_s,
        readback_s=dark.readback_s,
        gone_s=dark.gone_s,
        off_s=on_from - dark.off_at,
        on_s=on_at - on_from,
        back_s=back - on_at,
        identify_s=identified - on_at,
        ready_s=ready - on_at,
    )
    return phases, identity, dark.verified and all(one.verified for one in switched)


def await_ready(eyes: Eyes, on_at: float) -> tuple[float, float, float, Identity]:
    """When the kernel had the drive, it identified itself, it had read; and who it is.

    The time that the rig file gives it runs from here: its host has booted by now.
    """
    spec = eyes.drive.spec
    limit = time.monotonic() + spec.ready_s
    next_rescan = time.monotonic() + FIRST_RESCAN_S
    back = identified = 0.0
    trouble, seen = "", None
    while True:
        seen = eyes.look().drive
        back = back or (time.monotonic() if seen else 0.0)
        if seen:
            try:
                identity = eyes.identity(seen)
                identified = identified or time.monotonic()
                eyes.read(seen)
            except HostLost:
                raise
            except (RigTrouble, DriveFault) as error:
                trouble = str(error)
            else:
                return back, identified, time.monotonic(), identity
        now = time.monotonic()
        if now >= limit:
            raise _not_back(eyes, seen, trouble, now - on_at)
        if not seen and now >= next_rescan:
            eyes.rescan()
            next_rescan = time.monotonic() + RESCAN_EVERY_S
        time.sleep(LOOK_S)


def _not_back(
    eyes: Eyes, seen: Seen | None, trouble: str, seconds: float
) -> DriveFault | RigTrouble:
    who = _who(eyes.drive)
    if seen:
        return DriveFault(
            f"{who}: not ready {seconds:.0f} s after power on, though the kernel has it as "
            f"{seen.name}: {trouble}"
        )
    if eyes.link_is_up():
        return DriveFault(
            f"{who}: not back {seconds:.0f} s after power on, though its SATA link is up, and so "
            "its power and cable are good"
        )
    return RigTrouble(
        f"{who}: not back {seconds:.0f} s after its outlet was switched on, and no link shows "
        "that power reaches it; check its cables and supply (one that feeds 3.3 V on pin 3 keeps "
        "SATA 3.3 drives off), and `ready_s` in the rig file"
    )


def unchanged_but_for(before: Drive, after: Identity, expected_firmware: str | None) -> None:
    """Raise DriveFault unless it is the same drive, with the firmware that is expected."""
    firmware = expected_firmware or before.identity.firmware
    changed = differences(before.identity, after)
    if after.firmware == firmware:
        changed = [change for change in changed if not change.startswith("firmware ")]
    elif expected_firmware and after.firmware == before.identity.firmware:
        changed.append(f"firmware is still {after.firmware!r} and {firmware!r} was to come")
    if changed:
        raise DriveFault(
            f"{_who(before)}: came back from a power cycle as another drive: {'; '.join(changed)}"
        )


def as_fast_as_before(before: Drive, after: Drive, *, abrupt: bool) -> None:
    """Raise DriveFault for a slower link or a smaller queue.

    RigTrouble where an abrupt cut has made libata lower the speed, for it counts the
    loss of the link among the drive's errors (its `spdn_cnt`).
    """
    was, now = (_gbps(drive) for drive in (before, after))
    if was and now and now < was:
        what = f"{_who(before)}: its link came back at {now:g} Gb/s and was at {was:g} Gb/s"
        if abrupt and after.link and after.link.speed_lowered:
            raise RigTrouble(
                f"{what}: our own abrupt cut counted as the drive's errors, and libata lowered "
                "the speed; cycle it gracefully, or boot the rig anew"
            )
        raise DriveFault(what)
    if before.queue_depth and after.queue_depth and after.queue_depth < before.queue_depth:
        raise DriveFault(
            f"{_who(before)}: came back with a device queue depth of {after.queue_depth}, and had "
            f"{before.queue_depth}"
        )


def _gbps(drive: Drive) -> float | None:
    """The link's speed, from sysfs' "6.0 Gbps"; None where there is none."""
    number = drive.link.speed.partition(" ")[0] if drive.link else ""
    return float(number) if number.replace(".", "", 1).isdigit() else None


def _who(drive: Drive) -> str:
    return f"slot {drive.spec.slot}: {drive.identity.model} {drive.identity.serial}"


def _refuse_own_machine(host: Host) -> None:
    own = Path("/proc/sys/kernel/random/boot_id").read_text().strip()
    if host.boot_id() == own:
        raise Misuse(
            f"{host.name}: its outlet feeds the machine that Leadline runs on, which would cut its "
            "own power; run it from another machine, or give the drive an outlet of its own"
        )
