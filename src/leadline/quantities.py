"""The language of the tests: quantities and curves, and what can be said of them.

    assert random_read.at(depth=8) >= 3 * random_read.at(depth=1)
    assert random_read.at(depth=32).mb_per_s >= 200
    assert random_read.at(depth=8).agrees_with(random_read.at(depth=16), within=0.05)
    assert random_read.at(depth=8).has_not_regressed(released, within=0.03)
    assert random_read.curve().has_no_dip()
    assert random_mix.curve(offered=128).does_not_collapse()
    assert random_read.arrives_as(request_limits.promise(MIB))

`random_read.at(depth=8)` is a `Quantity`: something that can be measured and has
not been yet.  Saying something of it makes a `Claim`.
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from functools import partial
from typing import TYPE_CHECKING

from leadline.claims import Claim, Judge, stated
from leadline.depth_curve import Curve, whole_curve
from leadline.drive.request_limits import Promise, in_binary
from leadline.errors import DriveFault, Inconclusive, Misuse
from leadline.left_depth import refuse_left_shallow
from leadline.load.slices import SliceSetting, offered_for
from leadline.load.workload import SECTOR_BYTES, Workload
from leadline.on_record import History
from leadline.statements import (
    Against,
    Agreement,
    Arrival,
    AsRecorded,
    Bound,
    Ratio,
    share,
)
from leadline.unmeasured import figure, finite, is_number, refuse

if TYPE_CHECKING:
    from leadline.released import Released

REQUESTS_PER_S, MB_PER_S, SECONDS = "requests/s", "MB/s", "s"
NCQ_OFF = ", NCQ off"
"""In the name of a quantity that is measured once more by commands that are not queued."""
_OTHER = "give one of them another depth=, offered=, threads= or size="


@dataclass(frozen=True)
class Load:
    """A workload on the drive of this test; what a fixture such as `random_read` hands out."""

    workload: Workload
    judge: Judge
    full_depth: int
    kernel_depth: int | None = None
    most_drives: int = 1
    channels: int | None = None
    owed_depth: int | None = None
    """The queue that the firmware matrix promises, where the drive advertises less of one."""
    concave_from: int = 1
    """The depth from which on its curve is concave: see `verdict.curve.Sweep`."""
    admit: Callable[[int], None] | None = None
    """Raises what forbids a device queue depth: see `depths.admit_depth`."""

    def __repr__(self) -> str:
        return self.workload.name  # pytest prints the arguments of a test that failed

    def at(
        self,
        *,
        depth: int | None = None,
        offered: int | None = None,
        threads: int | None = None,
        size: int | None = None,
        drives: int = 1,
    ) -> "Quantity":
        """The rate, in requests a second, that the drive gives under this load.

        `depth` sets the device queue depth and offers a little more than that, so that
        the drive's queue is never short; depth 1 therefore means commands that are not
        queued.  `offered` or `threads` alone leave the device queue depth as the kernel set
        it and vary what the load generator keeps in flight.  `threads` share what is offered,
        by default one request each; of a sequential workload each is a stream, in a zone of
        the drive that is its own.  `size` is that of each request, in bytes, where it is not
        the workload's own.  Over several `drives` each has that depth, and its part of what is
        offered.  Raises Misuse on a depth that the drive cannot hold, where threads cannot share
        alike, and on a size that is no multiple of a sector; DriveFault on a depth that the
        firmware matrix promises and the drive does not advertise; Inconclusive without `depth`
        where the device queue depth was left much lower than what is offered and can be held.
        """
        if depth is None and offered is None and threads is None:
            raise Misuse(f"{self.workload.name}.at() needs depth=, offered= or threads=")
        asked = {"depth": depth, "offered": offered, "threads": threads, "drives": drives}
        for name, value in asked.items():
            if value is not None and value < 1:
                raise Misuse(f"{self.workload.name}.at({name}={value}): {name} starts at 1")
        if drives > self.most_drives:
            raise Misuse(f"{self.workload.name}.at({drives=}): it has {self.most_drives}")
        if depth is not None and self.full_depth < depth <= (self.owed_depth or 0):
            raise DriveFault(
                f"{self.workload.name}.at(depth={depth}): the drive advertises a queue of "
                f"{self.full_depth}, and the firmware matrix has {self.owed_depth} for it"
            )
        if depth is not None and depth > self.full_depth:
            raise Misuse(
                f"{self.workload.name}.at(depth={depth}): this drive and its controller hold "
                f"at most {self.full_depth} requests"
            )
        named = _named(depth, offered, threads, drives)
        jobs = threads or drives
        if offered is None:
            offered = threads or drives * offered_for(depth or self.full_depth)
        if offered % jobs or jobs % drives:
            raise Misuse(f"{self.workload.name}.at({named}): each thread offers as much as another")
        if size is not None and (size < SECTOR_BYTES or size % SECTOR_BYTES):
            raise Misuse(f"{self.workload.name}.at(size={size}): a multiple of {SECTOR_BYTES}")
        named += f", size={in_binary(size)}" if size else ""
        if depth is None:
            refuse_left_shallow(self, offered // drives, named)
        device_depth = depth or self.kernel_depth or self.full_depth
        made = Quantity(self, device_depth, offered, named, threads=jobs, block_bytes=size)
        return replace(made, drives=drives, depth_left=depth is None)

    @property
    def whole_queue(self) -> "Quantity":
        """The rate by as deep a queue as the drive and its controller hold, named for just that."""
        return replace(self.at(depth=self.full_depth), named="whole queue")

    def arrives_as(self, promise: Promise) -> Claim:
        """Claim that requests of the size that is promised for are served, and that they reach
        the drive as large as is promised."""
        huge_page = promise.page_bytes if promise.huge else None
        arrival = Arrival(self, promise.asked, promise.guaranteed, huge_page, str(promise))
        return stated(arrival, self.judge)

    def curve(self, depths: Sequence[int] | None = None, *, offered: int | None = None) -> "Curve":
        """The rate over the device queue depth: at `depths`, or at those of `whole_curve`.

        At each depth a little more is offered, or so many as are `offered` at them all: of these
        what the drive may not hold waits in the host, and no depth is deeper.  Raises Misuse on
        fewer than three depths, on one that is there twice, and on one that the drive cannot
        hold, or that is deeper than what is offered.
        """
        deepest = self.full_depth if offered is None else min(offered, self.full_depth)
        wanted = sorted(whole_curve(deepest) if depths is None else depths)
        if len(set(wanted)) < max(3, len(wanted)):
            raise Misuse(f"{self.workload.name}.curve({depths}): at least three depths, each once")
        if offered is not None and wanted[-1] > offered:
            raise Misuse(
                f"{self.workload.name}.curve({depths}, {offered=}): {offered} requests do not fill "
                f"a queue of {wanted[-1]}"
            )
        return Curve(self, tuple(self.at(depth=depth, offered=offered) for depth in wanted))


def _named(depth: int | None, offered: int | None, threads: int | None, drives: int) -> str:
    """What was asked for, without what goes without saying."""
    if threads is None and depth is not None and offered == drives * offered_for(depth):
        offered = None
    asked = {"depth": depth, "offered": offered, "threads": threads}
    asked["drives"] = drives if drives > 1 else None
    return ", ".join(f"{name}={value}" for name, value in asked.items() if value is not None)


@dataclass(frozen=True, eq=False)
class Quantity:
    """A rate not yet measured, times a factor.  It scales and compares, and nothing else."""

    load: Load
    device_depth: int
    offered_depth: int
    named: str
    factor: float = 1.0
    source: str = ""
    unit: str = REQUESTS_PER_S
    volume_bytes: int | None = None
    threads: int = 1
    block_bytes: int | None = None
    drives: int = 1
    depth_left: bool = False
    """Whether the device queue depth is what the kernel had set, for the test names none."""

    # numpy numbers on the left would otherwise try to spread themselves over us.
    __array_ufunc__ = None

    def __mul__(self, factor: float) -> "Quantity":
        if not is_number(factor):
            return NotImplemented
        product = self.factor * figure(factor)
        if not finite(product):
            raise Misuse(f"{factor} * {self}: a scale factor is finite and above 0")
        source = str(getattr(factor, "source", self.source))
        return replace(self, factor=product, source=source)

    __rmul__ = __mul__

    def __ge__(self, other: object) -> Claim:
        return self._claim(other, ">=")

    def __le__(self, other: object) -> Claim:
        return self._claim(other, "<=")

    __gt__ = refuse("'>'", "write >=")
    __lt__ = refuse("'<'", "write <=")
    __eq__ = refuse("'=='", "write >= or <=, for two measured rates are never equal")
    __ne__ = refuse("'!='", "write >= or <=, for two measured rates are never equal")
    __bool__ = refuse("the truth", "compare it: random_read.at(depth=8) >= ...")
    __hash__ = None  # type: ignore[assignment]  # what cannot be compared cannot be a key

    @property
    def plain(self) -> "Quantity":
        """The same without its factor."""
        return replace(self, factor=1.0, source="")

    @property
    def without_ncq(self) -> "Quantity":
        """The same by commands that are not queued.

        No more waits in the host than keeps the drive busy, but one for each thread: the rest would
        wait in its turn, and a slice last until all of it has turned over.
        """
        offered = self.offered_depth
        if self.threads == self.drives:
            offered = min(offered, self.drives * offered_for(1))
        off = replace(self, device_depth=1, offered_depth=offered, depth_left=False)
        return replace(off, named=f"{self.named}{NCQ_OFF}")

    @property
    def mb_per_s(self) -> "Quantity":
        """The same as a bandwidth: rate times request size, in 10^6 bytes a second."""
        return replace(self, unit=MB_PER_S)

    @property
    def request_bytes(self) -> int:
        """The size of each request."""
        return self.block_bytes or self.load.workload.block_bytes

    def time_for(self, volume_bytes: int) -> "Quantity":
        """The same as the seconds that so many bytes take, as in `<= 60`.

        Raises Misuse for less than one request.
        """
        if not volume_bytes >= self.request_bytes:
            raise Misuse(f"{self}.time_for({volume_bytes}): bytes, at least one request")
        return replace(self, unit=SECONDS, volume_bytes=volume_bytes)

    def in_unit(self, rate: float) -> float:
        """What a rate of so many requests a second is in `unit`, without the factor."""
        if self.unit == REQUESTS_PER_S:
            return rate
        bandwidth = rate * self.request_bytes
        return bandwidth / 1e6 if self.volume_bytes is None else self.volume_bytes / bandwidth

    def agrees_with(self, other: "Quantity | History", *, within: float) -> Claim:
        """Claim that the two differ by at most `within`: 0.05 is 5 %, of whichever is smaller.

        The other may be what is on record, of this drive or of others of its kind.  To agree
        with that on a load which NCQ does not change would be no evidence, so that there NCQ
        has to make a difference on this drive.  Raises Misuse when either has a factor, on two
        sizes, and as comparing does.
        """
        if isinstance(other, History):
            if self.factor != 1.0 or self.unit != REQUESTS_PER_S:
                raise Misuse(f"{self}.agrees_with({other}): rates without factors are on record")
            limit = share(within, "within")
            source = str(getattr(within, "source", ""))
            look, known = partial(other.look, str(self)), partial(other.known, str(self))
            found, beside = look()
            said = AsRecorded(self, found, limit, other.of, source, beside, look, known)
            return stated(said, self.load.judge)
        self._comparable(other, "agrees with")
        if self.block_bytes != other.block_bytes:
            raise Misuse(f"{self}.agrees_with({other}): requests of two sizes do not agree")
        if self.factor != 1.0 or other.factor != 1.0:
            raise Misuse(f"{self}.agrees_with({other}): quantities without factors agree")
        limit = share(within, "within")
        return stated(Agreement(self, other, limit, getattr(within, "source", "")), self.load.judge)

    @property
    def setting(self) -> SliceSetting:
        """The settings of one slice of this quantity, its length left to the judge."""
        return SliceSetting(
            device_depth=self.device_depth,
            offered_depth=self.offered_depth,
            jobs=self.threads,
            block_bytes=self.block_bytes,
            drives=self.drives,
        )

    def _claim(self, other: object, direction: Bound) -> Claim:
        if is_number(other):
            source = str(getattr(other, "source", ""))
            against = Against(self, direction, figure(other), source)
            if not finite(against.threshold):
                raise Misuse(f"{self} {direction} {other!r}: a rate is finite and above 0")
            return stated(against, self.load.judge)
        ratio = Ratio(self, direction, self._comparable(other, direction))
        if not finite(ratio.threshold):
            raise Misuse(f"{ratio}: the ratio of the factors is finite and above 0")
        return stated(ratio, self.load.judge)

    def has_not_regressed(self, released: "Released", *, within: float) -> Claim:
        """Claim that the candidate keeps all but `within` (0.03 is 3 %) of what the released
        firmware gives, by slices of both from regression stations.

        Raises Misuse when it has a factor or another unit than requests a second.
        """
        if self.factor != 1.0 or self.unit != REQUESTS_PER_S:
            raise Misuse(
                f"{self}.has_not_regressed({released}): rates without factors are recorded"
            )
        limit = share(within, "within")
        source = str(getattr(within, "source", ""))
        return stated(released.statement(self, limit, source), self.load.judge)

    def _comparable(self, other: object, word: str) -> "Quantity":
        if not isinstance(other, Quantity):
            raise Misuse(
                f"{self} {word} {other!r}: a quantity is compared with a number or with another "
                f"quantity, as in {self} {word} {self.load.workload.name}.at(depth=1)"
            )
        if other.load.judge is not self.load.judge:
            raise Misuse(f"{self} {word} {other}: the two are loads on different drives")
        if other.load.workload != self.load.workload:
            raise Misuse(f"{self} {word} {other}: slices of two workloads are not interleaved")
        if SECONDS in (self.unit, other.unit):
            raise Misuse(f"{self} {word} {other}: a time is held against a number of seconds")
        if other.unit != self.unit:
            raise Misuse(f"{self} {word} {other}: one is in {self.unit}, the other in {other.unit}")
        if other.block_bytes != self.block_bytes and self.unit != MB_PER_S:
            raise Misuse(f"{self} {word} {other}: of two sizes; compare them .mb_per_s")
        self._refuse_itself(other, f"{self} {word} {other}")
        return other

    def _refuse_itself(self, other: "Quantity", said: str) -> None:
        """Refuse to hold one setting against itself, which says nothing of the drive.

        Raises Misuse where it is written so.  Where the kernel's own device queue depth has made
        the two one, it raises what keeps the drive from queueing, or else Inconclusive.
        """
        one, another = (
            replace(side.setting, block_bytes=side.request_bytes) for side in (self, other)
        )
        if one != another:
            return
        depth, whole = self.device_depth, self.load.full_depth
        if self.depth_left is other.depth_left or depth == whole:
            raise Misuse(f"{said}: both are one setting, which says nothing; {_OTHER}")
        if self.load.admit is not None:
            self.load.admit(whole)
        raise Inconclusive(
            f"{said}: both are one setting, for the device queue depth was left at {depth}, and "
            f"{self.load.workload.name}.full_depth is {whole}; look for what has set it "
            "(`cat /sys/block/*/device/queue_depth` on the rig), or give depth= on both sides"
        )

    def __str__(self) -> str:
        plain = f"{self.load.workload.name}.at({self.named})"
        if self.unit == MB_PER_S:
            plain += ".mb_per_s"
        elif self.volume_bytes is not None:
            plain += f".time_for({self.volume_bytes / 1e9:g} GB)"
        return plain if self.factor == 1 else f"{self.factor:g} * {plain}"

    __repr__ = __str__
