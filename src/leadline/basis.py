"""What a verdict rests on besides its slices, in the form in which it is stored.

A statement holds the judge that settles it, so it is taken apart here, and put together
again around another judge.
"""

from collections.abc import Sequence
from dataclasses import replace
from typing import TYPE_CHECKING, Annotated, Literal, Self

from pydantic import BaseModel, ConfigDict, Field, model_validator

from leadline.claims import Judge
from leadline.depth_curve import Curve
from leadline.errors import Misuse
from leadline.load.workload import Workload
from leadline.on_record import Beside, Recorded
from leadline.plans import Noise
from leadline.quantities import MB_PER_S, REQUESTS_PER_S, SECONDS, Load, Quantity
from leadline.results.rows import digest_of
from leadline.statements import (
    Against,
    Agreement,
    Arrival,
    AsRecorded,
    AtStation,
    Bound,
    Gain,
    Measured,
    Milestone,
    NoCollapse,
    NoDip,
    NotRegressed,
    Ratio,
    Statement,
    Swept,
    Within,
)
from leadline.trace.rounds import ReplayedTrace
from leadline.verdict.regression import STATIONS, Firmware

if TYPE_CHECKING:
    from leadline.judge import SliceJudge
    from leadline.results.schema import SliceRow

Kind = Literal["ratio", "figure", "agreement", "record", "dip", "collapse"]
_Positive = Annotated[float, Field(gt=0)]


class _Stored(BaseModel):
    """Unknown fields are refused: what is not understood cannot have been taken into account."""

    model_config = ConfigDict(frozen=True, extra="forbid", allow_inf_nan=False)


class StoredQuantity(_Stored):
    """A `quantities.Quantity` without its load."""

    device_depth: int
    offered_depth: int
    named: str
    factor: _Positive
    source: str
    unit: Annotated[str, Field(pattern=f"^({REQUESTS_PER_S}|{MB_PER_S}|{SECONDS})$")]
    volume_bytes: int | None = None
    threads: int = 1
    block_bytes: int | None = None
    drives: int = 1


class StoredStatement(_Stored):
    """A statement that slices are measured for.

    `quantities` are what is measured, in the order in which the statement names them; the
    points of a curve, lowest depth first.  `limit` is the figure (in the quantity's unit),
    or the share of `within` and `tolerance`; a ratio has none, for its threshold is in the
    factors.  `direction` is that of a ratio or a figure; `concave_from` is a curve's,
    and `swept` the sweep of another claim of it that this one has made use of.
    """

    kind: Kind
    workload: Workload
    full_depth: int
    quantities: tuple[StoredQuantity, ...]
    direction: Bound | None = None
    limit: _Positive | None = None
    source: str = ""
    recorded: Recorded | None = None
    whose: str = ""
    beside: Beside | None = None
    concave_from: int = 1
    swept: Swept | None = None


class StoredArrival(_Stored):
    """A `statements.Arrival`; one slice was watched for it.  Sizes are in bytes."""

    kind: Literal["arrival"] = "arrival"
    workload: Workload
    full_depth: int
    asked: int
    at_least: int
    huge_page_bytes: int | None
    source: str


class StoredWithin(_Stored):
    """A `statements.Within`, whose evidence is in itself: the times of power cycles, seconds."""

    kind: Literal["within"] = "within"
    milestone: Milestone
    limit: _Positive
    times: tuple[Annotated[float, Field(ge=0)] | None, ...]
    abrupt: bool
    source: str


class StoredGain(_Stored):
    """A `statements.Gain`, whose evidence is in itself: the rounds of each trace."""

    kind: Literal["gain"] = "gain"
    asked: str
    at_least: Annotated[float, Field(gt=-1, lt=1)]
    each: bool
    traces: Annotated[tuple[ReplayedTrace, ...], Field(min_length=1)]
    spent_s: Annotated[float, Field(ge=0)]
    source: str


class StoredRegression(_Stored):
    """A `statements.NotRegressed` at its last station; `recorded` is what the others left."""

    kind: Literal["regression"] = "regression"
    workload: Workload
    full_depth: int
    quantity: StoredQuantity
    within: Annotated[float, Field(gt=0, lt=1)]
    released: str
    candidate: str
    order: Annotated[tuple[Firmware, ...], Field(min_length=STATIONS)]
    number: Annotated[int, Field(ge=1)]
    recorded: tuple[AtStation, ...]
    stored_baseline: bool
    source: str
    passed_over: str = ""

    @model_validator(mode="after")
    def _is_of_whole_rounds(self) -> Self:
        if len(self.order) % STATIONS or self.number > len(self.order):
            raise ValueError(f"station {self.number} of {len(self.order)}: a round has {STATIONS}")
        return self


Stored = StoredStatement | StoredArrival | StoredWithin | StoredGain | StoredRegression


class Basis(_Stored):
    """What a verdict rests on besides its slices: its statement and all that its judge knew.

    `slice_s` is the length of a slice to begin with, `budget_s` the drive time of one claim
    and `curve_budget_s` of one of a curve (seconds), `seed` that of the order in which depths
    are screened.  Of its slices it has the number and the `results.rows.digest_of` them, so
    that none is lost unseen.
    """

    statement: Annotated[Stored, Field(discriminator="kind")]
    slice_s: _Positive
    budget_s: _Positive
    curve_budget_s: _Positive | None = None  # sixteen times budget_s: from before it was kept
    noise: Noise
    seed: int
    slices: int
    slices_sha256: str


def basis_of(statement: Statement, judge: "SliceJudge", slices: "Sequence[SliceRow]") -> Basis:
    """The basis of the verdict on `statement` to which `judge` has just come by `slices`."""
    return Basis(
        statement=stored(statement),
        slice_s=judge.slice_s,
        budget_s=judge.budget_s,
        curve_budget_s=judge.curve_budget_s,
        noise=judge.noise,
        seed=judge.now.seed,
        slices=len(slices),
        slices_sha256=digest_of(slices),
    )


def stored(statement: Statement) -> Stored:
    """The statement taken apart."""
    if isinstance(statement, Within):
        return StoredWithin.model_validate(statement, from_attributes=True)
    if isinstance(statement, Gain):
        return StoredGain.model_validate(statement, from_attributes=True)
    if isinstance(statement, Arrival):
        return _stored_arrival(statement)
    if isinstance(statement, NotRegressed):
        return _stored_regression(statement)
    return _stored(statement)


def _stored_arrival(said: Arrival) -> StoredArrival:
    return StoredArrival(
        workload=said.load.workload,
        full_depth=said.load.full_depth,
        asked=said.asked,
        at_least=said.at_least,
        huge_page_bytes=said.huge_page_bytes,
        source=said.source,
    )


def _stored_regression(said: NotRegressed) -> StoredRegression:
    return StoredRegression(
        workload=said.load.workload,
        full_depth=said.load.full_depth,
        quantity=StoredQuantity.model_validate(said.quantity, from_attributes=True),
        within=said.within,
        released=said.released,
        candidate=said.candidate,
        order=said.order,
        number=said.number,
        recorded=said.recorded,
        stored_baseline=said.stored_baseline,
        source=said.source,
        passed_over=said.passed_over,
    )


def _stored(statement: Measured) -> StoredStatement:
    kind: Kind
    quantities: tuple[Quantity, ...]
    direction: Bound | None = None
    limit: float | None = None
    recorded: Recorded | None = None
    beside: Beside | None = None
    whose = ""
    swept: Swept | None = None
    match statement:
        case Ratio(left, direction, right):
            kind, quantities = "ratio", (left, right)
        case Against(quantity, direction, limit):
            kind, quantities = "figure", (quantity,)
        case Agreement(left, right, limit):
            kind, quantities = "agreement", (left, right)
        case AsRecorded(quantity, recorded, limit, whose, _, beside):
            kind, quantities = "record", (quantity,)
        case NoDip(curve, limit):
            kind, quantities = "dip", curve.points
        case NoCollapse(curve, limit, _, swept):
            kind, quantities = "collapse", curve.points
    return StoredStatement(
        kind=kind,
        workload=statement.load.workload,
        full_depth=statement.load.full_depth,
        quantities=tuple(
            StoredQuantity.model_validate(each, from_attributes=True) for each in quantities
        ),
        direction=direction,
        limit=limit,
        source=statement.source,
        recorded=recorded,
        whose=whose,
        beside=beside,
        concave_from=statement.load.concave_from,
        swept=swept,
    )


def statement_of(said: Stored, judge: Judge) -> Statement:
    """The statement put together again, about loads that `judge` settles.

    Raises Misuse when the parts do not make a statement of their kind.
    """
    if isinstance(said, StoredWithin):
        return Within(said.milestone, said.limit, said.times, said.abrupt, said.source)
    if isinstance(said, StoredGain):
        return Gain(said.asked, said.at_least, said.each, said.traces, said.spent_s, said.source)
    load = Load(said.workload, judge, said.full_depth)
    if isinstance(said, StoredArrival):
        return Arrival(load, said.asked, said.at_least, said.huge_page_bytes, said.source)
    if isinstance(said, StoredRegression):
        return _regression_of(said, load)
    return _statement_of(said, load)


def _statement_of(said: StoredStatement, load: Load) -> Statement:
    load = replace(load, concave_from=said.concave_from)
    parts = [_quantity(load, each) for each in said.quantities]
    match said.kind, parts, said.direction, said.limit:
        case "ratio", [left, right], ">=" | "<=" as direction, None:
            return Ratio(left, direction, right)
        case "figure", [quantity], ">=" | "<=" as direction, float(limit):
            return Against(quantity, direction, limit, said.source)
        case "agreement", [left, right], None, float(limit):
            return Agreement(left, right, limit, said.source)
        case "record", [quantity], None, float(limit) if said.recorded:
            whose, source, beside = said.whose, said.source, said.beside
            return AsRecorded(quantity, said.recorded, limit, whose, source, beside)
        case "dip", [_, _, _, *_], None, float(limit):
            return NoDip(Curve(load, tuple(parts)), limit, said.source)
        case "collapse", [_, _, _, *_], None, float(limit):
            return NoCollapse(Curve(load, tuple(parts)), limit, said.source, said.swept)
    raise Misuse(
        f"a statement of kind {said.kind!r} with {len(parts)} quantities, direction "
        f"{said.direction} and limit {said.limit}: its parts do not fit together"
    )


def _regression_of(said: StoredRegression, load: Load) -> NotRegressed:
    return NotRegressed(
        _quantity(load, said.quantity),
        said.within,
        said.released,
        said.candidate,
        said.order,
        said.number,
        judged=True,
        recorded=said.recorded,
        stored_baseline=said.stored_baseline,
        source=said.source,
        passed_over=said.passed_over,
    )


def _quantity(load: Load, stored_: StoredQuantity) -> Quantity:
    return Quantity(load, **stored_.model_dump())
