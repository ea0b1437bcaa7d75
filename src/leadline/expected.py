"""What a drive must reach: limits of its class or model, each knowing where it comes from."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass

from leadline.errors import Misuse
from leadline.inventory.matrix import LimitSpec


class Limit(float):
    """A number that knows its claim and its source; it computes like any other."""

    claim: str
    source: str

    def __new__(cls, value: float, claim: str, source: str) -> "Limit":
        limit = super().__new__(cls, value)
        limit.claim = claim
        limit.source = source
        return limit


@dataclass(frozen=True)
class Expected:
    """The limits for one drive, from the firmware matrix."""

    model: str
    limits: Mapping[str, LimitSpec]
    where: Callable[[str], str] | None = None
    """``file:line`` of the limit that holds in a claim."""

    def __repr__(self) -> str:
        return f"the limits of {self.model}"

    @property
    def depth_8_over_depth_1(self) -> Limit:
        """Random 4 KiB reads at device queue depth 8 over those at 1; a ratio."""
        return self._at_least("depth_8_over_depth_1")

    @property
    def ncq_off_over_on(self) -> Limit:
        """Random 4 KiB reads at device queue depth 1 over those at the deepest; at most."""
        return self._at_most("ncq_off_over_on")

    @property
    def streams_ncq_on_over_off(self) -> Limit:
        """Sequential reads by several streams with NCQ on over those with NCQ off; a ratio."""
        return self._at_least("streams_ncq_on_over_off")

    @property
    def threads_ncq_on_over_off(self) -> Limit:
        """Random 4 KiB reads by 8 or more threads with NCQ on over those with it off; a ratio."""
        return self._at_least("threads_ncq_on_over_off")

    @property
    def few_threads_ncq_on_over_off(self) -> Limit:
        """Random 4 KiB reads by 2 or more threads with NCQ on over those with it off; a ratio."""
        return self._at_least("few_threads_ncq_on_over_off")

    @property
    def random_mix_depth_8_over_depth_1(self) -> Limit:
        """70 % random 4 KiB reads, 30 % writes at device queue depth 8 over those at 1; a ratio."""
        return self._at_least("random_mix_depth_8_over_depth_1")

    @property
    def random_mix_ncq_off_over_on(self) -> Limit:
        """That mix at device queue depth 1 over what it is at the deepest; at most."""
        return self._at_most("random_mix_ncq_off_over_on")

    @property
    def random_write_depth_8_over_depth_1(self) -> Limit:
        """Random 4 KiB writes at device queue depth 8 over those at 1; a ratio."""
        return self._at_least("random_write_depth_8_over_depth_1")

    @property
    def drives_over_linear(self) -> Limit:
        """Random 4 KiB reads of several drives over so many times those of one; a ratio."""
        return self._at_least("drives_over_linear")

    @property
    def streams_over_linear(self) -> Limit:
        """Sequential reads by streams on several drives over so many times one's; a ratio."""
        return self._at_least("streams_over_linear")

    @property
    def refill_16_gb_s(self) -> Limit:
        """Seconds in which 32 readers fill a cache of 16 GB with 8 KiB random reads; at most."""
        return self._at_most("refill_16_gb_s")

    @property
    def read_mb_per_s(self) -> Limit:
        """Random reads of 1 MiB at device queue depth 8, in 10^6 bytes a second; at least."""
        return self._at_least("read_mb_per_s")

    @property
    def multitasking_gain(self) -> Limit:
        """What NCQ takes off the mean service time of two tasks at once, as a share; at least."""
        return self._at_least("multitasking_gain")

    @property
    def regression(self) -> Limit:
        """What a candidate may lose of a rate of the released firmware, a share; at most."""
        return self._at_most("regression")

    @property
    def ready_s(self) -> Limit:
        """Seconds from power-on until the drive has read from its medium; at most."""
        return self._at_most("ready_s")

    def _at_least(self, claim: str) -> Limit:
        spec = self._spec(claim)
        if spec.at_least is None:
            raise self._lacks(claim, "at_least")
        return Limit(spec.at_least, claim, spec.source)

    def _at_most(self, claim: str) -> Limit:
        spec = self._spec(claim)
        if spec.at_most is None:
            raise self._lacks(claim, "at_most")
        return Limit(spec.at_most, claim, spec.source)

    def _lacks(self, claim: str, side: str) -> Misuse:
        at = f"{self.where(claim)}: " if self.where is not None else ""
        return Misuse(f"{at}{self.model}: the limit of {claim} needs {side} in the matrix")

    def _spec(self, claim: str) -> LimitSpec:
        try:
            return self.limits[claim]
        except KeyError:
            raise Misuse(
                f"{self.model}: neither the model nor its class has a limit for {claim} in the "
                f'firmware matrix; mark the test @pytest.mark.claim("{claim}"), '
                "and it will not be collected for this drive"
            ) from None
