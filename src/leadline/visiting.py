"""One visit: one drive with one firmware, from the lease to the last test on it."""

import secrets
from collections.abc import Iterator, Sequence
from contextlib import ExitStack, contextmanager
from dataclasses import replace
from functools import partial
from typing import TYPE_CHECKING, Self

import pytest

from leadline.claims import NothingOnRecord, NotJudgedHere, NotPromised
from leadline.cycled import Cycled, Cycles
from leadline.cycling import cycle
from leadline.depth_curve import CurveSettings
from leadline.depths import admit_depth, admit_depths
from leadline.drive import arrivals, pair, queue_depth, settings, smart
from leadline.drive.bind import Drive, bind
from leadline.drive.finding import Finding, failed
from leadline.drive.guard import Admission, Purpose, admit
from leadline.drive.ladder import Ladder, climb
from leadline.drive.pair import Pair
from leadline.drive.quiet import await_quiet
from leadline.drive.request_limits import RequestLimits
from leadline.drive.said import says
from leadline.errors import NeverAsserted, RigTrouble, put_back_after
from leadline.evidence import needed_seconds
from leadline.flashing import flash, runs
from leadline.host.hugepages import reserved
from leadline.host.lease import Lease, holder_text, take
from leadline.inventory.must import overlooked
from leadline.inventory.plan import Visit
from leadline.judge import SliceJudge
from leadline.judging import Measured, judge_for
from leadline.kernel_faults import KernelFaults
from leadline.load.fio import run_slices
from leadline.load.jobs import hugepages_needed
from leadline.load.slices import Slice, SliceSetting, offered_for
from leadline.load.workload import Workload
from leadline.outcomes import NOT_OFFERED
from leadline.power.cycle import PowerCycle
from leadline.quantities import Load
from leadline.results.rows import cell_row, finding_row
from leadline.results.schema import Environment, Phase
from leadline.running import RECORDED
from leadline.stack.leftover import take_down_marked
from leadline.statements import Swept
from leadline.steadying import Steadying
from leadline.verdict.curve import CONCAVE_FROM
from leadline.vetting import Vetting, vet
from leadline.withheld import Patience

if TYPE_CHECKING:
    from leadline.station import Station

# How long a slice is to begin with; the judge lengthens it for a drive that needs more.
SLICE_S = {"ssd": 0.5, "hdd": 1.0}


class OpenVisit:
    """A drive under test: bound, leased, with the visit's firmware on it.

    A context manager.  Attributes change when the drive is power-cycled: its node and its
    kernel settings are new then, so that the ladder is climbed and settings are pinned anew.
    A drive that stands `beside` another visit's keeps the firmware that it has.
    """

    drive: Drive
    came_with: str
    """The firmware that it had when the visit began."""

    def __init__(
        self, station: "Station", visit: Visit, *, again: bool = False, beside: bool = False
    ) -> None:
        self.station = station
        self.visit = visit
        self._again = again  # flash it whatever it runs: to finish what a dead run began
        self._beside = beside
        self.spec = station.rig.drive(visit.cell.slot)
        self.model = station.run.matrix.model(visit.cell.model)
        self.kernel_faults = KernelFaults(station, visit.cell.id)
        self._ladder: Ladder | None = None
        self._pair: Pair | None = None
        self._vetting: Vetting | None = None
        self._steadying = Steadying(self)
        self._cycles = Cycles(partial(cycle, self))
        self._judges: list[tuple[pytest.Item, SliceJudge]] = []
        self.sweeps: dict[CurveSettings, Swept] = {}
        self.patience = Patience(station.live.say)
        self._lease: Lease | None = None
        self._admission: Admission | None = None
        self._open = ExitStack()

    def __enter__(self) -> Self:
        with ExitStack() as opening:
            station = self.station
            host, run = station.host, station.run
            cell = self.visit.cell
            if self.spec.slot in station.in_doubt and not self._again:
                raise RigTrouble(station.in_doubt[self.spec.slot])
            firmware = run.matrix.firmware(cell.model, cell.firmware)
            opening.enter_context(take(host, self.spec.resource, holder_text(run.id)))
            opening.callback(self.let_go)
            self.rebound(
                bind(
                    host,
                    self.spec,
                    firmware=firmware.shows,
                    or_firmware=[each.shows for each in self.model.firmware],
                    any_firmware=self._again,
                    controller=station.rig.controller_of(self.spec),
                )
            )
            await_quiet(host, {self.drive.name, *station.written}, station.live.say)
            self._take_down_marked()
            on = self.drive.controller
            if sentence := overlooked(run.matrix, cell, on.pci_id, on.driver):
                station.live.say(sentence)
            self.came_with = self.drive.identity.firmware
            if self._again or (not self._beside and not runs(self, firmware)):
                activated = flash(self)
                if activated is not None:
                    self._cycles.done[False].append(activated)
            # Before the counters: a drive that has no log directory aborts the command, and QEMU's
            # then report queued commands as failed until one that is not queued succeeds.
            said = None if self._beside else says(host, self.drive)
            self._smart = smart.snapshot(host, self.drive.node)
            if said is not None:
                row = cell_row(cell, self.drive, self._smart, firmware.sha256, said)
                station.record.add(row)
            self._open = opening.pop_all()
        return self

    def __exit__(self, *_: object) -> None:
        self._open.close()

    def rebound(self, drive: Drive) -> None:
        """The drive has a new node: what was known of the old one is void."""
        self.let_go()
        self.drive = drive
        self.kernel_faults.drives.append(drive)
        self._ladder = None
        self._pair = None
        self._vetting = None
        self.sweeps.clear()
        self._steadying.disturbed()

    def admitted(self, purpose: Purpose) -> Admission:
        """The write guard's leave, for as long as the drive keeps its node.

        The drive is looked over once and held exclusively from then on, so that nothing can
        come to live on it; each time after that it only confirms who it is.  Leave to write
        needs both keys, and is leave for anything else.  What it is leave for may end the
        steady state in which writes are judged.
        """
        if purpose != "change a setting":
            self._steadying.disturbed()
        return self._admitted(purpose)

    def _admitted(self, purpose: Purpose) -> Admission:
        if purpose == "write" and self._admission and self._admission.purpose != purpose:
            self.let_go()
        if self._admission is None or not self._admission.held:
            allow_writes = self.station.run.allow_writes
            self._admission = admit(self.station.host, self.spec, self.drive, purpose, allow_writes)
        else:
            self._admission.confirm()
        return self._admission

    def let_go(self) -> None:
        """Hold the drive no longer: its node is to come anew, or layers above it to claim it."""
        if self._admission is not None:
            if self._admission.purpose == "write":
                self.station.written.add(self.drive.name)
            self._admission.release()
            self._admission = None

    def _take_down_marked(self) -> None:
        """What a run built above the drive, and its rig forgot: under both keys alone."""
        if self.station.run.allow_writes and self.spec.writes == "allowed":
            for sentence in take_down_marked(self.station.host, self.drive.name):
                self.station.live.say(sentence)

    # What the drive and the kernel say.

    @property
    def kernel_queue_depth(self) -> int:
        """The device queue depth as the kernel had it when the drive was bound."""
        return self.drive.queue_depth or 1

    @property
    def ladder(self) -> Ladder:
        """The NCQ ladder, climbed once for each binding, before anything is written."""
        if self._ladder is None:
            history = self.station.watch.history()
            self._ladder = climb(self.station.host, self.drive, history)
            self.note("NCQ ladder of {}", self._ladder)
            if seen := self._ladder.overlap:
                load = Phase(cell=self.visit.cell.id, name="drive", seconds=seen.busy_s)
                self.station.record.add(load)
        return self._ladder

    @property
    def pair(self) -> Pair:
        """The drive on its controller, as the kernel set the two up; found once a binding."""
        if self._pair is None:
            history = self.station.watch.history()
            self._pair = pair.find(self.station.host, self.drive, history)
            self.note("controller of {}", self._pair)
        return self._pair

    def note(self, name: str, value: object) -> None:
        """Keep a fact about this cell with the run's environment."""
        cell = self.visit.cell
        row = Environment(rig=cell.rig, name=name.format(cell.id), value=str(value))
        self.station.record.add(row)

    def kernel_capacity_bytes(self) -> int:
        """The drive's size as the kernel sees it; sysfs counts in 512 bytes whatever the sector."""
        return int(self.station.host.read_file(f"/sys/block/{self.drive.name}/size")) * 512

    def request_limits(self) -> RequestLimits:
        """What the kernel allows a request to this drive to be, and its memory's pages."""
        return arrivals.read_limits(self.station.host, self.drive)

    @property
    def counts_errors(self) -> bool:
        """Whether the drive told any error counter when the visit began."""
        return smart.counts_errors(self._smart)

    def smart_changes(self) -> tuple[smart.Delta, ...]:
        """How the drive's own counters have changed since the visit began."""
        return smart.compare(self._smart, smart.snapshot(self.station.host, self.drive.node))

    # Load.

    def load(self, workload: Workload, item: pytest.Item, by: Measured | None = None) -> Load:
        """A workload for one test, with the judge that settles the test's claims.

        It is measured on the drive, or `by` somebody else, called as `measure` is.
        """
        full = queue_depth.deepest(self.station.host, self.drive)
        judge = self.judge(item, self.first_slice_s(), by)
        owed = queue_depth.owed(self.drive, self.model.queue_depth)
        made = Load(workload, judge, full, self.kernel_queue_depth, owed_depth=owed)
        channels = self.model.channels if by is None else None
        concave_from = CONCAVE_FROM[self.model.class_]
        admit = partial(admit_depth, self)
        return replace(made, channels=channels, concave_from=concave_from, admit=admit)

    def judge(
        self, item: pytest.Item, slice_s: float | None = None, by: Measured | None = None
    ) -> SliceJudge:
        """Settles the claims of one test; its slices are so long to begin with."""
        judge = judge_for(self, item, slice_s or SLICE_S[self.model.class_], by)
        self._judges.append((item, judge))
        return judge

    def first_slice_s(self) -> float:
        """Long enough for a claim about depth 8, by the rate at which the ladder's probe went."""
        seen = self.ladder.overlap
        needed = needed_seconds(offered_for(8), seen.rate) if seen and seen.rate else 0.0
        return max(SLICE_S[self.model.class_], needed)

    def measure(
        self,
        workload: Workload,
        wanted: Sequence[SliceSetting],
        *,
        name: str,
        remarks: dict[str, str],
    ) -> Sequence[Slice]:
        """One batch for the claim `name`, its settings pinned and its queue depth put back.

        What its checks found is kept, and said in `remarks` if it voids.
        """
        admit_depths(self, wanted)  # before a drive that does not queue is filled for minutes
        vetting = self.pinned(workload)
        admit_depths(self, wanted)  # error handling may have switched its queue off meanwhile
        done = self._steadying.done_for(workload)
        self.under_way(workload, wanted)
        with self.depth_put_back():
            slices, findings = vetting.measure(
                workload, partial(self.batch, workload, wanted), done
            )
        self.keep_findings(name, slices, findings, remarks)
        return slices

    def under_way(self, workload: Workload, wanted: Sequence[SliceSetting]) -> None:
        """Show what is about to be measured."""
        self.station.live.show(
            f"  {self.visit.cell.id}: {workload.name}, {len(wanted)} slices of "
            f"{wanted[0].seconds:.2g} s under way"
        )

    def batch(self, workload: Workload, wanted: Sequence[SliceSetting]) -> list[Slice]:
        """One batch, each slice at places of its own; a slice that is watched is one by itself."""
        host, node, depth_path = self.station.host, self.drive.node, queue_depth.path(self.drive)
        seeds = [secrets.randbits(31) for _ in wanted]

        def run() -> list[Slice]:
            with reserved(host, self.station.journal, hugepages_needed(workload, wanted)):
                return run_slices(host, node, workload, wanted, depth_path=depth_path, seeds=seeds)

        if not wanted[0].watched:
            return run()
        size = wanted[0].block_bytes or workload.block_bytes
        (measured,), arrived = arrivals.watch(host, self.drive, size, run)
        return [replace(measured, arrived=arrived)]

    @contextmanager
    def depth_put_back(self) -> Iterator[None]:
        """Whatever device queue depth the slices in here leave, the kernel's own comes after."""

        def put_back() -> None:
            depth = str(self.kernel_queue_depth)
            self.station.host.write_value(queue_depth.path(self.drive), depth)

        with put_back_after("the device queue depth", put_back):
            yield

    def keep_findings(
        self,
        name: str,
        slices: Sequence[Slice],
        findings: Sequence[Finding],
        remarks: dict[str, str],
    ) -> None:
        """Keep what the checks around a batch found, and say in `remarks` what voids it."""
        cell, taken = self.visit.cell.id, slices[0].began if slices else 0.0
        self.station.record.add(*(finding_row(cell, name, taken, each) for each in findings))
        for finding in failed(findings):
            remarks.setdefault(finding.name, str(finding))

    def pinned(self, workload: Workload) -> Vetting:
        """Settings pinned, once for each binding; a drive that is written to made steady first."""
        host, journal, ladder = self.station.host, self.station.journal, self.ladder
        if self._vetting is None or workload.writes:
            self._admitted("write" if workload.writes else "change a setting")
        if self._vetting is None:
            # Refuses, as the drive's fault, where error handling switched its queue off.
            queue_depth.set_depth(host, journal, self.drive, self.kernel_queue_depth, ladder)
            settings.pin(host, journal, self.drive)
            journal.borrow(queue_depth.path(self.drive))
            capacity = self.kernel_capacity_bytes()
            emulated = self.station.rig.virtual is not None
            self._vetting = vet(host, self.drive, self.model, capacity, emulated=emulated)
        if workload.writes and self._steadying.done_for(workload) is None:
            self._steadying.bring(workload, self._vetting.capacity_bytes)
            self._vetting.rewritten()
        return self._vetting

    # Power.

    def power_cycle(self, item: pytest.Item, *, abrupt: bool = False) -> Cycled:
        """The verified power cycle of this visit, carried out when it is first asked for."""
        cycled = Cycled(self._cycles, self.judge(item), abrupt)
        return cycled.times(1)

    def cycle_power(self, *, abrupt: bool) -> PowerCycle:
        """One more power cycle of this visit, in the middle of whatever is under way."""
        return self._cycles.one_more(abrupt=abrupt)

    # The kernel log.

    @contextmanager
    def test(self, item: pytest.Item) -> Iterator[None]:
        """A test's call: what the kernel said of the drive meanwhile, or in its setup, ends it.

        So does a claim that it leaves unasserted, by a load of its fixtures too: those are there
        before the call.
        """
        self.patience.next_test()
        try:
            yield
        # A skip and a fail are no Exceptions, and the drive has done what it has done.
        except (Exception, pytest.skip.Exception, pytest.fail.Exception) as error:
            self.kernel_faults.judge(item.nodeid, self.drive, error)
            if isinstance(error, NothingOnRecord | NotPromised | NotJudgedHere):
                item.stash[RECORDED] = isinstance(error, NotJudgedHere)
                lacks = NOT_OFFERED if isinstance(error, NotPromised) else ""
                pytest.skip(f"{lacks}{error}")
            raise
        finally:
            judges, self._judges = self._judges, []
            self.station.live.clear()
        self.kernel_faults.judge(item.nodeid, self.drive)
        forgotten = [claim for of, judge in judges if of is item for claim in judge.unasserted()]
        if forgotten:
            raise NeverAsserted(
                "stated and never asserted, so nobody knows whether it holds: "
                f"{'; '.join(map(str, forgotten))}; write `assert` in front of it"
            )
