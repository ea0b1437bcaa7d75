"""The hunt: where the time went in a claim of a ratio that failed, layer by layer.

Slices that count are not traced.  Each side of the claim is run once more, for one slice, with
the tracepoints of `drive.layers` on; what tracing cost is told by the rate of that slice.
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from functools import partial
from typing import TYPE_CHECKING

from leadline.drive.layers import ATA_EVENTS, BLOCK_EVENTS, Layers, milliseconds, read_layers
from leadline.drive.tracing import ata_place, instance, watch
from leadline.errors import DriveFault, RigTrouble
from leadline.results.schema import Phase

if TYPE_CHECKING:
    from leadline.drive.bind import Drive
    from leadline.host.connection import Host
    from leadline.load.slices import Slice, SliceSetting
    from leadline.quantities import Quantity
    from leadline.statements import Ratio
    from leadline.verdict.verdict import Verdict
    from leadline.visiting import OpenVisit

BUFFER_KB = 512
"""For each processor; the oldest events go first.  It holds the last thousands of requests."""
MATTERS = 0.1
"""A layer is to blame for no less of what a request takes: a tenth of a millisecond more is
nothing beside twenty."""
NOTABLY = 1.1


def hunt(visit: "OpenVisit", said: "Ratio", failed: "Verdict", slice_s: float) -> tuple[str, ...]:
    """Where the time went in a claim that `failed`, in words, by slices of so many seconds.

    What keeps it from being seen is said instead: the verdict is there already.
    """
    station, cell = visit.station, visit.visit.cell.id
    station.live.show(f"  {cell}: {said}: hunting where the time went")
    sides = [replace(side.setting, seconds=slice_s) for side in said.quantities]
    try:
        with visit.depth_put_back():
            run = partial(visit.batch, said.load.workload)
            traced = trace_slices(station.host, visit.drive, sides, run)
    except (DriveFault, RigTrouble) as trouble:
        return (f"where the time went could not be seen: {trouble}",)
    seconds = sum(side.drive_s for side in traced)
    station.record.add(Phase(cell=cell, name="drive", seconds=seconds))
    return where_the_time_went(said, [rate.rate for rate in failed.rates], traced)


@dataclass(frozen=True)
class Traced:
    """One slice under trace: its rate, requests a second, its cost in drive-seconds, and where
    its requests spent their time."""

    rate: float
    drive_s: float
    layers: Layers


def trace_slices(
    host: "Host",
    drive: "Drive",
    settings: Sequence["SliceSetting"],
    run: Callable[[Sequence["SliceSetting"]], Sequence["Slice"]],
) -> list[Traced]:
    """Have each setting run by itself, under trace; the tracing is gone when this returns.

    Raises TracingMissing where the kernel cannot show it, and what `run` raises.
    """
    block = f"/sys/block/{drive.name}"
    major, minor = (int(number) for number in host.read_file(f"{block}/dev").split(b":"))
    logical_bytes = int(host.read_file(f"{block}/queue/logical_block_size"))
    place = ata_place(drive) if drive.link else None
    traced = []
    with instance(host, drive) as path:
        _prepare(host, path, major << 20 | minor, place)
        for setting in settings:
            host.write_value(f"{path}/trace", "\n")  # whatever is written empties it
            host.write_value(f"{path}/tracing_on", "1")
            (measured,) = run([setting])
            host.write_value(f"{path}/tracing_on", "0")
            text = host.read_file(f"{path}/trace").decode("ascii", "replace")
            layers = read_layers(text, (major, minor), place, logical_bytes=logical_bytes)
            traced.append(Traced(measured.rate, measured.drive_s, layers))
    return traced


def _prepare(host: "Host", path: str, device: int, place: tuple[int, int] | None) -> None:
    """Record nothing yet, by a clock that all processors share, and of this drive alone."""
    for name, value in (
        ("tracing_on", "0"),
        ("buffer_size_kb", BUFFER_KB),
        ("trace_clock", "mono"),
    ):
        host.write_value(f"{path}/{name}", str(value))
    for event in BLOCK_EVENTS:
        watch(host, path, f"block:{event}", f"dev == {device}")
    if place is not None:
        for event in ATA_EVENTS:
            watch(host, path, f"libata:{event}", f"ata_port == {place[0]} && ata_dev == {place[1]}")


def where_the_time_went(
    said: "Ratio", rates: Sequence[float], traced: Sequence[Traced]
) -> tuple[str, ...]:
    """The hunt in words: the layer that takes longer, all layers of both sides, what it cost.

    `rates` are those of the verdict, requests a second, and `traced` those slices, both in the
    order in which the claim names its sides.
    """
    sides = list(zip(said.quantities, traced, strict=True))
    slow, fast = sides if said.direction == ">=" else sides[::-1]
    lines = [f"where the time went: {_culprit(*slow, *fast)}"]
    lines += [f"{quantity}: {side.layers}" for quantity, side in sides]
    shares = [f"{side.rate / rate:.0%}" for side, rate in zip(traced, rates, strict=True)]
    lines.append(f"this is of one more slice of each, under trace: at {' and '.join(shares)} of ")
    lines[-1] += "the rates above"
    if any(len(side.layers.layers) == 2 for side in traced):
        lines.append("libata does not drive this disk: driver and device cannot be told apart")
    return tuple(lines)


def _culprit(slow_said: "Quantity", slow: Traced, fast_said: "Quantity", fast: Traced) -> str:
    """The layer in which the slow side's requests spend so much longer than the fast side's."""
    pairs = list(zip(slow.layers.layers, fast.layers.layers, strict=False))
    if not pairs:
        return "it cannot be told, for no request was matched"
    worst, usual = max(pairs, key=lambda pair: pair[0].mean_s - pair[1].mean_s)
    whole_s = sum(layer.mean_s for layer in slow.layers.layers)
    added_s = worst.mean_s - usual.mean_s
    if worst.mean_s <= NOTABLY * usual.mean_s or added_s < MATTERS * whole_s:
        return "no layer takes notably longer on one side than on the other"
    queued = slow_said.device_depth > 1 == fast_said.device_depth
    where = "when queued" if queued else f"in {slow_said}"
    text = (
        f"the {worst.name} takes {_times(worst.mean_s, usual.mean_s)} longer per command {where}: "
        f"{milliseconds(worst.mean_s)} against {milliseconds(usual.mean_s)}"
    )
    if "device" not in worst.name:
        return text
    held, alone = slow.layers.held, fast.layers.held
    return (
        f"{text}; it holds {held:.3g} at once against {alone:.3g}, so that each costs it "
        f"{milliseconds(worst.mean_s / held)} against {milliseconds(usual.mean_s / alone)}"
    )


def _times(long_s: float, short_s: float) -> str:
    if not short_s:
        return "infinitely"
    ratio = long_s / short_s
    return f"{ratio:.0f} times" if ratio >= 9.95 else f"{ratio:.1f} times"
