"""What is said of a virtual drive that is healthy and not steady."""

from __future__ import annotations

from pydantic import Field

from leadline.inventory.fields import Entry
from leadline.virtual.quantities import FACTOR, Factor, SomeSeconds


class WarmUp(Entry):
    """Everything becomes slower while the drive warms up, and stays so."""

    seconds: SomeSeconds = Field(description="seconds from power-on until it is warm, above 0")
    factor: Factor = Field(description="how many times as long the service takes then, as in 1.1")


class GarbageCollection(Entry):
    """After so much has been written, room is made for more, and requests are slow meanwhile."""

    every_mib: float = Field(
        gt=0,
        le=1 << 24,
        allow_inf_nan=False,
        description="MiB written from one collection to the next, on average",
    )
    seconds: SomeSeconds = Field(description="seconds that one takes, above 0")
    write_factor: Factor = Field(description=FACTOR)
    read_factor: Factor = Field(default=1.0, description=FACTOR)
