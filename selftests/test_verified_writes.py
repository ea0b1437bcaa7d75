"""Verified writes of a visit: leave, the record, the power cycle between, whose fault it is."""

import os
import signal
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field, replace
from pathlib import Path
from types import SimpleNamespace
from typing import Any, cast

import pytest

from leadline import queued_writes
from leadline import verified_writes as module
from leadline.drive import overlap
from leadline.drive.ask import IDENTIFY_DEVICE
from leadline.drive.bind import Drive
from leadline.drive.overlap import Overlap
from leadline.drive.tracing import TracingMissing
from leadline.errors import DriveFault, Inconclusive, Misuse, RigTrouble
from leadline.host.connection import Host, Running
from leadline.integrity.account import Account
from leadline.integrity.check import Checked
from leadline.integrity.intents import IntentLog, account_of
from leadline.integrity.plan import Plan
from leadline.integrity.session import Target, read_back
from leadline.power.cycle import PowerCycle
from leadline.verified_writes import VerifiedWrites, plan_for
from leadline.visiting import OpenVisit
from selftests.test_cycled import done
from selftests.test_integrity_session import pids_of
from selftests.visit_world import Bench, bench, kept, make_run, open_station, watch_of

__all__ = ["bench"]  # fixture

MIB = 1 << 20
STRETCHES = 4
SENT = {"READ FPDMA QUEUED": 9, "WRITE FPDMA QUEUED": 30, "FLUSH CACHE EXT": 1}
QUEUED = Overlap("libata", 40, SENT, 39, 31, 20.0)


class Answered:
    """A load on a file, beside which IDENTIFY is answered: a file itself takes no command."""

    def __init__(self, running: Running) -> None:
        self._running = running

    def __getattr__(self, name: str) -> Any:
        return getattr(self._running, name)

    def lines(self, timeout: float, most: int | None = None) -> list[str]:
        lines = self._running.lines(timeout, most)
        return [*lines[:-1], "c", *lines[-1:]] if lines else []


class FileTarget(Target):
    """What `start` gives in the place of a drive."""

    def start(self, plan: Plan, seconds: float) -> Running:
        running = super().start(plan, seconds)
        return cast(Running, Answered(running)) if seconds else running


@dataclass
class World:
    """A visit to a file, and a power cycle that ends the load on it."""

    visit: OpenVisit
    node: Path
    verified: bool = True
    ends_the_load: bool = True
    meanwhile: Callable[[], None] = lambda: None
    cuts: list[bool] = field(default_factory=list)
    asked: dict[str, Any] = field(default_factory=dict)
    says: str = ""
    seen: Overlap | None = QUEUED
    before: list[Overlap] = field(default_factory=list)
    """What is seen in the moments before that."""
    answers: bool = True
    moments: list[int] = field(default_factory=list)

    def __call__(self, *, abrupt: bool) -> PowerCycle:
        self.cuts.append(abrupt)
        if abrupt and self.ends_the_load:
            for pid in pids_of(str(self.node)):
                os.kill(pid, signal.SIGKILL)
        if self.says:
            watch_of(self.visit.station).says(self.says)
        self.meanwhile()
        self.visit.rebound(self.visit.drive)
        return replace(done(1.0), verified=self.verified)

    def target(self, host: Any, node: str, name: str, **how: Any) -> Target:
        """The file, with IDENTIFY answered beside a load where the drive `answers` it."""
        self.asked = how
        kind = FileTarget if self.answers else Target
        return kind(host, node, name, how["in_flight"])

    def during(self, host: Host, drive: Drive, load: Callable[[], None]) -> Overlap:
        """What reaches the drive; how many writes had been answered before and after is kept."""
        if self.seen is None:
            raise TracingMissing("no tracing here")
        self.moments.append(account_of(self.log).acknowledged)
        load()
        self.moments.append(account_of(self.log).acknowledged)
        return self.before.pop(0) if self.before else self.seen

    def spoil(self, lba: int, count: int = 1) -> None:
        with self.node.open("r+b") as file:
            file.seek(lba * 512)
            file.write(bytes(512 * count))

    @property
    def log(self) -> Path:
        (path,) = (self.visit.station.record.directory / "integrity" / "run-1").iterdir()
        return path


@pytest.fixture
def world(bench: Bench, monkeypatch: pytest.MonkeyPatch) -> Iterator[World]:
    node = bench.folder / "drive"
    with node.open("wb") as file:
        file.truncate(8 * MIB)
    bench.file("size").write_text(str(8 * MIB // 512))
    bench.drive = replace(bench.drive, node=str(node))
    monkeypatch.setattr(module, "STRETCHES", STRETCHES)
    monkeypatch.setattr(module, "LOAD_S", 0.2)
    run = replace(make_run(bench.folder), allow_writes=True)
    with open_station(bench, run) as station, OpenVisit(station, run.visits[0]) as visit:
        bench.did.clear()
        made = World(visit, node)
        monkeypatch.setattr(visit._cycles, "carry_out", made)
        monkeypatch.setattr(module, "Target", made.target)
        monkeypatch.setattr(overlap, "during", made.during)
        monkeypatch.setattr(queued_writes, "MOMENT_S", 0.0)
        monkeypatch.setattr(queued_writes, "MOMENT_REQUESTS", 8)
        yield made


def writes(world: World) -> VerifiedWrites:
    return VerifiedWrites(world.visit)


def first_lba() -> int:
    return MIB // 512


def test_read_back_at_once(world: World, bench: Bench) -> None:
    intact = writes(world).read_back_at_once()
    assert world.cuts == []
    assert intact.writes > 0
    assert intact.cut_off == 0
    assert 1 < intact.in_flight <= 32
    assert intact.found.sectors == STRETCHES * 512
    assert bench.did[0] == "admitted a to write"
    (said,) = bench.told.said
    assert said.startswith("bench-a-MODEL-1.0: verified writes on 4 stretches of 256 KiB from LBA ")
    assert said.endswith("what they held is lost")
    (row,) = [row for row in kept(bench.folder, "environment") if "verified" in row["name"]]
    assert row["name"] == "verified writes of bench-a-MODEL-1.0, read back at once"
    assert row["value"] == str(intact)
    (phases) = [row for row in kept(bench.folder, "phases") if row["name"] == "drive"]
    assert len(phases) == 2
    assert account_of(world.log).acknowledged == intact.writes


def test_who_it_is_is_asked_beside_the_load(world: World) -> None:
    writes(world).read_back_at_once()
    assert world.asked["command"] == IDENTIFY_DEVICE
    assert world.asked["length"] == 512
    assert world.asked["in_flight"] == 32


@pytest.mark.parametrize(
    "method", ["read_back_at_once", "outlast_a_power_cycle", "outlast_a_power_cut"]
)
def test_writes_beside_which_no_identify_was_answered_prove_nothing_of_it(
    world: World, method: str
) -> None:
    world.answers = False
    with pytest.raises(Inconclusive, match=r"no IDENTIFY or INQUIRY was answered .* 0 IDENTIFY"):
        getattr(writes(world), method)()


def test_wrong_data_outrank_a_missing_identify(world: World) -> None:
    world.answers = False
    world.meanwhile = lambda: world.spoil(first_lba() + 7)
    with pytest.raises(DriveFault, match="1 of 2048 sectors"):
        writes(world).outlast_a_power_cycle()


def test_a_graceful_power_cycle_keeps_all(world: World, bench: Bench) -> None:
    intact = writes(world).outlast_a_power_cycle()
    assert world.cuts == [False]
    assert intact.cut_off == 0
    assert intact.found.older == 0
    names = [r["name"] for r in kept(bench.folder, "environment") if "verified" in r["name"]]
    assert [name.partition(", ")[2] for name in names] == [
        "read back before a power cycle",
        "after a graceful power cycle",
    ]


def test_what_a_graceful_power_cycle_loses_is_named(world: World) -> None:
    world.meanwhile = lambda: world.spoil(first_lba() + 7, 3)
    with pytest.raises(DriveFault) as caught:
        writes(world).outlast_a_power_cycle()
    said = str(caught.value)
    assert "slot a: " in said
    assert "after a graceful power cycle, 3 of 2048 sectors are wrong" in said
    assert f"The first: LBA {first_lba() + 7} holds zeros, and should hold write " in said
    assert "writes were acknowledged" in said
    assert str(world.log) in said


def test_a_power_cut_in_the_middle_of_the_load(world: World) -> None:
    intact = writes(world).outlast_a_power_cut()
    assert world.cuts == [True]
    assert intact.cut_off > 0
    assert intact.durable > 0
    assert f"; {intact.cut_off} requests were cut off; of 2048 sectors 0 are wrong" in str(intact)


def test_what_the_power_cycle_takes_is_no_drive_time_of_the_load(
    world: World, bench: Bench
) -> None:
    """It has phases of its own: the results would count it twice."""
    counted: list[list[str]] = []

    def look() -> None:
        counted.append([row["name"] for row in kept(bench.folder, "phases")])

    world.meanwhile = look
    writes(world).outlast_a_power_cut()
    assert counted[0].count("drive") == 1, "the load's is on record before the cut"
    drive = [row for row in kept(bench.folder, "phases") if row["name"] == "drive"]
    assert len(drive) == 2, "that of the load, and of the reading back"


@pytest.mark.parametrize(
    ("method", "cut"), [("outlast_a_power_cut", [True]), ("outlast_a_power_cycle", [False, False])]
)
def test_old_data_are_forgiven_after_a_cut_alone(
    world: World, monkeypatch: pytest.MonkeyPatch, method: str, cut: list[bool]
) -> None:
    seen: list[bool] = []

    def spy(target: Target, account: Account, *, cut: bool, log: IntentLog) -> Checked:
        seen.append(cut)
        return read_back(target, account, cut=cut, log=log)

    monkeypatch.setattr(module, "read_back", spy)
    getattr(writes(world), method)()
    assert seen == cut


def test_what_a_power_cut_loses_although_it_was_flushed_is_named(world: World) -> None:
    world.meanwhile = lambda: world.spoil(first_lba() + 7)
    with pytest.raises(DriveFault, match="after an abrupt power cut, 1 of 2048 sectors are wrong"):
        writes(world).outlast_a_power_cut()


def test_the_power_is_not_cut_before_every_sector_is_durable(
    world: World, monkeypatch: pytest.MonkeyPatch
) -> None:
    seen: list[Account] = []
    monkeypatch.setattr(module, "LOAD_S", 0.0)
    monkeypatch.setattr(queued_writes, "MOMENT_REQUESTS", 0)
    monkeypatch.setattr(world, "meanwhile", lambda: seen.append(account_of(world.log)))
    writes(world).outlast_a_power_cut()
    assert seen[0].history.covered == seen[0].plan.sectors


def test_the_load_goes_on_while_it_is_watched_and_for_no_longer_than_it_would_have(
    world: World, monkeypatch: pytest.MonkeyPatch
) -> None:
    """To set up what is watched takes a slow rig longer than the load is to last."""
    now, skipped = time.monotonic, [0.0]
    monkeypatch.setattr(module, "LOAD_S", 30.0)
    clock = SimpleNamespace(monotonic=lambda: now() + sum(skipped))
    monkeypatch.setattr(module, "time", clock)
    during = world.during

    def slow(host: Host, drive: Drive, load: Callable[[], None]) -> Overlap:
        skipped.append(30.0)
        return during(host, drive, load)

    monkeypatch.setattr(overlap, "during", slow)
    cut: list[float] = []
    world.meanwhile = lambda: cut.append(clock.monotonic())
    began = clock.monotonic()
    writes(world).outlast_a_power_cut()
    assert 30.0 <= cut[0] - began < 55.0


def test_a_load_that_was_not_cut_off_proves_nothing(
    world: World, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(module, "FOR_EVER_S", 0.4)
    world.ends_the_load = False

    def wait_for_the_end() -> None:
        while pids_of(str(world.node)):
            pass

    world.meanwhile = wait_for_the_end
    with pytest.raises(Inconclusive, match="no request was under way when the power went"):
        writes(world).outlast_a_power_cut()


@pytest.mark.parametrize("method", ["outlast_a_power_cycle", "outlast_a_power_cut"])
def test_an_outlet_that_cannot_be_read_back_proves_nothing(world: World, method: str) -> None:
    world.verified = False
    with pytest.raises(Inconclusive, match="unverified"):
        getattr(writes(world), method)()


@pytest.mark.parametrize(
    ("method", "says", "faults"),
    [
        ("outlast_a_power_cut", "ata1: soft resetting link", 0),
        ("outlast_a_power_cycle", "ata1: soft resetting link", 1),
    ],
)
def test_requests_that_a_cut_interrupts_may_be_told_of_by_the_kernel(
    world: World, request: pytest.FixtureRequest, method: str, says: str, faults: int
) -> None:
    world.says = says
    getattr(writes(world), method)()
    assert len(world.visit.kernel_faults.new(request.node.nodeid)) == faults


def test_a_rig_that_does_not_come_back_is_told_as_that(
    world: World, request: pytest.FixtureRequest
) -> None:
    """And not as the requests that were cut off, nor as a log that nobody can read."""
    watch = watch_of(world.visit.station)

    def lost() -> None:
        watch.says("ata1: soft resetting link")
        raise RigTrouble("the host did not come back")

    world.meanwhile = lost
    with pytest.raises(RigTrouble, match="the host did not come back"):
        writes(world).outlast_a_power_cut()
    assert world.visit.kernel_faults.new(request.node.nodeid) == []


def test_without_both_keys_nothing_is_written(world: World) -> None:
    world.visit.station.run = replace(world.visit.station.run, allow_writes=False)
    before = world.node.read_bytes()
    with pytest.raises(Misuse, match="both are needed"):
        writes(world).read_back_at_once()
    assert world.node.read_bytes() == before


@pytest.mark.parametrize("block", [512, 4096])
@pytest.mark.parametrize("capacity", [1 << 30, 4 * 10**12 + 4096])
def test_stretches_lie_all_over_the_drive(capacity: int, block: int) -> None:
    plan = plan_for(capacity, block, "slot a")
    assert plan.first * 512 == MIB
    assert capacity - 80 * MIB < (plan.last + 1) * 512 <= capacity - MIB
    assert plan.stretches == 64
    assert plan.block * 512 == block
    assert plan.stride % 8 == 0
    assert plan.request(plan.fills).lbas[-1] == plan.last
    assert plan != plan_for(capacity, block, "slot a"), "each has a seed of its own"


def test_a_drive_that_is_too_small_is_refused() -> None:
    with pytest.raises(Misuse, match="slot a: 4194304 bytes are too few"):
        plan_for(4 * MIB, 512, "slot a")


def test_a_plan_is_a_tuple_of_numbers_for_json() -> None:
    plan = plan_for(1 << 30, 512, "slot a")
    assert Plan(*list(plan)) == plan
