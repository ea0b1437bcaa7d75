"""The language of the tests: quantities, and the claims made of them.

    assert random_read.at(depth=8) >= 3 * random_read.at(depth=1)

`random_read.at(depth=8)` is a `Quantity`: something that can be measured and has
not been yet.  Comparing two of them makes a `Claim`, which is settled, once, when
its truth is asked.  A claim's truth is True or it raises; it is never False,
because pytest's rewriting asks for it several times over, and `not`, `or` and
`if` would each lose a False without a trace.
"""

from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import NoReturn, Protocol

from leadline.errors import Inconclusive, Misuse
from leadline.load.slices import SliceSetting, offered_for
from leadline.load.workload import Workload
from leadline.verdict.verdict import Direction, Outcome, Verdict


class ClaimFailed(AssertionError):
    """The drive does not do what the claim says: FAIL, with the whole explanation."""

    def __init__(self, explanation: str, verdict: Verdict) -> None:
        super().__init__(explanation)
        self.verdict = verdict


class Unsettled(Inconclusive):
    """Too little evidence, or none that counts: INCONCLUSIVE, with the whole explanation."""

    def __init__(self, explanation: str, verdict: Verdict) -> None:
        super().__init__(explanation)
        self.verdict = verdict


class NeverAsserted(AssertionError):
    """A test stated a claim and ended without asking whether it holds."""


@dataclass(frozen=True)
class Settled:
    """A verdict, and the same in words."""

    verdict: Verdict
    explanation: str


class Judge(Protocol):
    """What settles claims: it measures, decides, records."""

    def stated(self, claim: "Claim") -> None:
        """Take note that a test has stated `claim`."""

    def settle(self, claim: "Claim") -> Settled:
        """Measure until `claim` is settled or the budget is spent."""


@dataclass(frozen=True)
class Load:
    """A workload on the drive of this test; what a fixture such as `random_read` hands out."""

    workload: Workload
    judge: Judge
    full_depth: int

    def __repr__(self) -> str:
        return self.workload.name  # pytest prints the arguments of a test that failed

    def at(self, *, depth: int | None = None, offered: int | None = None) -> "Quantity":
        """The rate, in requests a second, that the drive gives under this load.

        `depth` sets the device queue depth and offers a little more than that, so that
        the drive's queue is never short; depth 1 therefore means commands that are not
        queued.  `offered` alone leaves the device queue depth as the kernel set it and
        varies what the load generator keeps in flight.  Raises Misuse on a depth that
        the drive cannot hold.
        """
        if depth is None and offered is None:
            raise Misuse(f"{self.workload.name}.at() needs depth= or offered=")
        for name, value in (("depth", depth), ("offered", offered)):
            if value is not None and value < 1:
                raise Misuse(f"{self.workload.name}.at({name}={value}): depths start at 1")
        if depth is not None and depth > self.full_depth:
            raise Misuse(
                f"{self.workload.name}.at(depth={depth}): this drive and its controller hold "
                f"at most {self.full_depth} requests"
            )
        if offered is None:
            assert depth is not None
            offered = offered_for(depth)
        return Quantity(self, depth or self.full_depth, offered, _named(depth, offered))


def _named(depth: int | None, offered: int) -> str:
    if depth is None:
        return f"offered={offered}"
    if offered == offered_for(depth):
        return f"depth={depth}"
    return f"depth={depth}, offered={offered}"


def _refuse(what: str, instead: str) -> Callable[..., NoReturn]:
    def refused(self: "Quantity", *_: object) -> NoReturn:
        raise Misuse(f"{what} of a quantity that is not measured yet means nothing; {instead}")

    return refused


@dataclass(frozen=True, eq=False)
class Quantity:
    """A rate not yet measured, times a factor.  It scales and compares, and nothing else."""

    load: Load
    device_depth: int
    offered_depth: int
    named: str
    factor: float = 1.0
    source: str = ""

    # numpy numbers on the left would otherwise try to spread themselves over us.
    __array_ufunc__ = None

    def __mul__(self, factor: float) -> "Quantity":
        if not _is_number(factor):
            return NotImplemented
        if not factor > 0:
            raise Misuse(f"{factor} * {self}: a scale factor must be above 0")
        source = str(getattr(factor, "source", self.source))
        return replace(self, factor=self.factor * float(factor), source=source)

    __rmul__ = __mul__

    def __ge__(self, other: object) -> "Claim":
        return self._claim(other, ">=")

    def __le__(self, other: object) -> "Claim":
        return self._claim(other, "<=")

    __gt__ = _refuse("'>'", "write >=")
    __lt__ = _refuse("'<'", "write <=")
    __eq__ = _refuse("'=='", "write >= or <=, for two measured rates are never equal")
    __ne__ = _refuse("'!='", "write >= or <=, for two measured rates are never equal")
    __bool__ = _refuse("the truth", "compare it: random_read.at(depth=8) >= ...")
    __hash__ = None  # type: ignore[assignment]  # what cannot be compared cannot be a key

    @property
    def setting(self) -> SliceSetting:
        """The settings of one slice of this quantity, its length left to the judge."""
        return SliceSetting(device_depth=self.device_depth, offered_depth=self.offered_depth)

    def _claim(self, other: object, direction: Direction) -> "Claim":
        if not isinstance(other, Quantity):
            raise Misuse(
                f"{self} {direction} {other!r}: a quantity is compared with another quantity, "
                f"as in {self} {direction} 3 * {self.load.workload.name}.at(depth=1)"
            )
        if other.load.judge is not self.load.judge:
            raise Misuse(f"{self} {direction} {other}: the two are loads on different drives")
        claim = Claim(self, direction, other)
        self.load.judge.stated(claim)
        return claim

    def __str__(self) -> str:
        plain = f"{self.load.workload.name}.at({self.named})"
        return plain if self.factor == 1 else f"{self.factor:g} * {plain}"

    __repr__ = __str__


def _is_number(value: object) -> bool:
    return hasattr(value, "__float__") and not isinstance(value, bool | str)


class Claim:
    """A comparison of two quantities, settled once, when its truth is asked."""

    def __init__(self, left: Quantity, direction: Direction, right: Quantity) -> None:
        self.left = left
        self.direction = direction
        self.right = right
        self.settled: Settled | None = None

    @property
    def threshold(self) -> float:
        """What the ratio left over right, both unscaled, is held against."""
        return self.right.factor / self.left.factor

    @property
    def source(self) -> str:
        """Where the threshold comes from, when it is a limit of the firmware matrix."""
        return self.right.source or self.left.source

    def __bool__(self) -> bool:
        __tracebackhide__ = True
        if self.settled is None:
            self.settled = self.left.load.judge.settle(self)
        verdict, explanation = self.settled.verdict, self.settled.explanation
        if verdict.outcome is Outcome.PASS:
            return True
        if verdict.outcome is Outcome.FAIL:
            raise ClaimFailed(explanation, verdict)
        raise Unsettled(explanation, verdict)

    def __str__(self) -> str:
        return f"{self.left} {self.direction} {self.right}"

    __repr__ = __str__
