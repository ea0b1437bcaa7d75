"""What `leadline trace replay` has pytest run; it is no part of the suite, and claims nothing.

The module's name is none that pytest collects unless it is told to.
"""

from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from leadline.drive.text import plain
from leadline.errors import Misuse
from leadline.results.schema import Phase
from leadline.running import VERDICTS
from leadline.trace.asked import Answer, Asked
from leadline.trace.files import load_trace
from leadline.trace.gain import gain_of, overall
from leadline.trace.header import name_of
from leadline.trace.rounds import ReplayedTrace, Round
from leadline.trace.turns import Fit, Turns, ncq_off_of, ncq_on_of, turns

if TYPE_CHECKING:
    from leadline.visiting import OpenVisit


def test_replay(visit: "OpenVisit", request: pytest.FixtureRequest) -> None:
    """Replay each trace with NCQ off and on by turns, on the drive of this visit alone."""
    asked = Asked.model_validate_json(Path(request.config.option.trace_replay).read_bytes())
    with turns(visit) as by_turns:
        # All of them first: what cannot be replayed is told now, and not hours later.
        fits = [_fitted(by_turns, asked, path) for path in asked.traces]
        replayed = [_replayed(by_turns, asked, fit) for fit in fits]
    who = visit.drive.identity
    answer = Answer(
        drive=f"{visit.visit.cell.slot}: {who.model} {who.serial}, firmware {who.firmware}",
        depth=by_turns.depth,
        wrote=by_turns.writes,
        traces=tuple(replayed),
    )
    facts = _facts(answer)  # Inconclusive where too few rounds count: there is no table then
    asked.answer.write_text(answer.model_dump_json())
    request.node.stash.setdefault(VERDICTS, []).append(facts)


def _facts(answer: Answer) -> dict[str, object]:
    """What the table of the run says of it."""
    spent = sum(round_.seconds for trace in answer.traces for round_ in trace.rounds)
    gain = overall([gain_of(trace.trace, trace.rounds) for trace in answer.traces])
    said = f"gain {gain.mean:+.1%}" if gain else "no NCQ: a baseline"
    return {"estimate": said, "drive_seconds": round(spent, 3)}


def _fitted(by_turns: Turns, asked: Asked, path: Path) -> Fit:
    """One trace made to fit the drive.  Misuse, by its file, where it cannot be."""
    trace, header = load_trace(path)
    in_flight = asked.in_flight or header.in_flight
    try:
        return by_turns.fit(name_of(path), trace, header.capacity_bytes, in_flight, asked.requests)
    except Misuse as error:
        raise Misuse(f"{plain(str(path))}: {error}") from error


def _replayed(by_turns: Turns, asked: Asked, fit: Fit) -> ReplayedTrace:
    """All rounds of one trace."""
    rounds = [
        _counted(by_turns, by_turns.round(fit, number, asked.timing))
        for number in range(asked.rounds)
    ]
    return ReplayedTrace(
        trace=fit.name,
        requests=len(fit.fitted.trace),
        in_flight=fit.in_flight,
        seconds=fit.fitted.trace.seconds,
        notes=fit.fitted.notes,
        rounds=tuple(rounds),
        ncq_off=ncq_off_of(asked.timing),
        ncq_on=ncq_on_of(by_turns.visit, by_turns.depth),
    )


def _counted(by_turns: Turns, done: Round) -> Round:
    """The same, its drive time on record: no verdict follows that would have it."""
    visit = by_turns.visit
    visit.station.record.add(
        Phase(cell=visit.visit.cell.id, name="drive", seconds=done.seconds),
    )
    return done
