"""Verified writes of one visit: a load, perhaps a power cycle, and what is there afterwards.

    assert verified_writes.read_back_at_once()
    assert verified_writes.outlast_a_power_cycle()
    assert verified_writes.outlast_a_power_cut()

Each is a load of its own.  What the drive owes is computed from what it acknowledged and
flushed (`integrity.history`); a sector that holds anything else is a DriveFault, which names it.
Where nothing is wrong, and the writes came to the drive one by one although it must queue, or no
IDENTIFY was answered beside them, there is no evidence of queued writes with other commands between
them: Inconclusive.
"""

import secrets
import time
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from typing import TYPE_CHECKING

from leadline.cycled import proven
from leadline.drive.ask import IDENTIFY_BYTES, IDENTIFY_DEVICE, INQUIRY
from leadline.errors import DriveFault, Inconclusive, Misuse, RigTrouble
from leadline.integrity.account import Account
from leadline.integrity.check import Checked
from leadline.integrity.intents import IntentLog
from leadline.integrity.pattern import SECTOR_BYTES
from leadline.integrity.plan import Plan
from leadline.integrity.session import Load, Target, read_back
from leadline.queued_writes import AtDrive, look, refuse_unqueued
from leadline.results.schema import Environment, Phase

if TYPE_CHECKING:
    from leadline.visiting import OpenVisit

LOAD_S = 15.0
"""Of mixed load, after the span has been filled."""
FOR_EVER_S = 86_400.0
STRETCHES, BLOCKS = 64, 512
MARGIN_BYTES = 1 << 20
"""Left alone at both ends of the drive, where partition tables and the marks of arrays are."""
MOST_IN_FLIGHT = 32

# What the kernel says of requests that were under way when the power went, besides what it says
# of every cut (`cycling`).
CUT_OFF = frozenset(
    {
        "command-timeout",
        "device-error",
        "exception",
        "flush-retried",
        "interface-error",
        "internal-command-timeout",
        "io-error",
        "log-10h-unreadable",
        "queued-command-timeout",
        "scsi-abort",
        "scsi-error",
        "scsi-reset",
        "scsi-timeout",
        "soft-reset",
        "transport-error",
    }
)


@dataclass(frozen=True)
class Intact:
    """A load of which nothing is missing: what was asked of the drive, and what was found.

    `writes` were acknowledged, `durable` of them flushed or written with FUA; `in_flight` is
    the most requests under way at once, `cut_off` how many there were when the power went.
    `at_drive` is what the drive was sent in a moment of it.
    """

    writes: int
    durable: int
    reads: int
    commands: int
    in_flight: int
    cut_off: int
    at_drive: AtDrive
    found: Checked

    @property
    def load(self) -> str:
        """What was asked of the drive, in words."""
        cut = f"; {self.cut_off} requests were cut off" if self.cut_off else ""
        return (
            f"{self.writes} writes were acknowledged, {self.durable} of them flushed or with FUA, "
            f"{self.reads} reads and {self.commands} IDENTIFY or INQUIRY beside them, at most "
            f"{self.in_flight} requests in flight ({self.at_drive}){cut}"
        )

    def __str__(self) -> str:
        found = self.found
        return (
            f"{self.load}; of {found.sectors} sectors {len(found.wrong)} are wrong, {found.older} "
            f"old and never flushed, {found.unheard} of writes that were not heard of"
        )


class VerifiedWrites:
    """The verified writes of one test."""

    def __init__(self, visit: "OpenVisit") -> None:
        self._visit = visit

    def __repr__(self) -> str:
        return "verified_writes"

    def read_back_at_once(self) -> Intact:
        """Write for a while, with reads and IDENTIFY beside it, and read everything back.

        Raises DriveFault at the first wrong read, and where a sector does not hold its last
        write; Misuse where the drive may not be written to; Inconclusive where the writes were
        not queued, as they must be, or no IDENTIFY was answered beside them.
        """
        with self._begun() as (plan, log):
            load = self._written(plan, log)
            return self._evidence(self._judged(*load, log, "read back at once"))

    def outlast_a_power_cycle(self) -> Intact:
        """The same, and again after a graceful power cycle: everything has to be there."""
        with self._begun() as (plan, log):
            load = self._written(plan, log)
            self._judged(*load, log, "read back before a power cycle")
            proven(self._visit.cycle_power(abrupt=False))
            return self._evidence(self._judged(*load, log, "after a graceful power cycle"))

    def outlast_a_power_cut(self) -> Intact:
        """Cut the power without a word in the middle of the load, and then read everything back.

        What was flushed, or written with FUA, has to be there; what was not may be old or new.
        Inconclusive where no request was under way when the power went, or nobody can tell
        whether it did, and where the writes were not queued, as they must be, or no IDENTIFY was
        answered beside them.
        """
        with self._begun() as (plan, log):
            began = time.monotonic()
            with Load(self._target(), plan, FOR_EVER_S, log) as load:
                load.until(lambda account: account.acknowledged >= plan.fills)
                # A slow rig takes most of it to set up what is watched: that is load, too.
                ends = time.monotonic() + LOAD_S
                at_drive = look(self._visit, load)
                load.until(_DurableAndOver(plan, ends))
                log.sync()
                # Until here: the power cycle has phases of its own.
                self._count_drive_time(time.monotonic() - began)
                with self._events_excused():
                    cycle = self._visit.cycle_power(abrupt=True)
                load.cut_off()
            proven(cycle)
            if load.account.ended or not load.account.history.under_way():
                raise Inconclusive(
                    f"{self._who}: no request was under way when the power went: the load had "
                    "ended by then, so the power cut proves nothing"
                )
            when = "after an abrupt power cut"
            return self._evidence(self._judged(load.account, at_drive, log, when, cut=True))

    def _written(self, plan: Plan, log: IntentLog) -> tuple[Account, AtDrive]:
        """A load that ended in order, all of its reads right; and what the drive was sent in it."""
        began = time.monotonic()
        with Load(self._target(), plan, LOAD_S, log) as load:
            at_drive = look(self._visit, load)
            load.until(lambda account: False)
        self._count_drive_time(time.monotonic() - began)
        return load.account, at_drive

    def _evidence(self, intact: Intact) -> Intact:
        """The same, as evidence of writes that were queued, as they must be, and of IDENTIFY."""
        refuse_unqueued(self._visit, self._who, intact.at_drive)
        if not intact.commands:
            raise Inconclusive(
                f"{self._who}: nothing is wrong with its data, but no IDENTIFY or INQUIRY was "
                "answered beside the writes, and so they prove nothing of writes with such "
                f"commands between them ({intact.load}). See with `leadline identify` whether the "
                "drive answers promptly, and run this again"
            )
        return intact

    def _judged(
        self, account: Account, at_drive: AtDrive, log: IntentLog, when: str, *, cut: bool = False
    ) -> Intact:
        visit, began = self._visit, time.monotonic()
        visit.station.live.show(f"  {visit.visit.cell.id}: verified writes, {when}")
        found = read_back(self._target(), account, cut=cut, log=log)
        self._count_drive_time(time.monotonic() - began)
        history = account.history
        intact = Intact(
            writes=account.acknowledged,
            durable=history.durable,
            reads=account.reads,
            commands=account.commands,
            in_flight=account.most_under_way,
            cut_off=history.under_way(),
            at_drive=at_drive,
            found=found,
        )
        name = f"verified writes of {visit.visit.cell.id}, {when}"
        row = Environment(rig=visit.visit.cell.rig, name=name, value=str(intact))
        visit.station.record.add(row)
        if found.wrong:
            raise DriveFault(
                f"{self._who}: {when}, {len(found.wrong)} of {found.sectors} sectors are wrong. "
                f"The first: {found.wrong[0]}. Before that, {intact.load}. Request by request: "
                f"{log.path}"
            )
        return intact

    @contextmanager
    def _begun(self) -> Iterator[tuple[Plan, IntentLog]]:
        """Leave to write, and the intents on record."""
        visit = self._visit
        visit.admitted("write")
        cell, record = visit.visit.cell.id, visit.station.record
        plan = plan_for(visit.kernel_capacity_bytes(), self._block_bytes(), self._who)
        visit.station.live.say(
            f"{cell}: verified writes on {plan.stretches} stretches of "
            f"{plan.blocks * plan.block * SECTOR_BYTES >> 10} KiB from LBA {plan.first} to "
            f"{plan.last}: what they held is lost"
        )
        path = record.directory / "integrity" / record.run_id / f"{cell}-{plan.seed:016x}.log"
        facts = {"cell": cell, "serial": visit.spec.serial, "drive": self._who}
        with IntentLog(path, plan, facts) as log:
            yield plan, log

    @contextmanager
    def _events_excused(self) -> Iterator[None]:
        """What the kernel says meanwhile of requests that are cut off is our doing."""
        visit = self._visit
        begin = visit.station.watch.mark()
        try:
            yield
        finally:
            with suppress(RigTrouble):  # a host that does not come back has no log to show
                visit.kernel_faults.excuse(begin, visit.station.watch.mark(), CUT_OFF)

    def _target(self) -> Target:
        """The drive as it is called now."""
        visit = self._visit
        ata = visit.drive.identify is not None
        return Target(
            visit.station.host,
            visit.drive.node,
            self._who,
            in_flight=min(visit.kernel_queue_depth, MOST_IN_FLIGHT),
            command=IDENTIFY_DEVICE if ata else INQUIRY,
            length=IDENTIFY_BYTES if ata else INQUIRY[4],
        )

    def _block_bytes(self) -> int:
        path = f"/sys/block/{self._visit.drive.name}/queue/logical_block_size"
        return int(self._visit.station.host.read_file(path))

    def _count_drive_time(self, seconds: float) -> None:
        visit = self._visit
        visit.station.record.add(Phase(cell=visit.visit.cell.id, name="drive", seconds=seconds))

    @property
    def _who(self) -> str:
        identity = self._visit.drive.identity
        return f"slot {self._visit.spec.slot}: {identity.model} {identity.serial}"


@dataclass(frozen=True)
class _DurableAndOver:
    """Whether every sector of the span has a durable write, and the time has come (monotonic)."""

    plan: Plan
    ends: float

    def __call__(self, account: Account) -> bool:
        return account.history.covered >= self.plan.sectors and time.monotonic() >= self.ends


def plan_for(capacity_bytes: int, block_bytes: int, who: str) -> Plan:
    """A plan with a seed of its own, on stretches from one end of the drive to the other.

    So a fault of addressing that folds one part of the drive upon another is met, too.  Raises
    Misuse for a drive that is too small.
    """
    stretch = BLOCKS * block_bytes
    room = capacity_bytes - 2 * MARGIN_BYTES - stretch
    stride = room // (STRETCHES - 1) // MARGIN_BYTES * MARGIN_BYTES
    if stride < stretch:
        raise Misuse(f"{who}: {capacity_bytes} bytes are too few for verified writes")
    return Plan(
        seed=secrets.randbits(63),
        first=MARGIN_BYTES // SECTOR_BYTES,
        stride=stride // SECTOR_BYTES,
        stretches=STRETCHES,
        blocks=BLOCKS,
        block=block_bytes // SECTOR_BYTES,
    )
