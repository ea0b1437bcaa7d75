"""A replay in a visit: off and on by turns, settings given back, nothing written without leave."""

from collections.abc import Callable, Sequence
from dataclasses import replace as changed
from pathlib import Path
from types import SimpleNamespace
from typing import cast

import pytest

from leadline.drive.bind import Drive as BoundDrive
from leadline.drive.ladder import Rung
from leadline.errors import DriveFault, Inconclusive, Misuse, message_of
from leadline.host.connection import Host
from leadline.running import VERDICTS
from leadline.trace import replay_run, turns
from leadline.trace.asked import Answer, Asked
from leadline.trace.replay_job import Replay, Timing, counts_of
from leadline.trace.rounds import Replayed, Times
from leadline.trace.trace import WRITE, Trace
from leadline.visiting import OpenVisit
from selftests.traces import CAPACITY, few
from selftests.traces import kept as kept_trace
from selftests.visit_world import Bench, bench, kept, opened, station, watch_of

__all__ = ["bench", "opened", "station"]  # fixtures


class Drive:
    """In the place of fio and the drive: slow at device queue depth 1."""

    def __init__(self, bench: Bench, fails_at: int | None = None) -> None:
        self.bench, self.fails_at = bench, fails_at
        self.seen: list[tuple[int, int, str, bool]] = []
        self.queued: list[bool] = []
        self.batches: list[int] = []
        self.nodes: set[str] = set()
        self.traces: list[Trace] = []
        self.beside: Callable[[int], None] = lambda number: None
        self.cpu = 0.1

    def replay(
        self,
        host: Host,
        node: str,
        replays: Sequence[Replay],
        timing: Timing,
        *,
        writes: bool,
        depth_path: str,
    ) -> list[Replayed]:
        self.nodes.add(node)
        self.batches.append(len(replays))
        assert depth_path.endswith("/device/queue_depth")
        return [self._one(each, timing, writes) for each in replays]

    def _one(self, asked: Replay, timing: Timing, writes: bool) -> Replayed:
        set_to = self.bench.file("device/queue_depth")
        if asked.depth is not None:
            set_to.write_text(str(asked.depth))
        depth = int(set_to.read_text())
        self.seen.append((depth, asked.in_flight, timing, writes))
        self.queued.append(asked.queued)
        self.traces.append(asked.trace)
        self.beside(len(self.seen))
        if len(self.seen) == self.fails_at:
            raise DriveFault("requests of the replay failed")
        assert self.bench.file("queue/scheduler").read_text() == "none"
        reads, writes_ = counts_of(asked.trace)
        mean_s = 0.010 if depth == 1 else 0.008
        return Replayed(
            Times(reads, mean_s), Times(writes_, mean_s if writes_ else 0.0), 1.5, self.cpu
        )


@pytest.fixture
def drive(bench: Bench, monkeypatch: pytest.MonkeyPatch) -> Drive:
    bench.file("size").write_text(str(CAPACITY // 512))
    made = Drive(bench)
    monkeypatch.setattr(turns, "replay", made.replay)
    return made


Stash = dict[object, list[dict[str, object]]]


def ask(visit: OpenVisit, tmp_path: Path, stash: Stash | None = None, **other: object) -> Answer:
    wanted = {
        "traces": [str(kept_trace(tmp_path, few()))],
        "rounds": 3,
        "timing": "fast",
        "requests": None,
        "in_flight": None,
        "answer": str(tmp_path / "answer.json"),
    } | other
    path = tmp_path / "asked.json"
    path.write_text(Asked.model_validate(wanted).model_dump_json())
    option = SimpleNamespace(trace_replay=str(path))
    node = SimpleNamespace(stash={} if stash is None else stash)
    request = SimpleNamespace(config=SimpleNamespace(option=option), node=node)
    replay_run.test_replay(visit, cast(pytest.FixtureRequest, request))
    return Answer.model_validate_json((tmp_path / "answer.json").read_bytes())


def test_off_and_on_take_turns_and_the_depth_is_given_back(
    bench: Bench, drive: Drive, opened: OpenVisit, tmp_path: Path
) -> None:
    stash: Stash = {}
    answer = ask(opened, tmp_path, stash)
    assert [depth for depth, *_ in drive.seen] == [1, 32, 32, 1, 1, 32]
    assert drive.queued == [False, True, True, False, False, True]
    assert drive.batches == [2, 2, 2], "both of a round in one process of fio"
    assert stash[VERDICTS] == [{"estimate": "gain +20.0%", "drive_seconds": 9.0}]
    assert drive.nodes == {opened.drive.node}
    assert bench.file("device/queue_depth").read_text() == "32"
    assert (answer.depth, answer.wrote) == (32, False)
    assert answer.drive.startswith("a: MODEL SERIAL-a, firmware ")
    (trace,) = answer.traces
    assert [round_.off.reads.mean_s for round_ in trace.rounds] == [0.010] * 3
    assert [round_.on and round_.on.reads.mean_s for round_ in trace.rounds] == [0.008] * 3
    assert trace.in_flight == 4


def test_of_a_long_trace_each_replay_is_a_process(
    drive: Drive, opened: OpenVisit, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """fio holds all the iologs that it is given, and the rig has them in memory, too."""
    for most, batches in ((3, [2, 2, 2]), (2, [1] * 6)):
        monkeypatch.setattr(turns, "MOST_TOGETHER", most)
        drive.seen, drive.batches = [], []
        ask(opened, tmp_path)
        assert drive.batches == batches
        assert [depth for depth, *_ in drive.seen] == [1, 32, 32, 1, 1, 32]


def test_the_ladder_is_climbed_before_anything_is_set(
    bench: Bench, drive: Drive, opened: OpenVisit, tmp_path: Path
) -> None:
    ask(opened, tmp_path)
    assert bench.did.index("climb") < bench.did.index("admitted a to change a setting")
    assert "admitted a to write" not in bench.did


def test_every_replay_is_on_record(
    bench: Bench, drive: Drive, opened: OpenVisit, tmp_path: Path
) -> None:
    ask(opened, tmp_path, rounds=2)
    rows = [row for row in kept(bench.folder, "environment") if row["name"].startswith("replay")]
    assert [row["name"].rpartition(" of ")[2] for row in rows] == [
        "few, round 1, device queue depth 1",
        "few, round 1, device queue depth 32",
        "few, round 2, device queue depth 32",
        "few, round 2, device queue depth 1",
    ]
    assert rows[0]["value"] == "reads: 3 of 10 ms on average; writes: 0 of 0 ms; in 1.5 s"
    assert sum(row["seconds"] for row in kept(bench.folder, "phases")) == 6.0


def test_a_replay_that_is_disturbed_is_void_as_a_slice_is_and_said_to_be(
    bench: Bench, drive: Drive, opened: OpenVisit, tmp_path: Path
) -> None:
    """Merging is switched on again in the seventh replay of eight."""
    nomerges = bench.file("queue/nomerges")

    def disturb(number: int) -> None:
        if number == 7:
            nomerges.write_text("0")

    drive.beside = disturb
    answer = ask(opened, tmp_path, rounds=4)
    (trace,) = answer.traces
    assert [each.voids[:1] for each in trace.rounds] == [(), (), (), ("settings-moved",)]
    rows = [row for row in kept(bench.folder, "environment") if row["name"].startswith("replay")]
    assert ["VOID: settings-moved" in row["value"] for row in rows] == [False] * 6 + [True] * 2
    found = [row for row in kept(bench.folder, "findings") if row["name"] == "settings-moved"]
    assert [row["outcome"] for row in found] == ["ok"] * 3 + ["void"]
    assert found[-1]["claim"] == "replay of few, round 4, device queue depth 32 and 1"


@pytest.mark.parametrize("counted", [0, 1])
def test_flushes_that_an_old_kernel_does_not_count_are_no_commands_of_somebody_else(
    bench: Bench, drive: Drive, opened: OpenVisit, tmp_path: Path, counted: int
) -> None:
    """Five more commands than requests: flushes of the trace where the kernel counts none."""
    opened.spec = opened.spec.model_copy(update={"writes": "allowed"})
    opened.station.run = changed(opened.station.run, allow_writes=True)
    stat, commands = bench.file("stat"), bench.file("device/iodone_cnt")

    def served(number: int) -> None:
        sectors = int(sum(trace.length.sum() for trace in drive.traces)) // 512
        io = [4 * number, 0, sectors, *[0] * 12, counted, 0]
        stat.write_text(" ".join(map(str, io)))
        commands.write_text(hex(9 * number + counted))

    served(0)
    drive.beside = served
    if counted:
        with pytest.raises(Inconclusive, match="other-commands"):
            ask(opened, tmp_path)
        return
    (trace,) = ask(opened, tmp_path).traces
    assert [each.voids for each in trace.rounds] == [()] * 3


def test_a_table_of_which_too_few_rounds_count_is_none(
    drive: Drive, opened: OpenVisit, tmp_path: Path
) -> None:
    drive.cpu = 0.97
    with pytest.raises(Inconclusive, match=r"3 of 3 rounds count for nothing \(fio-cpu\)"):
        ask(opened, tmp_path)
    assert not (tmp_path / "answer.json").exists()


@pytest.mark.parametrize(
    ("keys", "wrote"),
    [(("allowed", True), True), (("allowed", False), False), (("forbidden", True), False)],
)
def test_writes_need_both_keys(
    drive: Drive, opened: OpenVisit, tmp_path: Path, keys: tuple[str, bool], wrote: bool
) -> None:
    key, option = keys
    opened.spec = opened.spec.model_copy(update={"writes": key})
    opened.station.run = changed(opened.station.run, allow_writes=option)
    answer = ask(opened, tmp_path)
    assert answer.wrote is wrote
    assert {writes for *_, writes in drive.seen} == {wrote}
    assert counts_of(drive.traces[0])[1] == (1 if wrote else 0)
    assert ("admitted a to write" in drive.bench.did) is wrote
    assert any("reads alone" in note for note in answer.traces[0].notes) is not wrote


def test_a_trace_of_a_larger_drive_is_scaled_and_says_so(
    bench: Bench, drive: Drive, opened: OpenVisit, tmp_path: Path
) -> None:
    bench.file("size").write_text(str(CAPACITY // 2 // 512))
    answer = ask(opened, tmp_path)
    assert any(note.startswith("SCALED") for note in answer.traces[0].notes)
    assert int(drive.traces[0].end.max()) <= CAPACITY // 2


def test_what_is_asked_stands_for_what_the_header_says(
    bench: Bench, drive: Drive, opened: OpenVisit, tmp_path: Path
) -> None:
    answer = ask(opened, tmp_path, in_flight=9, timing="kept", requests=1)
    assert {(in_flight, timing) for _, in_flight, timing, _ in drive.seen} == {(9, "kept")}
    assert [depth for depth, *_ in drive.seen] == [1, 32, 32, 1, 1, 32]
    assert drive.batches == [1] * 6, "all threads of one are to begin at once"
    assert (answer.traces[0].requests, answer.traces[0].in_flight) == (1, 9)


@pytest.mark.parametrize(("timing", "said"), [("fast", True), ("kept", False)])
def test_that_ncq_off_is_one_at_a_time_is_said_where_it_is_so(
    drive: Drive, opened: OpenVisit, tmp_path: Path, timing: str, said: bool
) -> None:
    (trace,) = ask(opened, tmp_path, timing=timing).traces
    assert trace.ncq_off.startswith("NCQ off is one request at a time") is said
    assert trace.sides[-1].startswith("NCQ on is a device queue depth of 32")
    assert len(trace.sides) == 1 + said


def test_a_drive_without_ncq_is_a_baseline(
    bench: Bench, drive: Drive, opened: OpenVisit, tmp_path: Path
) -> None:
    bench.rungs = (Rung("advertised", False, "word 76 has no NCQ"),)
    opened.drive = changed(opened.drive, queue_depth=1)
    bench.file("device/queue_depth").write_text("1")
    stash: Stash = {}
    answer = ask(opened, tmp_path, stash)
    assert stash[VERDICTS] == [{"estimate": "no NCQ: a baseline", "drive_seconds": 4.5}]
    assert answer.depth is None
    assert [depth for depth, *_ in drive.seen] == [1, 1, 1]
    assert not any(drive.queued)
    assert all(round_.on is None for round_ in answer.traces[0].rounds)


def test_a_drive_behind_an_ide_port_is_a_baseline(
    bench: Bench, drive: Drive, opened: OpenVisit, tmp_path: Path
) -> None:
    """It hides word 76, so that nobody knows whether the drive has NCQ; off is not held to on."""
    bench.rungs = (Rung("advertised", None, "says nothing"), Rung("controller", False, "1 at once"))
    opened.drive = behind_ide(opened)
    bench.file("device/queue_depth").write_text("1")
    assert ask(opened, tmp_path).depth is None
    assert [depth for depth, *_ in drive.seen] == [1, 1, 1]


def behind_ide(visit: OpenVisit) -> BoundDrive:
    """The drive of a visit, as it is seen there."""
    identify = visit.drive.identify
    assert identify is not None
    hidden = changed(identify, ncq=changed(identify.ncq, supported=False, queue_depth=1))
    return changed(visit.drive, identify=hidden, queue_depth=1)


def test_a_drive_whose_queue_was_taken_away_is_no_baseline(
    bench: Bench, drive: Drive, opened: OpenVisit, tmp_path: Path
) -> None:
    bench.rungs = (Rung("advertised", True, "NCQ"), Rung("kernel", False, "libata.force=noncq"))
    opened.drive = changed(opened.drive, queue_depth=1)
    bench.file("device/queue_depth").write_text("1")
    with pytest.raises(DriveFault, match=r"libata\.force=noncq"):
        ask(opened, tmp_path)


def test_a_queue_that_was_switched_off_since_is_not_brought_back(
    bench: Bench, drive: Drive, opened: OpenVisit, tmp_path: Path
) -> None:
    assert opened.ladder
    watch_of(opened.station).says("ata1.00: NCQ disabled due to excessive errors")
    with pytest.raises(DriveFault, match="does not queue any more"):
        ask(opened, tmp_path)
    assert drive.seen == []


def test_on_is_31_on_a_kernel_that_keeps_a_tag_for_itself(
    bench: Bench, drive: Drive, opened: OpenVisit, tmp_path: Path
) -> None:
    opened.drive = changed(opened.drive, queue_depth=31)
    bench.file("device/queue_depth").write_text("31")
    assert ask(opened, tmp_path).depth == 31
    assert {depth for depth, *_ in drive.seen} == {1, 31}


def test_a_depth_that_somebody_left_at_1_is_no_baseline(
    bench: Bench, drive: Drive, opened: OpenVisit, tmp_path: Path
) -> None:
    opened.drive = changed(opened.drive, queue_depth=1)
    bench.file("device/queue_depth").write_text("1")
    assert ask(opened, tmp_path).depth == 32
    assert bench.file("device/queue_depth").read_text() == "1"


def test_a_drive_that_fails_in_the_middle_gets_its_depth_back(
    bench: Bench, drive: Drive, opened: OpenVisit, tmp_path: Path
) -> None:
    drive.fails_at = 1
    with pytest.raises(DriveFault):
        ask(opened, tmp_path)
    assert bench.file("device/queue_depth").read_text() == "32"
    assert not (tmp_path / "answer.json").exists()


def test_a_drive_that_is_gone_in_the_middle_has_failed(
    bench: Bench,
    drive: Drive,
    opened: OpenVisit,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """There is no depth to give back then, which is no trouble of the rig's."""

    def gone(*_: object, **__: object) -> list[Replayed]:
        bench.file("device/queue_depth").unlink()
        raise DriveFault("requests of the replay failed")

    monkeypatch.setattr(turns, "replay", gone)
    with pytest.raises(DriveFault, match="requests of the replay failed") as failed:
        ask(opened, tmp_path)
    assert "when the device queue depth was to be put back" in message_of(failed.value)


def test_a_trace_of_which_nothing_is_left_is_named_before_any_is_replayed(
    bench: Bench, drive: Drive, opened: OpenVisit, tmp_path: Path
) -> None:
    """Without the keys for writes; the traces before it would have been replayed for nothing."""
    written = kept_trace(tmp_path, few().take(few().kind == WRITE), "written")
    both = [str(kept_trace(tmp_path, few())), str(written)]
    with pytest.raises(Misuse, match=r"written\.iolog\.gz: nothing of the trace would be"):
        ask(opened, tmp_path, traces=both)
    assert drive.seen == []


def test_an_unsound_trace_is_not_replayed(
    bench: Bench, drive: Drive, opened: OpenVisit, tmp_path: Path
) -> None:
    bad = kept_trace(tmp_path, few(), "bad", requests=9)
    with pytest.raises(Misuse, match="the header says 9"):
        ask(opened, tmp_path, traces=[str(bad)])
    assert drive.seen == []
