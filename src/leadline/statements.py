"""What a test can say of a drive: each statement knows its quantities, its limit, its words.

They are made by what `quantities` and `depth_curve` have, by `cycled.Cycled` and by
`multitasking.Multitasking`, and settled by `judge`.
"""

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Literal

from leadline.drive.request_limits import in_binary
from leadline.errors import Misuse
from leadline.load.slices import SliceSetting
from leadline.on_record import Beside, Found, Recorded

if TYPE_CHECKING:
    from leadline.depth_curve import Curve
    from leadline.quantities import Load, Quantity
    from leadline.trace.rounds import ReplayedTrace
    from leadline.verdict.regression import Firmware

Bound = Literal[">=", "<="]
OUTSTANDING = 8
"""Requests kept in flight to see how large they arrive: several, for some fail only then."""


@dataclass(frozen=True)
class Ratio:
    """One quantity held against another: `left direction right`."""

    left: "Quantity"
    direction: Bound
    right: "Quantity"

    @property
    def load(self) -> "Load":
        """The workload, on the drive of this test."""
        return self.left.load

    @property
    def quantities(self) -> "tuple[Quantity, ...]":
        """What is measured, without factors."""
        return self.left.plain, self.right.plain

    @property
    def threshold(self) -> float:
        """What the ratio left over right, both without factors, is held against."""
        return self.right.factor / self.left.factor

    @property
    def source(self) -> str:
        """Where the threshold comes from, when it is a limit of the firmware matrix."""
        return self.right.source or self.left.source

    def __str__(self) -> str:
        return f"{self.left} {self.direction} {self.right}"


@dataclass(frozen=True)
class Against:
    """One quantity held against a figure in its own unit."""

    quantity: "Quantity"
    direction: Bound
    figure: float
    source: str = ""

    @property
    def load(self) -> "Load":
        """The workload, on the drive of this test."""
        return self.quantity.load

    @property
    def quantities(self) -> "tuple[Quantity, ...]":
        """What is measured, without factors."""
        return (self.quantity.plain,)

    @property
    def threshold(self) -> float:
        """What the quantity, without its factor, is held against."""
        return self.figure / self.quantity.factor

    def __str__(self) -> str:
        return f"{self.quantity} {self.direction} {self.figure:g} {self.quantity.unit}"


@dataclass(frozen=True)
class Agreement:
    """Two quantities that differ by at most `within` (0.05 is 5 %), whichever is larger."""

    left: "Quantity"
    right: "Quantity"
    within: float
    source: str = ""

    @property
    def load(self) -> "Load":
        """The workload, on the drive of this test."""
        return self.left.load

    @property
    def quantities(self) -> "tuple[Quantity, ...]":
        """What is measured."""
        return self.left, self.right

    def __str__(self) -> str:
        return f"{self.left} agrees with {self.right} within {self.within:.3g}"


@dataclass(frozen=True)
class AsRecorded:
    """A quantity that differs by at most `within` from what another session measured.

    `recorded` is None where nothing is on record of `whose`; `beside` is None where that is the
    drive itself.  `look_again` may find both later; `known` is what others find of this drive.
    """

    quantity: "Quantity"
    recorded: Recorded | None
    within: float
    whose: str
    source: str = ""
    beside: Beside | None = None
    look_again: "Callable[[], Found]" = lambda: (None, None)
    known: "Callable[[], Recorded | None]" = lambda: None

    @property
    def load(self) -> "Load":
        """The workload, on the drive of this test."""
        return self.quantity.load

    @property
    def quantities(self) -> "tuple[Quantity, ...]":
        """What is measured: the quantity, and the same by commands that are not queued."""
        return self.quantity, self.quantity.without_ncq

    def __str__(self) -> str:
        return f"{self.quantity} agrees with {self.whose} within {self.within:.3g}"


@dataclass(frozen=True)
class AtStation:
    """What one regression station recorded: the rates (requests a second) of the slices that
    count, in their order.

    `seconds` is how long each was, `spent_s` the drive time of all that were measured there,
    `voids` why they do not count, if they do not; `whose` says in words where and when it was.
    `depth` is the device queue depth that was set, None of what is from before it was kept.
    """

    number: int
    rates: tuple[float, ...]
    seconds: float
    spent_s: float
    whose: str
    voids: tuple[str, ...] = ()
    depth: int | None = None


@dataclass(frozen=True)
class NotRegressed:
    """A quantity of which a candidate keeps all but `within` of what the released firmware gave.

    It is recorded at stations, four to a round, at which the drive has the firmwares of `order`,
    and judged at the last one that is measured; this is station `number`, `recorded` what the
    others left.  With a `stored_baseline` the released firmware's are those of an earlier run.
    `passed_over` says why it is held against another than its predecessor, "" where it is not.
    """

    quantity: "Quantity"
    within: float
    released: str
    candidate: str
    order: "tuple[Firmware, ...]"
    number: int
    judged: bool
    recorded: tuple[AtStation, ...] = ()
    stored_baseline: bool = False
    source: str = ""
    passed_over: str = ""

    @property
    def load(self) -> "Load":
        """The workload, on the drive of this test."""
        return self.quantity.load

    @property
    def side(self) -> str:
        """The name under which this station's slices are kept."""
        return side_of(str(self.quantity), self.number, self.candidate, self.released)

    def revision_at(self, number: int) -> str:
        """The firmware at a station."""
        return self.candidate if self.order[number - 1] == "candidate" else self.released

    def __str__(self) -> str:
        return f"{self.quantity} has not regressed against {self.released} within {self.within:.3g}"


def side_of(quantity: str, number: int, candidate: str, released: str) -> str:
    """The name under which the slices of a quantity are kept at a regression station."""
    return f"{quantity}, station {number} of {candidate} against {released}"


@dataclass(frozen=True)
class NoDip:
    """A curve that nowhere falls below its neighbours' chord by more than `tolerance`."""

    curve: "Curve"
    tolerance: float
    source: str = ""

    @property
    def load(self) -> "Load":
        """The workload, on the drive of this test."""
        return self.curve.load

    def __str__(self) -> str:
        return f"{self.curve} has no dip of more than {self.tolerance:.3g}"


@dataclass(frozen=True)
class Swept:
    """A sweep of a curve that another claim has made already: the rates (requests a second) of each
    depth, pass by pass, and how many seconds a slice had to take there.

    `waited`: how much of what was offered waited in the host, in words.
    """

    rates: Mapping[int, tuple[float, ...]]
    lengths: Mapping[int, float]
    waited: str = ""


@dataclass(frozen=True)
class NoCollapse:
    """A curve whose last point keeps all but `within` of the best one before it.

    Which one is the best is seen in a sweep: in one that is there already, if `swept`.
    """

    curve: "Curve"
    within: float
    source: str = ""
    swept: Swept | None = None

    @property
    def load(self) -> "Load":
        """The workload, on the drive of this test."""
        return self.curve.load

    def __str__(self) -> str:
        return f"{self.curve} does not collapse by more than {self.within:.3g}"


@dataclass(frozen=True)
class Arrival:
    """Requests of `asked` bytes that are served, and reach the drive as `at_least` bytes each.

    Their data is in hugepages of `huge_page_bytes`, or in ordinary memory (None).  `source`
    says which of the kernel's limits makes it so much.
    """

    load: "Load"
    asked: int
    at_least: int
    huge_page_bytes: int | None = None
    source: str = ""

    @property
    def setting(self) -> SliceSetting:
        """That of the slice that shows it, its length left to the judge."""
        return SliceSetting(
            device_depth=None,
            offered_depth=OUTSTANDING,
            block_bytes=self.asked,
            huge_page_bytes=self.huge_page_bytes,
            watched=True,
        )

    def __str__(self) -> str:
        memory = " from hugepages" if self.huge_page_bytes else ""
        size = f"{in_binary(self.asked)}{memory} arrives as {in_binary(self.at_least)}"
        return f"{self.load.workload.name} of {size}"


Milestone = Literal["link_up", "identified", "ready"]
"""What a drive comes to after power on: its SATA link up, IDENTIFY answered, a block read."""


@dataclass(frozen=True)
class Within:
    """Every power cycle of a visit that came to a milestone in at most `limit` seconds.

    `times` are those of the cycles, from power on and in their order; None where nobody saw it.
    """

    milestone: Milestone
    limit: float
    times: tuple[float | None, ...]
    abrupt: bool = False
    source: str = ""

    def __str__(self) -> str:
        cycle = "abrupt_power_cycle" if self.abrupt else "power_cycle"
        return f"{cycle}.{self.milestone}_within({self.limit:g})"


@dataclass(frozen=True)
class Gain:
    """Traces whose mean service times gain at least `at_least` by NCQ: on average, or `each`.

    A gain is (off - on) / off: 0.05 is 5 %, and -0.1 is a tenth slower with NCQ than without.
    All evidence is in `traces`; `spent_s` is the drive time of the rounds that were replayed for
    this very statement, others having been there.  `asked` names the traces, as a test does.
    """

    asked: str
    at_least: float
    each: bool
    traces: "tuple[ReplayedTrace, ...]"
    spent_s: float
    source: str = ""

    def __str__(self) -> str:
        if self.each:
            return f"{self.asked}.no_load_loses_more_than({-self.at_least:g})"
        return f"{self.asked}.gains_at_least({self.at_least:g})"


Contrast = Ratio | Against | Agreement
"""Statements that blocks of slices settle by themselves."""
Measured = Contrast | AsRecorded | NoDip | NoCollapse
"""Statements that slices are measured for."""
Statement = Measured | Arrival | Within | Gain | NotRegressed


def share(value: object, words: str) -> float:
    """`value` as a share between 0 and 1, such as 0.05 for 5 %.  Misuse for anything else."""
    if not isinstance(value, int | float) or not 0.0 < value < 1.0:
        raise Misuse(f"{words}={value!r}: a share lies between 0 and 1, as 0.05 for 5 %")
    return float(value)
