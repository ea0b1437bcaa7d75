"""Where the time of requests went, layer by layer, from the kernel's tracepoints.

A request is got by the block layer (`block_getrq`), given to the driver when the drive's queue
has room (`block_rq_issue`, blktrace's D), sent to the drive (`ata_qc_issue`), answered by it
(`ata_qc_complete_done`), and completed (`block_rq_complete`, blktrace's C).  The block layer's
events name its sector, libata's the LBA and then the tag, so that the five are of one request.
Formats: include/trace/events/block.h and libata.h of the kernel.
"""

import math
import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from itertools import pairwise
from statistics import fmean, median

from leadline.drive.tracing import TraceEvent, events

SECTOR_BYTES = 512
BLOCK_EVENTS = ("block_getrq", "block_rq_insert", "block_rq_issue", "block_rq_complete")
ATA_EVENTS = ("ata_qc_issue", "ata_qc_complete_done")
ATA_STEPS = ("entered", "block_rq_issue", "ata_qc_issue", "ata_qc_complete_done", "completed")
STEPS = ("entered", "block_rq_issue", "completed")
ATA_LAYERS = ("block layer", "driver", "device", "completion")
LAYERS = ("block layer", "driver and device")

# 8,0 R 4096 () 123456 + 8 [fio]; getrq has neither bytes nor command, newer kernels print a
# priority before the brackets, and a completion has its error in them.
_BLOCK = re.compile(
    r"(\d{1,9}),(\d{1,9}) \w+ (?:\d+ )?(?:\([^)]*\) )?(\d{1,20}) \+ \d+ .*\[(.*)\]$"
)
_ATA = re.compile(r"ata_port=(\d{1,9}) ata_dev=(\d{1,9}) tag=(\d+) ")
_TASKFILE = re.compile(r"\btf=\(([0-9a-f]{2}(?:[:/][0-9a-f]{2}){11})\)")
_LBA_28 = frozenset((0x20, 0x30, 0xC4, 0xC5, 0xC8, 0xCA))
"""The commands to read and write whose LBA has 28 bits, four of them in the device register
(ATA8-ACS 7.1); all others that have an LBA have 48."""


@dataclass(frozen=True, slots=True)
class Layer:
    """What requests spent in one layer, seconds each."""

    name: str
    mean_s: float
    median_s: float

    def __str__(self) -> str:
        return f"{self.name} {milliseconds(self.mean_s)} (median {milliseconds(self.median_s)})"


@dataclass(frozen=True, slots=True)
class Layers:
    """The layers from the top down, over the `matched` requests of those `seen` to complete.

    `held` is how many of them the device had at once, on average over the time in which it had
    one.  Where libata does not drive the disk, driver, device and completion are one layer.
    """

    layers: tuple[Layer, ...]
    matched: int
    seen: int
    held: float

    def __str__(self) -> str:
        counted = f"{self.matched} of {self.seen} requests matched"
        if not self.layers:
            return counted
        said = ", ".join(str(layer) for layer in self.layers)
        return f"{said}; {self.held:.3g} on the device at once, {counted}"


def milliseconds(seconds: float) -> str:
    """A time as people compare it: three digits are enough."""
    return f"{1e3 * seconds:.3g} ms"


def read_layers(
    text: str,
    device: tuple[int, int],
    place: tuple[int, int] | None,
    *,
    logical_bytes: int = SECTOR_BYTES,
) -> Layers:
    """The layers of the requests in a trace, as the file `trace` prints it.

    `device` is (major, minor) of the drive's node, `place` its (port, device) for libata, None
    where libata does not drive it.  A request counts when each of its events is there and
    none tells of an error; two that are under way at one sector cannot be told apart, and neither
    counts.
    """
    matching = _Matching(device, place, logical_bytes // SECTOR_BYTES)
    for event in events(text):
        matching.take(event)
    steps, names = (STEPS, LAYERS) if place is None else (ATA_STEPS, ATA_LAYERS)
    rows = list(matching.times(steps))
    if not rows:
        return Layers((), 0, matching.seen, 0.0)
    spans = dict(zip(names, zip(*map(pairwise, rows), strict=True), strict=True))
    (at_device,) = (each for name, each in spans.items() if "device" in name)
    layers = tuple(_layer(name, each) for name, each in spans.items())
    return Layers(layers, len(rows), matching.seen, _held(at_device))


def _layer(name: str, spans: Sequence[tuple[float, float]]) -> Layer:
    seconds = [end - begin for begin, end in spans]
    return Layer(name, fmean(seconds), median(seconds))


def _held(spans: Sequence[tuple[float, float]]) -> float:
    """How many spans lie over one another, on average over the time in which there is one."""
    busy, last = 0.0, -math.inf
    for begin, end in sorted(spans):
        busy += max(0.0, end - max(begin, last))
        last = max(last, end)
    return math.fsum(end - begin for begin, end in spans) / busy if busy else 0.0


def _lba(fields: str) -> int | None:
    """The LBA in a command's registers: command/feature:count:lba 0:1:2/ the same again/device."""
    found = _TASKFILE.search(fields)
    if found is None:
        return None
    command, _, _, low, mid, high, _, _, *more, device = (
        int(each, 16) for each in re.split("[:/]", found[1])
    )
    top = (device & 0x0F, 0, 0) if command in _LBA_28 else more
    return int.from_bytes(bytes((low, mid, high, *top)), "little")


@dataclass(slots=True)
class _Request:
    """When a request came to each step; one that cannot be told from another is not `plain`."""

    at: dict[str, float]
    plain: bool = True


@dataclass(slots=True)
class _Matching:
    """The requests under way by sector, and by libata's tag the sector that it stands for."""

    device: tuple[int, int]
    place: tuple[int, int] | None
    sectors_a_block: int
    open: dict[int, _Request] = field(default_factory=dict)
    tags: dict[str, int] = field(default_factory=dict)
    done: list[_Request] = field(default_factory=list)
    seen: int = 0

    def take(self, event: TraceEvent) -> None:
        if event.name in BLOCK_EVENTS:
            found = _BLOCK.match(event.fields)
            if found and (int(found[1]), int(found[2])) == self.device:
                self._block(event, int(found[3]), error=found[4])
        elif event.name in ATA_EVENTS:
            found = _ATA.match(event.fields)
            if found and (int(found[1]), int(found[2])) == self.place:
                self._ata(event, tag=found[3])

    def _block(self, event: TraceEvent, sector: int, error: str) -> None:
        request = self.open.get(sector)
        if event.name == "block_rq_complete":
            self.seen += 1
            if request and error == "0":
                request.at["completed"] = event.time
                self.done.append(request)
            self.open.pop(sector, None)
        elif event.name == "block_rq_issue":
            if request:  # issued before, it was turned away: what it waited counts as waiting
                request.at = {"entered": request.at["entered"], event.name: event.time}
        elif request is None:
            self.open[sector] = _Request({"entered": event.time})
        elif event.name == "block_getrq":
            request.plain = False

    def _ata(self, event: TraceEvent, tag: str) -> None:
        if event.name == "ata_qc_issue" and (lba := _lba(event.fields)) is not None:
            self.tags[tag] = lba * self.sectors_a_block
            self._stamp(self.tags[tag], event)
        elif event.name == "ata_qc_complete_done" and tag in self.tags:
            self._stamp(self.tags.pop(tag), event)

    def _stamp(self, sector: int, event: TraceEvent) -> None:
        if request := self.open.get(sector):
            request.at[event.name] = event.time

    def times(self, steps: Sequence[str]) -> Iterator[tuple[float, ...]]:
        """Of each request that came to every step, when it did."""
        for request in self.done:
            if request.plain and request.at.keys() >= set(steps):
                yield tuple(request.at[step] for step in steps)
