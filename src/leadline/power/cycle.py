"""The verified power cycle of one drive: off is proven, and so is who comes back.

Off is what the PDU's readback and the drive's absence say together; on is the
readback and the same IDENTIFY data.  A PDU that cannot be read back leaves a cycle
unverified, whatever the drive did.  Graceful: the drive is taken out of the kernel
first (`device/delete` flushes it and sends STANDBY IMMEDIATE), so that only a rescan
that finds nothing proves it gone.  Abrupt: it is never told.  The outlets end on,
whatever happens (`power.outlets`).
"""

import math
import time
from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Literal, Protocol

from leadline.drive import smart
from leadline.drive.ask import Identity
from leadline.drive.bind import Drive, Seen, another, differences, scan
from leadline.drive.guard import HostAdmission
from leadline.drive.kernel_watch import KernelWatch
from leadline.drive.smart import SmartSnapshot
from leadline.errors import DriveFault, Misuse, RigTrouble
from leadline.host.connection import Host, HostLost
from leadline.host.journal import Journal
from leadline.inventory.rig import HostSpec
from leadline.power.comparison import as_fast_as_before, no_errors_counted, unchanged_but_for
from leadline.power.dark import Eyes, HotPlug, Subject, WholeHost
from leadline.power.outlets import Rescan, lent
from leadline.power.phases import Arrival, Dark, NotReady, Phases
from leadline.power.sight import Sight
from leadline.power.supplies import Supply, command_seconds, hear_from, off_by, switch_all
from leadline.power.wear import Cut, Toll, Wear, wear_of

LOOK_S = 0.25
FIRST_RESCAN_S = 2.0  # most controllers notice by themselves
_NONE: Mapping[str, int] = {}
RESCAN_EVERY_S = 5.0  # a rescan resets an empty port: too often, and a disk never spins up


@dataclass(frozen=True)
class PowerCycle:
    """A power cycle that went right.

    `window` are marks of the kernel watch before and after: error events between them
    are this cycle's doing.  `smart` are the drive's counters before and after; `wear` is how
    often its power has been cut by now.  One that `activates` firmware ends with another on the
    drive, which may say other things of itself.
    """

    before: Drive
    after: Drive
    feeds: Literal["drive", "host"]
    abrupt: bool
    phases: Phases
    window: tuple[int, int] | None
    verified: bool
    smart: tuple[SmartSnapshot, SmartSnapshot]
    wear: Wear
    activates: bool = False

    @property
    def differences(self) -> tuple[str, ...]:
        """What the drive says of itself that it did not say before; of what new firmware brings
        only that it is another drive."""
        compare = another if self.activates else differences
        return tuple(compare(self.before.identity, self.after.identity))

    @property
    def ready_s(self) -> float:
        """Seconds from power on until the drive had read from its medium (boot included)."""
        return self.phases.ready_s


@dataclass(frozen=True)
class Bench:
    """What a cycle needs besides the drive and its outlets.

    `journal` is on this machine, not on the rig, whose power may be cut; `rig_journal` is on
    the rig, for the lights of its enclosures.  Without a `watch` nobody knows what the
    kernel says meanwhile.
    """

    host: Host
    host_spec: HostSpec
    journal: Journal
    watch: KernelWatch | None = None
    rig_journal: Journal | None = None


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
    when_dark: Callable[[], None] = lambda: None,
    kept: Mapping[str, int] = _NONE,
) -> PowerCycle:
    """Cut the power of a drive, prove that it is off, and see the same drive come back.

    `supplies` are all outlets that feed it, switched together; `feeds` says whether
    they feed the drive alone or its whole host; `leave` is the guard's admission
    (`guard.admit` for "cut power", or `guard.admit_host`); `sharing` are the other
    drives that go dark with it.  `expected_firmware` has been flashed, and is activated by
    this: it must come back, on the same drive by model, serial and WWN, and nothing else is
    compared.  `when_dark` is called when it is proven to be off, and the drives beside it are
    watched no more.  `kept` is how many power cycles of a drive's budget are to be left after
    this one, by slot.

    Raises DriveFault when the drive comes back as another, slower, with a smaller queue,
    with more errors counted, or not at all though its link is up (NotReady); RigTrouble when
    power or the host are not proven, and before anything is cut where the drive's budget is
    spent; Misuse when the outlet feeds the machine that this runs on.
    """
    subject, (sight, *others), toll = _subject(
        bench, drive, leave, feeds, sharing, abrupt=abrupt, kept=kept
    )
    hear_from(supplies)
    counted = smart.snapshot(bench.host, drive.node)
    mark = bench.watch.mark() if bench.watch else 0
    paths = tuple(dict.fromkeys(one.scan_path for one in (sight, *others)))
    rescan = Rescan(bench.host_spec, paths) if feeds == "drive" else None
    with lent(bench.journal, supplies, subject.put_back, rescan):
        phases, identity, verified = carry_out(
            subject,
            sight,
            supplies,
            leave,
            toll,
            off_s=_off_s(drive, sharing),
            abrupt=abrupt,
            when_dark=when_dark,
        )
    unchanged_but_for(drive, identity, expected_firmware)
    after = sight.bind(identity.firmware)
    counts = counted, smart.snapshot(bench.host, after.node)
    activates = expected_firmware is not None
    if not activates:
        as_fast_as_before(drive, after, abrupt=abrupt, events=sight.said_since_attached(after))
        no_errors_counted(drive, *counts, abrupt=abrupt)
    window = (mark, bench.watch.mark()) if bench.watch else None
    wear = wear_of(drive.spec)
    return PowerCycle(
        drive, after, feeds, abrupt, phases, window, verified, counts, wear, activates
    )


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

    Nothing switches it on again: it is off because somebody wanted it off.  Where it does not
    get that far, drives that were taken out of the kernel are looked for again.
    """
    subject, _, toll = _subject(bench, drive, leave, feeds, sharing, abrupt=abrupt)
    hear_from(supplies)
    off_s = _off_s(drive, sharing)
    try:
        return go_dark(subject, supplies, leave, toll, off_s=off_s, abrupt=abrupt)
    except BaseException:
        with suppress(RigTrouble):
            subject.put_back()
        raise


def _off_s(drive: Drive, sharing: Sequence[Drive]) -> float:
    """As long as the slowest of those that go dark together needs."""
    return max(each.spec.off_s for each in (drive, *sharing))


def _subject(
    bench: Bench,
    drive: Drive,
    leave: Leave,
    feeds: str,
    sharing: Sequence[Drive],
    *,
    abrupt: bool,
    kept: Mapping[str, int] = _NONE,
) -> tuple[Subject, list[Sight], Toll]:
    """What goes dark, its drives, and whom the cut costs: which they can afford."""
    if feeds == "host":
        _refuse_own_machine(bench.host)
    disks = scan(bench.host)
    sights = [
        Sight(bench.host, each, disks, bench.watch, bench.rig_journal) for each in (drive, *sharing)
    ]
    cuts = [
        Cut(each.drive.spec, abrupt and each.rotates, kept.get(each.drive.spec.slot, 0))
        for each in sights
    ]
    toll = Toll(cuts, bench.journal.run)
    toll.afford()
    if feeds != "host":
        return HotPlug(sights[0], sights[1:]), sights, toll
    at_risk = leave.at_risk if isinstance(leave, HostAdmission) else ()
    return WholeHost(bench.host, bench.host_spec, sights, at_risk), sights, toll


def go_dark(
    subject: Subject,
    supplies: Sequence[Supply],
    leave: Leave,
    toll: Toll,
    *,
    off_s: float,
    abrupt: bool,
) -> Dark:
    """Announce, off, and the proof that it is off, `off_s` or more seconds later."""
    start = time.monotonic()
    subject.prepare(abrupt=abrupt)
    announced = time.monotonic()
    toll.count()
    told = time.monotonic()
    switched = switch_all(supplies, on=False)
    off_at = time.monotonic()
    leave.release()  # while it is held, the kernel keeps the old node's name
    off = f"{' and '.join(map(str, supplies))} {off_by(switched)}"
    subject.prove_gone(abrupt=abrupt, off=off, discharged_at=off_at + off_s)
    command_s = command_seconds(supplies, switched)
    return Dark(
        announce_s=announced - start,
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
    toll: Toll,
    *,
    off_s: float,
    abrupt: bool,
    when_dark: Callable[[], None] = lambda: None,
) -> tuple[Phases, Identity, bool]:
    """The cycle itself: announce, off, gone, wait, on, back, ready.

    Returns who came back, too, and whether every outlet was read back, off and on.
    """
    dark = go_dark(subject, supplies, leave, toll, off_s=off_s, abrupt=abrupt)
    when_dark()
    time.sleep(max(0.0, dark.off_at + off_s - time.monotonic()))
    on_from = time.monotonic()
    switched = switch_all(supplies, on=True)
    on_at = time.monotonic()
    subject.come_back()

    def phases(arrival: Arrival) -> Phases:
        return Phases(
            announce_s=dark.announce_s,
            command_s=dark.command_s,
            readback_s=dark.readback_s,
            gone_s=dark.gone_s,
            off_s=on_from - dark.off_at,
            on_s=on_at - on_from,
            **asdict(arrival),
        )

    try:
        arrival, identity = await_ready(eyes, on_at, on_from)
    except NotReady as late:
        late.phases = phases(late.arrival)
        raise
    return phases(arrival), identity, dark.verified and all(one.verified for one in switched)


def await_ready(eyes: Eyes, on_at: float, on_from: float | None = None) -> tuple[Arrival, Identity]:
    """When the drive came back, counted from `on_at`, and who it is.

    Its contacts closed somewhere between `on_from`, when "on" was sent, and the readback at
    `on_at`; without `on_from`, nobody asks when its link came up.  The time that the rig
    file gives it runs from here: its host has booted by now.  Raises NotReady, or
    RigTrouble where nothing shows that power reaches it.
    """
    limit = time.monotonic() + eyes.drive.spec.ready_s
    next_rescan = time.monotonic() + FIRST_RESCAN_S
    back = identified = math.inf
    trouble, seen = "", None
    while True:
        seen = eyes.look().drive
        back = min(back, time.monotonic() if seen else math.inf)
        if seen:
            try:
                identity = eyes.identity(seen)
                identified = min(identified, time.monotonic())
                eyes.read(seen)
            except HostLost:
                raise
            except (RigTrouble, DriveFault) as error:
                trouble = str(error)
            else:
                ready = time.monotonic()
                link_up = _link_up_s(eyes, on_at, on_from)
                return Arrival(link_up, back - on_at, identified - on_at, ready - on_at), identity
        now = time.monotonic()
        if now >= limit:
            link_up = _link_up_s(eyes, on_at, on_from)
            arrival = Arrival(link_up, back - on_at, identified - on_at, math.inf)
            raise _not_back(eyes, seen, trouble, now - on_at, arrival)
        if not seen and now >= next_rescan:
            eyes.rescan()
            next_rescan = time.monotonic() + RESCAN_EVERY_S
        time.sleep(LOOK_S)


def _link_up_s(eyes: Eyes, on_at: float, on_from: float | None) -> float | None:
    """0 where it was up before the outlet had been read back."""
    at = None if on_from is None else eyes.link_up_at(on_from)
    return None if at is None else max(0.0, at - on_at)


def _not_back(
    eyes: Eyes, seen: Seen | None, trouble: str, seconds: float, arrival: Arrival
) -> DriveFault | RigTrouble:
    who, where = _who(eyes.drive), eyes.point_out()
    if seen:
        return NotReady(
            f"{who}: not ready {seconds:.0f} s after power on, though the kernel has it as "
            f"{seen.name}: {trouble}{where}",
            arrival,
        )
    if eyes.link_is_up():
        return NotReady(
            f"{who}: not back {seconds:.0f} s after power on, though its SATA link is up, and so "
            f"its power and cable are good{where}",
            arrival,
        )
    return RigTrouble(
        f"{who}: not back {seconds:.0f} s after its outlet was switched on, and no link shows "
        "that power reaches it; check its cables and supply (one that feeds 3.3 V on pin 3 keeps "
        f"SATA 3.3 drives off), and `ready_s` in the rig file{where}"
    )


def _who(drive: Drive) -> str:
    return f"slot {drive.spec.slot}: {drive.identity.model} {drive.identity.serial}"


def _refuse_own_machine(host: Host) -> None:
    own = Path("/proc/sys/kernel/random/boot_id").read_text().strip()
    if host.boot_id() == own:
        raise Misuse(
            f"{host.name}: its outlet feeds the machine that Leadline runs on, which would cut its "
            "own power; run it from another machine, or give the drive an outlet of its own"
        )
