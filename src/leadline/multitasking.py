"""The nine multitasking loads on the drive of a visit, and what a test can claim of them.

    assert multitasking.first(300).gains_at_least(expected.multitasking_gain)
    assert multitasking.first(300).no_load_loses_more_than(0.1)

They are generated for the drive, and replayed in rounds, each load with NCQ off and on, until what
is claimed is settled; a load of which it is has no part in further rounds.  What one claim has had
replayed serves the next.
"""

from collections.abc import Collection, Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Protocol

from leadline.claims import Claim, NotPromised, stated
from leadline.depths import admit_depth
from leadline.errors import DriveFault, Misuse
from leadline.judge_gain import in_doubt, mostly_void
from leadline.statements import Gain, share
from leadline.trace.fitting import Reach
from leadline.trace.gain import FEWEST_ROUNDS
from leadline.trace.loads import LOADS, generate
from leadline.trace.patterns import Drive
from leadline.trace.rounds import ReplayedTrace, Round
from leadline.trace.trace import Trace
from leadline.trace.turns import Fit, Turns, depth_of, ncq_off_of, ncq_on_of, turns

if TYPE_CHECKING:
    from leadline.judge import SliceJudge
    from leadline.visiting import OpenVisit

SEED = 1
"""Of the traces: those of two drives of one capacity are the same."""


class Rounds(Protocol):
    """Rounds of replays of one visit."""

    def so_far(self, first: int | None) -> tuple[ReplayedTrace, ...]:
        """What has been replayed of the loads, or of the first requests of each."""

    def one_more(self, first: int | None, names: Collection[str]) -> float:
        """Replay another round of these loads; the seconds of drive time that it took."""


@dataclass(frozen=True)
class Multitasking:
    """What a test is given: the nine loads, whole or only the first requests of each."""

    rounds: Rounds
    judge: "SliceJudge"
    requests: int | None = None

    def first(self, requests: int) -> "Multitasking":
        """Only so many requests of each load: a short cut.  Misuse below 1."""
        if requests < 1:
            raise Misuse(f"multitasking.first({requests}): a number of requests, 1 or more")
        return replace(self, requests=requests)

    def gains_at_least(self, gain: float) -> Claim:
        """Claim that NCQ takes at least this share off the mean service time, on average over
        the loads: (off - on) / off.

        They are replayed for it at once, at least FEWEST_ROUNDS times.
        """
        limit = share(gain, "gain")
        return self._stated(Gain(str(self), limit, False, (), 0.0, getattr(gain, "source", "")))

    def no_load_loses_more_than(self, loss: float) -> Claim:
        """Claim that NCQ adds at most this share to the mean service time of any one load."""
        limit = -share(loss, "loss")
        return self._stated(Gain(str(self), limit, True, (), 0.0, getattr(loss, "source", "")))

    def _stated(self, said: Gain) -> Claim:
        said = replace(said, traces=self.rounds.so_far(self.requests))
        while names := self._next(said):
            spent_s = said.spent_s + self.rounds.one_more(self.requests, names)
            said = replace(said, traces=self.rounds.so_far(self.requests), spent_s=spent_s)
        return stated(said, self.judge)

    def _next(self, said: Gain) -> Collection[str]:
        """The loads of the next round; none where the claim is settled, or as good as it gets."""
        if min((len(each.rounds) for each in said.traces), default=0) < FEWEST_ROUNDS:
            return tuple(LOADS)
        if mostly_void(said.traces) or said.spent_s >= self.judge.budget_s:
            return ()
        return in_doubt(said, self.judge.noise)

    def __str__(self) -> str:
        return "multitasking" + (f".first({self.requests})" if self.requests else "")

    __repr__ = __str__


class VisitRounds:
    """Rounds on the drive of a visit."""

    def __init__(self, visit: "OpenVisit") -> None:
        self._visit = visit
        self._fits: dict[int | None, Sequence[Fit]] = {}
        self._done: dict[int | None, dict[str, tuple[Round, ...]]] = {}
        self._reach = Reach()

    def so_far(self, first: int | None) -> tuple[ReplayedTrace, ...]:
        """As of Rounds."""
        done = self._done.get(first)
        if done is None:
            return ()
        return tuple(
            ReplayedTrace(
                trace=fit.name,
                requests=len(fit.fitted.trace),
                in_flight=fit.in_flight,
                seconds=fit.fitted.trace.seconds,
                notes=fit.fitted.notes,
                rounds=done[fit.name],
                ncq_off=ncq_off_of("fast"),
                ncq_on=ncq_on_of(self._visit, depth_of(self._visit)),
            )
            for fit in self._fits[first]
        )

    def one_more(self, first: int | None, names: Collection[str]) -> float:
        """As of Rounds.  Raises as `turns` and `Turns.round` do."""
        done: dict[str, tuple[Round, ...]] = self._done.get(first, dict.fromkeys(LOADS, ()))
        with turns(self._visit, self._reach) as by_turns:
            if first not in self._fits:
                self._fits[first] = self._fitted(by_turns, first)
            round_ = {
                fit.name: by_turns.round(fit, len(done[fit.name]))
                for fit in self._fits[first]
                if fit.name in names
            }
        self._done[first] = done | {name: (*done[name], each) for name, each in round_.items()}
        return sum(each.seconds for each in round_.values())

    def _fitted(self, by_turns: Turns, first: int | None) -> Sequence[Fit]:
        capacity = self._visit.kernel_capacity_bytes()
        made = {name: generated(name, capacity) for name in LOADS}
        return [
            by_turns.fit(name, trace, capacity, LOADS[name].in_flight, first)
            for name, trace in made.items()
        ]


def generated(name: str, capacity_bytes: int) -> Trace:
    """The trace of one of the nine loads for a drive of such a capacity."""
    return generate(LOADS[name], Drive(capacity_bytes), SEED)


def why_not(visit: "OpenVisit") -> str:
    """Why nothing is to be compared on the drive of a visit; "" when something is.

    Raises DriveFault for a drive without NCQ whose model has it by the firmware matrix.  Where
    something took it away, it is the first round that does, if the matrix promises a queue.
    """
    depth, promised = depth_of(visit), visit.model.queue_depth
    if depth is not None:
        return "" if promised > 1 else _not_promised(visit, depth)
    who = visit.drive.identity
    if promised > 1:
        raise DriveFault(
            f"{visit.visit.cell.slot}: {who.model} {who.serial} does not queue, and its model "
            f"holds {promised} requests by the firmware matrix. {visit.ladder.first_broken}"
        )
    return (
        f"{visit.visit.cell.slot}: {who.model} {who.serial} has no NCQ to gain by; as a baseline "
        "for others its service times are in `leadline trace replay`"
    )


def _not_promised(visit: "OpenVisit", depth: int) -> str:
    """What keeps a drive from a queue that nobody has promised; "" when nothing does."""
    try:
        admit_depth(visit, depth)
    except NotPromised as lacking:
        return str(lacking)
    return ""
