"""What surrounds a batch of slices: read before it and after it, and held side by side.

The kernel's own counters say what a load generator cannot know: whether requests were
merged, whether somebody else talked to the drive or used its path, whether a setting moved.

    /sys/block/<disk>/stat      Documentation/block/stat.rst: requests, merges, sectors of 512
                                bytes; a request counts when it completes, passed-through
                                commands (SG_IO, drivetemp) never do
    .../device/iodone_cnt       every SCSI command that completed, those included
    /proc/stat                  proc(5): the processors' time, and what a hypervisor took of it

`iorequest_cnt` is not used: older kernels count a command there once more each time that the
host adapter turns it away for the moment, as libata does with one that is not queued.
"""

import re
from collections.abc import Callable, Iterable, Mapping
from contextlib import suppress
from dataclasses import dataclass, field, fields
from pathlib import Path
from typing import TYPE_CHECKING, TypeVar

from leadline.drive.settings import NR_REQUESTS, PINNED, setting_text
from leadline.host.trouble import FileTrouble

if TYPE_CHECKING:
    from leadline.drive.bind import Drive
    from leadline.host.connection import Host

Value = TypeVar("Value")

STEAL = 7
"""Its place behind "cpu" in `/proc/stat`, after user, nice, system, idle, iowait, irq, softirq."""
PROCESSORS = "/proc/stat"

NOTED = ("queue/write_cache",)
"""Settings that are not pinned and must not move either; beside them the cache's type by the
drive's own mode page, and the governors of the processors."""


@dataclass(frozen=True, slots=True)
class IoCounts:
    """A disk's counters since boot, in the order of `/sys/block/<disk>/stat`.

    Sectors are of 512 bytes.  Kernels before 4.18 have no discards, before 5.5 no flushes: 0.
    """

    reads: int = 0
    reads_merged: int = 0
    sectors_read: int = 0
    read_ms: int = 0
    writes: int = 0
    writes_merged: int = 0
    sectors_written: int = 0
    write_ms: int = 0
    in_flight: int = 0
    busy_ms: int = 0
    queue_ms: int = 0
    discards: int = 0
    discards_merged: int = 0
    sectors_discarded: int = 0
    discard_ms: int = 0
    flushes: int = 0

    @property
    def requests(self) -> int:
        """Whatever the block layer sent to the drive."""
        return self.reads + self.writes + self.discards + self.flushes

    @property
    def merges(self) -> int:
        """Requests that were put into another one."""
        return self.reads_merged + self.writes_merged

    @property
    def sectors(self) -> int:
        """Sectors read and written."""
        return self.sectors_read + self.sectors_written

    def since(self, before: "IoCounts") -> "IoCounts":
        """What was added."""
        return IoCounts(
            *(getattr(self, each.name) - getattr(before, each.name) for each in fields(self))
        )


@dataclass(frozen=True, slots=True)
class ProcessorTime:
    """What the kernel has counted since boot, in its ticks (USER_HZ).

    `elapsed` is the time of one processor, `stolen` what a hypervisor kept from all of them while
    they had work to do.
    """

    elapsed: float
    stolen: float


@dataclass(frozen=True)
class Conditions:
    """One look at a drive's surroundings; None, or not in a mapping, is what cannot be known.

    `io` and `neighbours` (by the disk's name) are counters of the block layer, `commands` and
    `errors` those of the SCSI layer.  `settings` are texts by attribute; temperatures are in
    degrees Celsius, `link_bytes_per_s` is what the link carries, coding taken off.
    """

    io: IoCounts | None = None
    commands: int | None = None
    errors: int | None = None
    settings: Mapping[str, str] = field(default_factory=dict)
    temperature_c: float | None = None
    temperature_max_c: float | None = None
    neighbours: Mapping[str, IoCounts] = field(default_factory=dict)
    link_bytes_per_s: float | None = None
    processors: ProcessorTime | None = None


@dataclass(frozen=True)
class Surroundings:
    """Where the conditions of one binding of a drive are read; `settings` by attribute.

    `emulated`: the rig and its drives run on this machine's processors, which count.
    """

    block: str
    settings: Mapping[str, str]
    temperature: str | None
    neighbours: tuple[str, ...]
    link_speed: str | None
    emulated: bool = False


def locate(host: "Host", drive: "Drive", *, emulated: bool = False) -> Surroundings:
    """Find out where to look; once for each binding, for it takes some round trips."""
    block, link = f"/sys/block/{drive.name}", drive.link
    adapter = f"/sys/class/scsi_host/{drive.controller.scsi_host}"
    settings = {name: f"{block}/{name}" for name in (*PINNED, NR_REQUESTS, *NOTED)}
    settings["link_power_management_policy"] = f"{adapter}/link_power_management_policy"
    settings["cache_type"] = f"{block}/device/scsi_disk/{drive.hctl}/cache_type"
    processors = "/sys/devices/system/cpu"
    for name in _names(host, processors):
        if re.fullmatch(r"cpu\d+", name):
            settings[f"{name} governor"] = f"{processors}/{name}/cpufreq/scaling_governor"
    sensors = _names(host, f"{block}/device/hwmon")
    return Surroundings(
        block=block,
        settings=settings,
        temperature=f"{block}/device/hwmon/{sensors[0]}/temp1" if sensors else None,
        neighbours=_neighbours(host, drive),
        link_speed=f"/sys/class/ata_link/{link.name}/sata_spd" if link and link.name else None,
        emulated=emulated,
    )


def _names(host: "Host", directory: str) -> list[str]:
    try:
        return host.list_dir(directory)
    except FileTrouble:
        return []


def _neighbours(host: "Host", drive: "Drive") -> tuple[str, ...]:
    """The other disks whose commands go through the same host bus adapter."""
    shared = drive.controller.pci_address or drive.controller.scsi_host
    found = []
    for name in _names(host, "/sys/block"):
        if name != drive.name and f"/{shared}/" in host.read_link(f"/sys/block/{name}"):
            found.append(name)
    return tuple(found)


def look(host: "Host", around: Surroundings, *, before: bool) -> Conditions:
    """Read the conditions, in one round trip; `before` a batch, or after it.

    Files are read in order.  Reading the temperature makes drivetemp send the drive a
    command, so it is read outside of what the counters enclose: first before, last after.
    """
    wanted = _paths(around)
    names = list(wanted) if before else list(reversed(wanted))
    read = host.read_files([wanted[name] for name in names])
    texts = {name: _text(read.get(wanted[name])) for name in names}
    known = {name: text for name, text in texts.items() if text is not None}
    counts = {name: parse_stat(known.get(f"stat {name}", "")) for name in around.neighbours}
    of_rig = parse_processors((read.get(PROCESSORS) or b"").decode("ascii", "replace"))
    return Conditions(
        # Without accounting the counters stand still, whatever the drive does.
        io=parse_stat(known.get("stat", "")) if known.get("iostats") != "0" else None,
        commands=parse_counter(known.get("commands")),
        errors=parse_counter(known.get("errors")),
        settings={name: known[name] for name in around.settings if name in known},
        temperature_c=_degrees(known.get("temperature")),
        temperature_max_c=_degrees(known.get("temperature maximum")),
        neighbours={name: count for name, count in counts.items() if count is not None},
        link_bytes_per_s=parse_link_speed(known.get("link speed", "")),
        processors=processors_here() if around.emulated else of_rig,
    )


def together(looks: Mapping[str, Conditions]) -> Conditions:
    """The conditions of drives that one load is on, as one, by the drives' names.

    Counters and links are added up; what is not known of one is not known of all.  They are
    no neighbours of one another.
    """
    each = looks.values()
    return Conditions(
        io=_of_all(_added_up, (look.io for look in each)),
        commands=_of_all(sum, (look.commands for look in each)),
        errors=_of_all(sum, (look.errors for look in each)),
        settings={
            f"{drive} {name}": text
            for drive, look in looks.items()
            for name, text in look.settings.items()
        },
        temperature_c=_of_all(max, (look.temperature_c for look in each)),
        temperature_max_c=_of_all(min, (look.temperature_max_c for look in each)),
        neighbours={
            name: counts
            for look in each
            for name, counts in look.neighbours.items()
            if name not in looks
        },
        link_bytes_per_s=_of_all(sum, (look.link_bytes_per_s for look in each)),
        processors=_of_all(lambda known: known[0], (look.processors for look in each)),
    )


def _of_all(of: Callable[[list[Value]], Value], values: Iterable[Value | None]) -> Value | None:
    listed = list(values)
    known = [value for value in listed if value is not None]
    return of(known) if len(known) == len(listed) else None


def _added_up(counts: Iterable[IoCounts]) -> IoCounts:
    listed = list(counts)
    return IoCounts(*(sum(getattr(one, each.name) for one in listed) for each in fields(IoCounts)))


def _paths(around: Surroundings) -> dict[str, str]:
    paths = {} if around.emulated else {"processors": PROCESSORS}
    if around.temperature:
        paths["temperature"] = f"{around.temperature}_input"
        paths["temperature maximum"] = f"{around.temperature}_max"
    paths |= {
        "iostats": f"{around.block}/queue/iostats",
        "errors": f"{around.block}/device/ioerr_cnt",
        **around.settings,
    }
    if around.link_speed:
        paths["link speed"] = around.link_speed
    paths |= {f"stat {name}": f"/sys/block/{name}/stat" for name in around.neighbours}
    paths["commands"] = f"{around.block}/device/iodone_cnt"
    paths["stat"] = f"{around.block}/stat"
    return paths


def parse_stat(text: str) -> IoCounts | None:
    """The counters in a disk's `stat`; None where it is none."""
    numbers = [int(word) for word in text.split() if word.isdigit()]
    most = len(fields(IoCounts))
    return IoCounts(*numbers[:most]) if len(numbers) >= 11 else None


def processors_here() -> ProcessorTime | None:
    """Of this machine; None where its kernel does not tell."""
    with suppress(OSError):
        return parse_processors(Path(PROCESSORS).read_text("ascii", "replace"))
    return None


def parse_processors(text: str) -> ProcessorTime | None:
    """The processors' time in `/proc/stat`; None where it is none, or older than steal time."""
    lines = [line.split() for line in text.splitlines() if line.startswith("cpu")]
    count = sum(line[0] != "cpu" for line in lines)
    total = next((line[1:] for line in lines if line[0] == "cpu"), [])
    if not count or len(total) < STEAL + 1 or not all(word.isdigit() for word in total):
        return None
    # What a guest's processors had is in `user` already, and so no further column is added.
    ticks = [int(word) for word in total[: STEAL + 1]]
    return ProcessorTime(elapsed=sum(ticks) / count, stolen=ticks[STEAL])


def parse_link_speed(text: str) -> float | None:
    """Bytes a second that a link of "6.0 Gbps" carries: 10 bits each, by its 8b/10b coding."""
    match = re.fullmatch(r"(\d+(?:\.\d+)?) Gbps", text.strip())
    return float(match[1]) * 1e9 / 10 if match else None


def _text(data: bytes | None) -> str | None:
    return None if data is None else setting_text(data)


def parse_counter(text: str | None) -> int | None:
    """A counter of the SCSI layer, which prints hexadecimal: "0x1f4"; None where it is none."""
    found = re.fullmatch(r"0x([0-9a-f]{1,16})", text or "")
    return int(found[1], 16) if found else None


def _degrees(text: str | None) -> float | None:
    """hwmon's thousandths of a degree."""
    found = re.fullmatch(r"-?\d{1,9}", text or "")
    return int(found[0]) / 1000 if found else None
