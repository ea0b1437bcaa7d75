"""Cut outlets of a rig of which nobody knows what they feed, and see what goes dark.

Anything may: so before each cut every drive of the rig is taken out of the kernel, which
flushes it and sends STANDBY IMMEDIATE, and the host writes its own file systems out.  The
host is not shut down: if that outlet is not its own, nothing would switch it on again.
After the cut a rescan shows which drives still have power; then all of them are to come
back as themselves.

Every drive has to afford the cut, for any may go dark.  It is counted for those that do: of
those that are expected to, before it, for this may be killed; of others when they are seen.
"""

import time
from collections.abc import Collection, Sequence
from dataclasses import dataclass

from leadline.drive.bind import bind, scan
from leadline.drive.guard import admit_rig
from leadline.host.connection import HostLost
from leadline.inventory.rewrite import HOST
from leadline.inventory.rig import DriveSpec
from leadline.power import dark, wear
from leadline.power.comparison import unchanged_but_for
from leadline.power.cycle import Bench, Leave, await_ready
from leadline.power.dark import Eyes, Machine
from leadline.power.mapping import Observation, Place
from leadline.power.outlets import Rescan, lent
from leadline.power.sight import Look, Sight
from leadline.power.supplies import Supply, switch_all

SYNC = ("sync",)
SYNC_S = 120.0
LOOK_AGAIN_S = 5.0  # each look takes what is expected to go dark out of the kernel once more


@dataclass(frozen=True)
class Cut:
    """Outlets to be off together for `off_s` seconds at least, and the slots expected to go dark.

    `boot_s` is how long the host may take to come back, should it lose its power.
    """

    supplies: tuple[Supply, ...]
    expected: Collection[str]
    off_s: float
    boot_s: float


def black_out(bench: Bench, specs: Sequence[DriveSpec], cut: Cut) -> Observation:
    """Admit all drives of a rig, cut these outlets, see what goes dark, and all come back.

    `specs` are all drives of the rig.  Raises Refused when one of them may not lose its
    power; RigTrouble when an outlet does not do what it is told, a drive's budget is spent, or
    a drive or the host do not come back; DriveFault when a drive comes back as another one.
    """
    drives = [bind(bench.host, spec) for spec in specs]
    disks = scan(bench.host)
    eyes = [Sight(bench.host, drive, disks) for drive in drives]
    _toll(eyes, [HOST], bench.journal.run).afford()
    rescan = Rescan(bench.host_spec, tuple(_by_path(eyes)))
    with (
        admit_rig(bench.host, drives) as leave,
        lent(bench.journal, cut.supplies, lambda: _wake(eyes), rescan),
    ):
        return observe(bench.host, eyes, cut, leave, bench.journal.run)


def observe(
    machine: Machine, eyes: Sequence[Eyes], cut: Cut, leave: Leave, run: str
) -> Observation:
    """The cut itself; afterwards the outlets are on, and every drive is there and ready.

    It is counted as one that run `run` made.
    """
    began = time.monotonic()
    for one in eyes:
        one.delete()
    machine.run(SYNC, deadline=SYNC_S)
    boot = machine.boot_id()
    _toll(eyes, cut.expected, run).count()
    switched = switch_all(cut.supplies, on=False)
    off_at = time.monotonic()
    leave.release()  # while it is held, the kernel keeps the old nodes' names
    time.sleep(cut.off_s)
    looks = _looks(machine, eyes, cut.expected, off_at + cut.off_s + dark.HOLD_UP_S)
    switch_all(cut.supplies, on=True)
    on_at = time.monotonic()
    if looks is None:
        machine.reconnect(cut.boot_s)
    rebooted = looks is None and machine.boot_id() != boot
    gone = frozenset([HOST]) if rebooted else _dark(eyes, looks or ())
    _toll(eyes, gone, run, but=cut.expected).count()
    if not rebooted:  # a boot finds every drive, and may number its SCSI hosts otherwise
        for one, *_ in _by_path(eyes).values():
            one.rescan()
    for one in eyes:
        *_, identity = await_ready(one, on_at)
        unchanged_but_for(one.drive, identity, None)
    return Observation(
        places=tuple(Place(each.pdu.spec.name, each.outlet) for each in cut.supplies),
        dark=gone,
        strangers=_strangers(eyes, looks or ()),
        unseen=looks is None and not rebooted,
        verified=all(one.verified for one in switched),
        seconds=time.monotonic() - began,
    )


def _toll(
    eyes: Sequence[Eyes], words: Collection[str], run: str, *, but: Collection[str] = ()
) -> wear.Toll:
    """What it costs when these go dark, `but` those; with the host, every drive does.

    No heads are unloaded in an emergency: all drives have been told.
    """
    slots = _slots(eyes, words) - _slots(eyes, but)
    specs = [one.drive.spec for one in eyes if one.drive.spec.slot in slots]
    return wear.Toll([wear.Cut(spec, emergency_unload=False) for spec in specs], run)


def _slots(eyes: Sequence[Eyes], words: Collection[str]) -> frozenset[str]:
    every = frozenset(one.drive.spec.slot for one in eyes)
    return every if HOST in words else every & frozenset(words)


def _looks(
    machine: Machine, eyes: Sequence[Eyes], expected: Collection[str], limit: float
) -> list[Look] | None:
    """What the kernel has of each drive; None when the host has gone.

    While nothing at all is dark and something is expected to be, it may live on what its
    supply has stored: then it is taken out again, and looked for again, until `limit`.
    """
    while True:
        try:
            if not machine.alive():
                return None
            _wake(eyes)
            looks = [one.look() for one in eyes]
        except HostLost:
            return None
        nothing = not _dark(eyes, looks) and not _strangers(eyes, looks)
        if not (nothing and expected) or time.monotonic() >= limit:
            return looks
        time.sleep(min(LOOK_AGAIN_S, max(0.0, limit - time.monotonic())))
        for one in eyes:
            if one.drive.spec.slot in expected:
                one.delete()


def _dark(eyes: Sequence[Eyes], looks: Sequence[Look]) -> frozenset[str]:
    pairs = zip(eyes, looks, strict=False)
    return frozenset(one.drive.spec.slot for one, look in pairs if look.drive is None)


def _strangers(eyes: Sequence[Eyes], looks: Sequence[Look]) -> tuple[str, ...]:
    """The disks besides the rig's that were there before and are not, by all the looks."""
    ours = {one.key for one in eyes}
    known = {key: name for one in eyes for key, name in one.known.items() if key not in ours}
    there = {key for look in looks for key in look.others}
    return tuple(name for key, name in known.items() if looks and key not in there)


def _wake(eyes: Sequence[Eyes]) -> None:
    """Look for the drives again, whose disks then leave standby: one SCSI host after the other."""
    for on_one_host in _by_path(eyes).values():
        on_one_host[0].rescan()
        time.sleep(max(one.drive.spec.spin_up_gap_s for one in on_one_host))


def _by_path(eyes: Sequence[Eyes]) -> dict[str, list[Eyes]]:
    """Those on each SCSI host, by where that is told to look again."""
    by_path: dict[str, list[Eyes]] = {}
    for one in eyes:
        by_path.setdefault(one.scan_path, []).append(one)
    return by_path
