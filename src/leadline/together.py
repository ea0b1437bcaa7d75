"""Loads on layers above the drive of a visit, and on several drives at once.

    assert random_mix_on("lvm").at(depth=8) >= 2 * ...
    assert random_read_over(4).at(depth=8, drives=4) >= 3 * ...
    assert sequential_read_over(4).at(depth=8, threads=16, drives=4) >= 3 * ...

The other drives are of the same model and firmware and on the same path, so that no other worker
of this run has them; each is leased, bound and admitted as the visit's own is.  The layers are on
record before the first is built, and are taken down when the test ends.
"""

import secrets
from collections.abc import Iterator, Mapping, Sequence
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass, field, replace
from functools import partial
from typing import TYPE_CHECKING, Self, cast

import pytest

from leadline.depths import ANY_QUEUE, admit_depth, admit_depths
from leadline.drive import queue_depth
from leadline.drive.conditions import Conditions, look, together
from leadline.drive.disturbances import Asked, compare
from leadline.drive.finding import Finding
from leadline.drive.steal import watching
from leadline.errors import Misuse
from leadline.inventory.plan import Visit
from leadline.inventory.rig import DriveSpec
from leadline.inventory.shared import shared_paths
from leadline.load.aim import Aim
from leadline.load.fio import run_aimed
from leadline.load.precondition import precondition, price
from leadline.load.slices import Slice, SliceSetting
from leadline.load.target import CACHES, DEFAULT_CACHE_BYTES, check_span
from leadline.load.workload import Workload, random_mix, random_read, sequential_read
from leadline.quantities import Load
from leadline.results.schema import Environment, Phase
from leadline.stack.build import Layer, build, check, drives_of
from leadline.stack.dismantle import dismantle
from leadline.stack.leftover import put_on_record
from leadline.stack.mark import Mark
from leadline.vetting import asked_of, voided
from leadline.visiting import OpenVisit

if TYPE_CHECKING:
    from leadline.running import Run

UNSURE = 0.05
"""Share by which what reaches the drives may differ from what was asked of layers that are
written: nobody counts which requests of a mix were writes, and a file system has its own."""
MIB = 1 << 20
LEAST_SPAN = 1024 * MIB


@dataclass
class Together:
    """The drives of one test, and what is built above them; a context manager."""

    visit: OpenVisit
    item: pytest.Item
    _open: ExitStack = field(default_factory=ExitStack)

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self._open.close()

    def random_mix_on(self, *layers: str) -> Load:
        """70 % random 4 KiB reads and 30 % writes on these layers, the lowest first.

        The drives are as many as the lowest layer wants; each has its depth set.  What is used of
        each is the least that their cache allows (`CACHES` times it), filled and steady before
        the first slice.  Skips the test where there are too few drives, and raises as
        `admit_depth` does before any is written to.
        """
        check(layers)
        members = self._members(drives_of(layers) or 2, writing=True)
        cache_bytes = self.visit.model.cache_bytes
        size = span_for(cache_bytes, self.visit.kernel_capacity_bytes())
        built = self._built(cast(Sequence[Layer], layers), members, size)
        path = self._open.enter_context(built)
        workload = named(random_mix(), "_on_".join(reversed(layers)))
        aim = aim_at({1: (path,)}, members)
        done = self._steady(path, workload, size, aim.inflight)
        target = (check_span(size, cache_bytes), done)
        copies = 2 if "raid10" in layers else 1
        return self._load(workload, Group(members, aim, target, copies=copies))

    def random_read_over(self, drives: int) -> Load:
        """Random 4 KiB reads over so many drives, each by itself: `.at(depth=8, drives=2)`.

        Over one, it is the visit's.  Skips the test where there are too few drives.
        """
        if drives < 1:
            raise Misuse(f"random_read_over({drives}): a number of drives, 1 or more")
        return self._reads(self._each_by_itself(drives), random_read())

    def sequential_read_over(self, drives: int) -> Load:
        """Streams of sequential 128 KiB reads over so many drives, each by itself, alike on each:
        `.at(depth=8, threads=8, drives=2)` has four on either."""
        if drives < 1:
            raise Misuse(f"sequential_read_over({drives}): a number of drives, 1 or more")
        over = self._each_by_itself(drives)
        return self._reads(over, sequential_read(over.span_bytes))

    def random_read_on_raid0(self, drives: int) -> Load:
        """The same with the drives in an md RAID-0; over one, it is the visit's by itself."""
        if drives < 2:
            raise Misuse(f"random_read_on_raid0({drives}): a RAID-0 has two drives or more")
        return self._reads(self._raid0_of(drives), random_read())

    def sequential_read_on_raid0(self, drives: int) -> Load:
        """Streams that each have a zone of the whole RAID-0; over one drive, a zone of that."""
        if drives < 2:
            raise Misuse(f"sequential_read_on_raid0({drives}): a RAID-0 has two drives or more")
        over = self._raid0_of(drives)
        return self._reads(over, sequential_read(over.span_bytes))

    def _each_by_itself(self, drives: int) -> "Over":
        members = self._members(drives, writing=False)
        nodes = tuple(member.drive.node for member in members)
        smallest = min(member.kernel_capacity_bytes() for member in members)
        return Over(f"{drives}_drives", members, nodes, smallest)

    def _raid0_of(self, drives: int) -> "Over":
        members = self._members(drives, writing=True)
        array = self._open.enter_context(self._built(["raid0"], members, None))
        # A part of each drive is md's own: streams on one drive keep off it, as those on all do.
        part = self.visit.station.host.read_file(f"/sys/block/{array.removeprefix('/dev/')}/size")
        return Over(f"raid0_of_{drives}", members, (array,), int(part) * 512 // drives)

    def _reads(self, over: "Over", workload: Workload) -> Load:
        """Of the visit's drive by itself, or of all of them."""
        members = over.members
        paths = {1: (members[0].drive.node,), len(members): over.paths}
        aim = replace(aim_at(paths, members), striped=over.paths[0] not in paths[1])
        findings = [each for member in members for each in _target(member)]
        made = self._load(named(workload, over.name), Group(members, aim, tuple(findings)))
        return replace(made, most_drives=len(members))

    def _load(self, workload: Workload, group: "Group") -> Load:
        return self.visit.load(workload, self.item, partial(group.measure, self.visit))

    # The drives.

    def _members(self, count: int, *, writing: bool) -> list[OpenVisit]:
        """The visit's drive and others, settings pinned; the guard's leave to write, where asked.

        Raises LeaseTaken where another run has one of them.
        """
        visit, run = self.visit, self.visit.station.run
        members, others = [visit], partners(run, visit.visit, writing=writing)
        unlike = []
        for spec in others:
            if len(members) == count:
                break
            beside = replace(visit.visit, cell=replace(visit.visit.cell, slot=spec.slot))
            member = self._open.enter_context(OpenVisit(visit.station, beside, beside=True))
            if member.drive.identity.firmware == visit.drive.identity.firmware:
                members.append(member)
                self._open.enter_context(visit.kernel_faults.watching(member.drive))
            else:
                unlike.append(f"{spec.slot} has firmware {member.drive.identity.firmware}")
        if len(members) < count:
            why = "".join(f"; {each}" for each in unlike)
            pytest.skip(
                f"{count} drives {_wanted(visit.visit, writing)} are needed, and there "
                f"{'is' if len(members) == 1 else 'are'} {len(members)}{why}"
            )
        for member in members:
            if writing:  # before anything is built, and filled for minutes
                admit_depth(member, ANY_QUEUE)
            member.pinned(random_read())
            if writing:
                member.admitted("write")
        return members

    @contextmanager
    def _built(
        self, layers: Sequence[Layer], members: Sequence[OpenVisit], size: int | None
    ) -> Iterator[str]:
        """What is to be opened, for as long as the layers are there."""
        station, mark = self.visit.station, Mark.new()
        entry = put_on_record(station.journal, mark, [member.spec for member in members])
        for member in members:
            member.let_go()
        drives = [member.drive for member in members]
        try:
            yield build(station.host, layers, mark, [drive.node for drive in drives], size)
        finally:
            for sentence in dismantle(station.host, mark, [drive.name for drive in drives]):
                station.live.say(sentence)
            station.journal.close_entry(entry)
        for member in members:
            member.admitted("change a setting")  # as it was before, and seen to be free

    def _steady(self, path: str, workload: Workload, size: int, inflight: str) -> Finding:
        """Fill what was built and write to it until it is steady.

        `inflight` counts the requests of the first of the drives below.
        """
        visit = self.visit
        cell, station = visit.visit.cell, visit.station
        station.live.say(f"{cell.id}: preconditioning for {workload.name}: {price(size)}")
        depth = visit.kernel_queue_depth
        host, span = station.host, (0, size)
        done = precondition(host, path, workload, span, depth=depth, inflight=inflight)
        name = f"preconditioning of {cell.id} for {workload.name}"
        row = Environment(rig=cell.rig, name=name, value=str(done.finding))
        station.record.add(Phase(cell=cell.id, name="drive", seconds=done.drive_s), row)
        return done.finding


@dataclass(frozen=True)
class Over:
    """Several drives to read from: what is opened for all of them, and how many bytes of each."""

    name: str
    members: Sequence[OpenVisit]
    paths: tuple[str, ...]
    span_bytes: int


@dataclass(frozen=True)
class Group:
    """Drives that one load is on; `target` is what was found of it before the first slice.

    `copies` are of what is written.
    """

    members: Sequence[OpenVisit]
    aim: Aim
    target: tuple[Finding, ...]
    copies: int = 1

    def measure(
        self,
        visit: OpenVisit,
        workload: Workload,
        wanted: Sequence[SliceSetting],
        *,
        name: str,
        remarks: dict[str, str],
    ) -> Sequence[Slice]:
        """One batch for the claim `name`, the depths of all put back; as `OpenVisit.measure`."""
        for member in self.members:
            admit_depths(member, wanted)
        visit.under_way(workload, wanted)
        seeds = [secrets.randbits(31) for _ in wanted]
        before = self._look(before=True)
        with ExitStack() as depths:
            for member in self.members:
                depths.enter_context(member.depth_put_back())
            host, emulated = visit.station.host, visit.station.rig.virtual is not None
            watched = depths.enter_context(watching(host, emulated=emulated))
            slices = run_aimed(host, self.aim, workload, wanted, seeds=seeds)
        after = self._look(before=False)
        asked = self._asked(workload, slices)
        findings = (*self.target, *compare(self._pinned(), before, after, asked))
        slices, findings = voided(slices, findings, watched)
        visit.keep_findings(name, slices, findings, remarks)
        return slices

    def _look(self, *, before: bool) -> Conditions:
        looks = {}
        for member in self.members:
            around = member.pinned(random_read()).around
            looks[member.drive.name] = look(member.station.host, around, before=before)
        return together(looks)

    def _pinned(self) -> Conditions:
        return together(
            {each.drive.name: each.pinned(random_read()).pinned for each in self.members}
        )

    def _asked(self, workload: Workload, slices: Sequence[Slice]) -> Asked:
        """Of all drives together; each copy of what is written is asked for."""
        asked = asked_of(workload, slices)
        times = 1.0 + (self.copies - 1) * workload.written_share
        return replace(
            asked,
            bytes=round(asked.bytes * times),
            bytes_per_s=asked.bytes_per_s * times,
            unsure=UNSURE if workload.writes else 0.0,
        )


def partners(run: "Run", visit: Visit, *, writing: bool) -> list[DriveSpec]:
    """The drives that may stand beside the visit's, in the rig file's order.

    They are of its model and on its shared path; where `writing`, they may be written to.
    """
    rig, cell = run.rigs[visit.cell.rig], visit.cell
    path = shared_paths(rig)
    return [
        spec
        for spec in rig.drives
        if spec.slot != cell.slot
        and spec.model == cell.model
        and path[spec.slot] == path[cell.slot]
        and (spec.writes == "allowed" or not writing)
    ]


def span_for(cache_bytes: int | None, capacity_bytes: int) -> int:
    """How many bytes of a drive are used: as little as makes its cache not matter.

    At least 1 GiB, at most half of the drive; in whole MiB.
    """
    cache = DEFAULT_CACHE_BYTES if cache_bytes is None else cache_bytes
    wanted = max(LEAST_SPAN, -(-CACHES * cache // MIB) * MIB)
    return min(wanted, capacity_bytes // 2 // MIB * MIB)


def named(workload: Workload, on: str) -> Workload:
    """The workload under a name that says what it goes through."""
    return replace(workload, name=f"{workload.name}_on_{on}")


def aim_at(paths: Mapping[int, tuple[str, ...]], members: Sequence[OpenVisit]) -> Aim:
    """These paths, with the depths of all the drives; the requests of the first are counted."""
    drives = [member.drive for member in members]
    depth_paths = tuple(queue_depth.path(drive) for drive in drives)
    return Aim(paths, depth_paths, f"/sys/block/{drives[0].name}/inflight")


def _target(member: OpenVisit) -> tuple[Finding, ...]:
    """Whether reads of the whole drive reach its medium."""
    return member.pinned(random_read()).target(random_read())


def _wanted(visit: Visit, writing: bool) -> str:
    kind = (
        f"of model {visit.cell.model} with {visit.cell.firmware} on the path of {visit.cell.slot}"
    )
    return f"{kind} that may be written to" if writing else kind
