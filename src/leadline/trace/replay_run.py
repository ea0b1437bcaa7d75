"""What `leadline trace replay` has pytest run; it is no part of the suite, and claims nothing.

The module's name is none that pytest collects unless it is told to.
"""

from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from leadline.drive import queue_depth, settings
from leadline.plans import alternating
from leadline.results.schema import Environment, Phase
from leadline.running import VERDICTS
from leadline.trace.asked import Answer, Asked, ReplayedTrace
from leadline.trace.files import load_trace
from leadline.trace.fitting import fit
from leadline.trace.gain import Round, gain_of, overall
from leadline.trace.header import name_of
from leadline.trace.replay_job import Replayed
from leadline.trace.replaying import replay

if TYPE_CHECKING:
    from leadline.visiting import OpenVisit

_UNQUEUED = 1  # commands that are not queued at all: READ DMA


def test_replay(visit: "OpenVisit", request: pytest.FixtureRequest) -> None:
    """Replay each trace with NCQ off and on by turns, on the drive of this visit alone."""
    asked = Asked.model_validate_json(Path(request.config.option.trace_replay).read_bytes())
    station = visit.station
    depth = depth_of(visit)  # by the ladder, which is climbed before anything is set
    wrote = visit.spec.writes == "allowed" and station.run.allow_writes
    visit.admitted("write" if wrote else "change a setting")
    settings.pin(station.host, station.journal, visit.drive)
    replayed = []
    try:
        for path in asked.traces:
            replayed.append(_replayed(visit, asked, path, depth, writes=wrote))
    finally:
        _set_depth(visit, visit.kernel_queue_depth)
        station.live.clear()
    who = visit.drive.identity
    answer = Answer(
        drive=f"{visit.visit.cell.slot}: {who.model} {who.serial}, firmware {who.firmware}",
        depth=depth,
        wrote=wrote,
        traces=tuple(replayed),
    )
    asked.answer.write_text(answer.model_dump_json())
    request.node.stash.setdefault(VERDICTS, []).append(_facts(answer))


def _facts(answer: Answer) -> dict[str, object]:
    """What the table of the run says of it."""
    rounds = [round_ for trace in answer.traces for round_ in trace.rounds]
    spent = sum(round_.off.seconds + (round_.on.seconds if round_.on else 0.0) for round_ in rounds)
    gain = overall([gain_of(trace.trace, trace.rounds) for trace in answer.traces])
    said = f"gain {gain.mean:+.1%}" if gain else "no NCQ: a baseline"
    return {"estimate": said, "drive_seconds": round(spent, 3)}


def depth_of(visit: "OpenVisit") -> int | None:
    """The device queue depth with NCQ on; None for a drive that has none: it is the baseline.

    A drive that has NCQ, and on which something took it away, is no baseline: setting its
    depth fails, and says what did.
    """
    if any(rung.name == "advertised" and rung.holds is False for rung in visit.ladder.rungs):
        return None
    if visit.kernel_queue_depth > _UNQUEUED:
        return visit.kernel_queue_depth
    return visit.drive.identify.ncq.queue_depth if visit.drive.identify else None


def _replayed(
    visit: "OpenVisit", asked: Asked, path: Path, depth: int | None, *, writes: bool
) -> ReplayedTrace:
    """All rounds of one trace; the order of off and on alternates."""
    trace, header = load_trace(path)
    fitted = fit(
        trace,
        capacity_bytes=visit.kernel_capacity_bytes(),
        traced_bytes=header.capacity_bytes,
        block_bytes=_logical_block_bytes(visit),
        writes=writes,
        most=asked.requests,
    )
    in_flight = asked.in_flight or header.in_flight
    depths = (_UNQUEUED,) if depth is None else (_UNQUEUED, depth)
    rounds = []
    for number in range(asked.rounds):
        done: dict[int, Replayed] = {}
        for side in alternating(number, len(depths)):
            _set_depth(visit, depths[side])
            visit.station.live.show(
                f"  {visit.visit.cell.id}: {name_of(path)}, round {number + 1} of {asked.rounds}, "
                f"device queue depth {depths[side]}: {len(fitted.trace)} requests under way"
            )
            host, node = visit.station.host, visit.drive.node
            done[side] = replay(host, node, fitted.trace, in_flight, asked.timing, writes=writes)
            _keep(visit, f"{name_of(path)}, round {number + 1}", depths[side], done[side])
        rounds.append(Round(off=done[0], on=done.get(1)))
    return ReplayedTrace(
        trace=name_of(path),
        requests=len(fitted.trace),
        in_flight=in_flight,
        seconds=fitted.trace.seconds,
        notes=fitted.notes,
        rounds=tuple(rounds),
    )


def _set_depth(visit: "OpenVisit", depth: int) -> None:
    station = visit.station
    queue_depth.set_depth(station.host, station.journal, visit.drive, depth, visit.ladder)


def _logical_block_bytes(visit: "OpenVisit") -> int:
    path = f"/sys/block/{visit.drive.name}/queue/logical_block_size"
    return int(visit.station.host.read_file(path))


def _keep(visit: "OpenVisit", which: str, depth: int, seen: Replayed) -> None:
    """On record as it comes: a run that is killed keeps what it has measured."""
    cell = visit.visit.cell
    said = (
        f"reads: {seen.reads.count} of {1e3 * seen.reads.mean_s:.6g} ms on average; "
        f"writes: {seen.writes.count} of {1e3 * seen.writes.mean_s:.6g} ms; "
        f"in {seen.seconds:.6g} s"
    )
    name = f"replay on {cell.id} of {which}, device queue depth {depth}"
    visit.station.record.add(
        Environment(rig=cell.rig, name=name, value=said),
        Phase(cell=cell.id, name="drive", seconds=seen.seconds),
    )
