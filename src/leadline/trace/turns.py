"""Replays on the drive of a visit, with NCQ off and on by turns; each on record as it ends."""

import time
from collections.abc import Collection, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

import numpy as np

from leadline.depths import admit_depths
from leadline.drive import queue_depth, settings
from leadline.drive.conditions import Conditions, look
from leadline.drive.disturbances import Asked, compare
from leadline.drive.finding import OTHER_COMMANDS, SCATTERS, Finding, failed
from leadline.errors import put_back_after
from leadline.load.slices import BUSY_THREAD, FIO_CPU
from leadline.load.workload import random_read
from leadline.plans import alternating
from leadline.results.rows import finding_row
from leadline.results.schema import Environment, Phase
from leadline.trace.fitting import Fitted, Reach, fit
from leadline.trace.replay_job import Replay, Timing
from leadline.trace.replaying import replay
from leadline.trace.rounds import Replayed, Round
from leadline.trace.trace import SYNC, WRITE, Trace

if TYPE_CHECKING:
    from leadline.vetting import Vetting
    from leadline.visiting import OpenVisit

UNQUEUED = 1
"""A device queue depth at which commands are not queued at all: READ DMA."""
MOST_TOGETHER = 10_000
"""Requests of a trace of which both replays of a round are one process of fio.  It holds the iologs
of both, and beside a longer one its start is nothing."""
SHORTEST_S = 1e-3
"""fio's clock for a job: what took less took 0."""


@dataclass(frozen=True, eq=False)
class Fit:
    """A trace made to fit the drive; `in_flight` is how many of its requests are kept there."""

    name: str
    fitted: Fitted
    in_flight: int


@dataclass(frozen=True)
class Turns:
    """The drive is this one's: admitted to, its settings pinned.

    `depth` is the device queue depth with NCQ on, None for a drive without it; `writes` whether
    it may be written to; `reach` how far on it replays have come; `vetting` what is known of its
    surroundings.
    """

    visit: "OpenVisit"
    vetting: "Vetting"
    depth: int | None
    writes: bool
    reach: Reach

    def fit(
        self, name: str, trace: Trace, traced_bytes: int, in_flight: int, most: int | None
    ) -> Fit:
        """A trace of a drive of `traced_bytes`, or its first `most` requests, for this drive."""
        fitted = fit(
            trace,
            capacity_bytes=self.visit.kernel_capacity_bytes(),
            traced_bytes=traced_bytes,
            block_bytes=self._logical_block_bytes(),
            writes=self.writes,
            most=most,
        )
        return Fit(name, fitted, in_flight)

    def round(self, asked: Fit, number: int, timing: Timing = "fast") -> Round:
        """One replay with NCQ off and one with it on; every other round the other way round.

        `number` counts the rounds of this trace from 0.  Raises as `replay` and
        `queue_depth.set_depth` do.
        """
        depths = (UNQUEUED,) if self.depth is None else (UNQUEUED, self.depth)
        order = [depths[side] for side in alternating(number, len(depths))]
        # All threads of a replay with its timing kept are to begin at once: it has its own fio.
        together = timing == "fast" and len(asked.fitted.trace) <= MOST_TOGETHER
        batches = [order] if together else [[depth] for depth in order]
        said = f"{asked.name}, round {number + 1}"
        done: dict[int, Replayed] = {}
        for batch in batches:
            # Whatever forbids one of the depths is said now; the first one's is set last.
            for depth in reversed(batch):
                self._set_depth(depth)
            done |= zip(batch, self._undisturbed(said, asked, batch, timing), strict=True)
        return Round(off=done[UNQUEUED], on=done.get(self.depth or 0))

    def _undisturbed(
        self, said: str, asked: Fit, depths: Sequence[int], timing: Timing
    ) -> Sequence[Replayed]:
        """Replays at these depths; again while the rig's processors are kept from it."""
        station, cell = self.visit.station, self.visit.visit.cell.id
        done, names = self._replayed(said, asked, depths, timing)
        while self.visit.patience.again(names, given_up_s := sum(each.seconds for each in done)):
            station.record.add(Phase(cell=cell, name="drive", seconds=given_up_s))
            done, names = self._replayed(said, asked, depths, timing)
        return done

    def _replayed(
        self, said: str, asked: Fit, depths: Sequence[int], timing: Timing
    ) -> tuple[Sequence[Replayed], Collection[str]]:
        """Replays at these depths, and the name of each check around them that failed.

        They are void by these, as the slices of a batch are, but for those that SCATTERS has.
        """
        visit, drive = self.visit, self.visit.drive
        host, vetting = visit.station.host, self.vetting
        replays = [
            Replay(
                self.reach.next_of(asked.fitted),
                asked.in_flight,
                queued=depth > UNQUEUED,
                depth=depth if len(depths) > 1 else None,
            )
            for depth in depths
        ]
        at = " and ".join(map(str, depths))
        self._show(f"{said}, device queue depth {at}", replays)
        before = look(host, vetting.around, before=True)
        done = replay(
            *(host, drive.node, replays, timing),
            writes=self.writes,
            depth_path=queue_depth.path(drive),
        )
        after = look(host, vetting.around, before=False)
        findings = compare(vetting.pinned, before, after, _asked_of(replays, done))
        if any(np.any(each.trace.kind == SYNC) for each in replays):
            findings = tuple(_flushes_known(each, after) for each in findings)
        cell, now = visit.visit.cell.id, time.time()
        what = f"replay of {said}, device queue depth {at}"
        visit.station.record.add(*(finding_row(cell, what, now, each) for each in findings))
        names = {each.name for each in failed(findings)}
        checked = [_void_by(each, names - SCATTERS) for each in done]
        for depth, each in zip(depths, checked, strict=True):
            self._keep(f"{said}, device queue depth {depth}", each)
        return checked, names

    def _show(self, said: str, replays: Sequence[Replay]) -> None:
        requests = sum(len(each.trace) for each in replays)
        cell = self.visit.visit.cell.id
        self.visit.station.live.show(f"  {cell}: {said}: {requests} requests under way")

    def give_back(self) -> None:
        """The device queue depth as the kernel had it."""
        self._set_depth(self.visit.kernel_queue_depth)

    def _set_depth(self, depth: int) -> None:
        visit, station = self.visit, self.visit.station
        queue_depth.set_depth(station.host, station.journal, visit.drive, depth, visit.ladder)

    def _logical_block_bytes(self) -> int:
        path = f"/sys/block/{self.visit.drive.name}/queue/logical_block_size"
        return int(self.visit.station.host.read_file(path))

    def _keep(self, which: str, seen: Replayed) -> None:
        """A run that is killed keeps what it has measured."""
        cell = self.visit.visit.cell
        void = f"; VOID: {', '.join(seen.voids)}" if seen.voids else ""
        said = (
            f"reads: {seen.reads.count} of {1e3 * seen.reads.mean_s:.6g} ms on average; "
            f"writes: {seen.writes.count} of {1e3 * seen.writes.mean_s:.6g} ms; "
            f"in {seen.seconds:.6g} s{void}"
        )
        name = f"replay on {cell.id} of {which}"
        self.visit.station.record.add(Environment(rig=cell.rig, name=name, value=said))


def _asked_of(replays: Sequence[Replay], done: Sequence[Replayed]) -> Asked:
    """What replays asked of the drive, and how fast the fastest of them was."""
    traces = [each.trace for each in replays]
    sizes = [int(trace.length[trace.kind <= WRITE].sum(dtype=np.int64)) for trace in traces]
    rates = [size / max(each.seconds, SHORTEST_S) for size, each in zip(sizes, done, strict=True)]
    # Part of a trace is meant to fill the link: what it loses is seen even so.
    return Asked(sum(sizes), max(rates), sequential=True)


def _void_by(done: Replayed, names: Collection[str]) -> Replayed:
    busy = [FIO_CPU] if done.cpu > BUSY_THREAD else []
    return replace(done, voids=(*done.voids, *names, *busy))


def _flushes_known(found: Finding, after: Conditions) -> Finding:
    """Flushes that a kernel before 5.5 does not count look like commands of somebody else."""
    if found.name != OTHER_COMMANDS or after.io is None or after.io.flushes:
        return found
    return replace(found, outcome="unknown", found=f"{found.found}; the kernel counts no flushes")


@contextmanager
def turns(visit: "OpenVisit", reach: Reach | None = None) -> Iterator[Turns]:
    """The drive of a visit made ready for replays, and its queue depth given back.

    `reach` is what replays before these have left.  It is written to where both keys allow it.
    Raises as `OpenVisit.admitted` does, and DriveFault where something has taken away the NCQ that
    the drive has, be it since the ladder was climbed.
    """
    station = visit.station
    depth = depth_of(visit)  # by the ladder, which is climbed before anything is set
    admit_depths(visit, ())  # no NCQ is brought back that error handling has switched off
    writes = visit.spec.writes == "allowed" and station.run.allow_writes
    visit.admitted("write" if writes else "change a setting")
    vetting = visit.pinned(random_read())
    settings.pin(station.host, station.journal, visit.drive)
    opened = Turns(visit, vetting, depth, writes, reach or Reach())
    try:
        with put_back_after("the device queue depth", opened.give_back):
            yield opened
    finally:
        station.live.clear()


def depth_of(visit: "OpenVisit") -> int | None:
    """The device queue depth with NCQ on: the deepest that drive and adapter hold, whatever the
    kernel was left with.  None for a drive that has no NCQ: it is the baseline.

    So is one behind an IDE port, which hides whether it has.  A drive that has NCQ, and on which
    something took it away, is no baseline: setting its depth fails, and says what did.
    """
    if any(rung.name == "advertised" and rung.holds is False for rung in visit.ladder.rungs):
        return None
    advertised = visit.drive.identify.ncq.queue_depth if visit.drive.identify else UNQUEUED
    if max(visit.kernel_queue_depth, advertised) <= UNQUEUED:
        return None
    deepest = queue_depth.deepest(visit.station.host, visit.drive)
    # Older kernels keep one of the 32 tags for themselves, and refuse a depth of 32.
    kept = visit.kernel_queue_depth == queue_depth.NCQ_DEPTH - 1
    return min(deepest, visit.kernel_queue_depth) if kept else deepest


def ncq_off_of(timing: Timing) -> str:
    """What NCQ off is in replays, in words; "" where requests are passed on as they come."""
    if timing == "kept":
        return ""
    return (
        "NCQ off is one request at a time, in the order of the trace; how long as many as with NCQ "
        "on wait for each other then follows from that"
    )


def ncq_on_of(visit: "OpenVisit", depth: int | None) -> str:
    """What NCQ on is in replays, in words; "" for a drive without it."""
    if depth is None:
        return ""
    left = visit.kernel_queue_depth
    other = "" if left == depth else f"; it was left at {left}, which is put back"
    return f"NCQ on is a device queue depth of {depth}, the deepest of this drive{other}"
