"""The kinds of value in a virtual drive's profile, and what is said when one is wrong."""

from __future__ import annotations

from typing import Annotated

from pydantic import Field

from leadline.inventory.fields import Text

FACTOR = "how many times as long the service takes, as in 2"
ONE_IN = "one request in how many, on average"
MODEL = "an ATA model number of at most 40 characters"
SERIAL = "a serial number of at most 20 characters"
FIRMWARE = "a firmware revision of at most 8 characters (SCSI: 4)"
CAPACITY = "bytes, 1 MiB to 16 TiB, a multiple of 4096"
READ_MS = "milliseconds that a read occupies a channel"
WRITE_MS = "milliseconds that a write occupies a channel"
READY_S = "seconds after power-on until the first request is served"

Factor = Annotated[float, Field(gt=0, le=10_000, allow_inf_nan=False)]
Seconds = Annotated[float, Field(ge=0, le=86_400, allow_inf_nan=False)]
SomeSeconds = Annotated[float, Field(gt=0, le=86_400, allow_inf_nan=False)]
Milliseconds = Annotated[float, Field(ge=0, le=600_000, allow_inf_nan=False)]
MegabytesPerSecond = Annotated[float, Field(gt=0, le=1_000_000, allow_inf_nan=False)]
"""Of 1,000,000 bytes."""
OneIn = Annotated[int, Field(ge=1)]
Model = Annotated[Text, Field(max_length=40)]  # ATA8-ACS words 27-46
Serial = Annotated[Text, Field(max_length=20)]  # ATA8-ACS words 10-19
Firmware = Annotated[Text, Field(max_length=8)]  # ATA8-ACS words 23-26
Capacity = Annotated[int, Field(ge=1 << 20, le=1 << 44, multiple_of=4096)]
