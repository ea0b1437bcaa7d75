"""What replays of a trace showed: times of its requests, round by round."""

from dataclasses import dataclass

from pydantic import BaseModel, ConfigDict


@dataclass(frozen=True)
class Times:
    """Requests of one kind: how many, and their mean time from submission to completion."""

    count: int = 0
    mean_s: float = 0.0

    def __add__(self, other: "Times") -> "Times":
        count = self.count + other.count
        total = self.count * self.mean_s + other.count * other.mean_s
        return Times(count, total / count if count else 0.0)


@dataclass(frozen=True)
class Replayed:
    """What one replay showed; `seconds` is how long it took.

    `cpu` is the share of one CPU used by the busiest of fio's threads, `voids` names why the
    replay counts for nothing, as those of a slice do.
    """

    reads: Times
    writes: Times
    seconds: float
    cpu: float = 0.0
    voids: tuple[str, ...] = ()

    @property
    def all(self) -> Times:
        """Reads and writes together."""
        return self.reads + self.writes


@dataclass(frozen=True)
class Round:
    """One round of one trace: the replay with NCQ off, and with it on; None without NCQ."""

    off: Replayed
    on: Replayed | None

    @property
    def seconds(self) -> float:
        """How long its replays took."""
        return self.off.seconds + (self.on.seconds if self.on else 0.0)

    @property
    def voids(self) -> tuple[str, ...]:
        """Why it counts for nothing: what voids either replay voids the pair."""
        return (*self.off.voids, *(self.on.voids if self.on else ()))


class ReplayedTrace(BaseModel):
    """One trace on one drive: what was done to it, and its rounds.

    `ncq_off` and `ncq_on` say in words what either is: how requests were passed on, and which
    device queue depth that is; "" where nobody kept that.  Without `ncq_off`, what waited
    for a drive that takes one at a time was passed on as the kernel did it, in no certain order.
    """

    model_config = ConfigDict(frozen=True)

    trace: str
    requests: int
    in_flight: int
    seconds: float
    notes: tuple[str, ...]
    rounds: tuple[Round, ...]
    ncq_off: str = ""
    ncq_on: str = ""

    @property
    def sides(self) -> tuple[str, ...]:
        """What NCQ off and on are, as far as that is known."""
        return tuple(side for side in (self.ncq_off, self.ncq_on) if side)
