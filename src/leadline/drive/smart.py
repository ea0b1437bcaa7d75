"""A drive's own counters, before and after: SMART attributes, statistics, link events.

`snapshot` asks smartctl, `parse` reads its JSON, `compare` says what changed in between.  Every
value is None where the drive, its protocol or smartctl does not give it.
"""

import json
import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Literal

from leadline.drive.identify_changes import Log
from leadline.drive.text import plain
from leadline.errors import RigTrouble

if TYPE_CHECKING:
    from leadline.host.connection import Host

DEADLINE_S = 60.0

# smartctl(8), EXIT STATUS: a mask of bits.  Only the first two mean that there is no answer; bit 2
# says that one of the logs failed (many drives lack some), the others speak of the drive's health.
_BAD_COMMAND_LINE, _NOT_OPENED = 0x01, 0x02

# Vendors count power lost without warning in different attributes; the first that is there counts.
_POWER_LOSS = (
    "Unsafe_Shutdown_Count",
    "Unexpect_Power_Loss_Ct",
    "POR_Recovery_Count",
    "Power-Off_Retract_Count",
)
_LEADING_NUMBER = re.compile(r"\d+(?!\d*[hm+:.])")


@dataclass(frozen=True, slots=True)
class SmartSnapshot:
    """Counters at one moment."""

    crc_errors: int | None = None  # attribute 199; Device Statistics page 06h, offset 24
    reallocated: int | None = None  # attribute 5; page 03h, offset 32; SCSI grown defects
    pending: int | None = None  # attribute 197; page 03h, offset 56; SCSI pending defects
    uncorrectable: int | None = None  # attribute 187; page 04h, offset 8; SCSI, all operations
    power_cycles: int | None = None  # attribute 12; page 01h, offset 8; SCSI start-stop cycles
    start_stops: int | None = None  # attribute 4; SCSI start-stop cycles
    load_cycles: int | None = None  # attribute 193; page 03h, offset 24; SCSI load-unload cycles
    unsafe_shutdowns: int | None = None  # an attribute that differs by vendor; page 03h, offset 64
    temperature_c: int | None = None
    phy_events: tuple[tuple[str, int], ...] = ()  # Phy Event Counters, log 11h; SAS phy log
    statistics: tuple[tuple[str, int], ...] = ()  # Device Statistics, log 04h: "page/offset name"


@dataclass(frozen=True, slots=True)
class Delta:
    """One counter that changed; `indicts` is who is to blame where that is certain."""

    name: str
    before: int
    after: int
    indicts: Literal["drive", "link"] | None

    @property
    def change(self) -> int:
        """After less before; below 0 where a counter was reset."""
        return self.after - self.before


# What a rise means.  Cycles, unsafe shutdowns and temperature are for the reader to judge:
# a test that cuts power raises them on purpose.
_INDICTS: Mapping[str, Literal["drive", "link"]] = {
    "crc_errors": "link",
    "reallocated": "drive",
    "pending": "drive",
    "uncorrectable": "drive",
}
ERROR_COUNTERS = tuple(_INDICTS)
_COUNTERS = (*ERROR_COUNTERS, "power_cycles", "start_stops", "load_cycles", "unsafe_shutdowns")
# Phy events that a power cycle or a reset causes too: SATA 3.x table "Phy event counter
# identifiers", 009h PhyRdy to PhyNRdy, 00Ah register FIS after COMRESET; SAS: loss of sync, resets.
# Those that smartctl has no name for may count anything: some drives have a clock there.
_PHY_ROUTINE = re.compile(r"PhyNRdy|COMRESET|loss_of_dword|phy_reset|^Vendor specific$|^Unknown$")


def snapshot(host: "Host", node: str) -> SmartSnapshot:
    """The counters of the drive at `node` on `host`.

    Raises RigTrouble where smartctl is missing, cannot open the drive, or prints no JSON.
    """
    logs = [f"--log={log}" for log in ("devstat", "sataphy", "error", "sasphy")]
    return parse(_asked(host, node, ["--info", "--attributes", *logs]))


def log_directory(host: "Host", node: str) -> tuple[Log, ...]:
    """Which logs the ATA drive at `node` says that it has; empty where it does not say.

    Raises RigTrouble as `snapshot` does.
    """
    return tuple(parse_directory(_asked(host, node, ["--log=directory"])))


def parse_directory(document: object) -> Iterator[Log]:
    """The logs in smartctl's JSON, by address; ACS-4, log 00h of both kinds."""
    for entry in _list(_at(document, "ata_log_directory", "table")):
        address = _integer(_at(entry, "address"))
        if address is not None:
            general = _integer(_at(entry, "gp_sectors")) or 0
            yield Log(address, general, _integer(_at(entry, "smart_sectors")) or 0)


def _asked(host: "Host", node: str, words: list[str]) -> object:
    """The JSON that smartctl prints of a drive."""
    argv = ["smartctl", "--json", *words]
    done = host.run([*argv, node], deadline=DEADLINE_S, check=False)
    try:
        document = json.loads(done.stdout)
    except ValueError as error:
        raise RigTrouble(
            f"{host.name}: {node}: smartctl ended with exit code {done.exit_code} and printed no "
            "JSON; Leadline needs smartmontools 7.0 or later on the rig"
        ) from error
    if done.exit_code < 0 or done.exit_code & (_BAD_COMMAND_LINE | _NOT_OPENED):
        said = "; ".join(_messages(document)) or f"exit code {done.exit_code}"
        raise RigTrouble(
            f"{host.name}: {node}: smartctl cannot ask the drive: {said}; "
            f"run `smartctl --all {node}` on the rig to see why"
        )
    return document


def parse(document: object) -> SmartSnapshot:
    """The counters in smartctl's JSON (`smartctl --json`, any version from 7.0, any protocol)."""
    by_id, by_name = _attributes(document)
    statistics = dict(_statistics(document))
    by_place = {place: value for (place, _), value in statistics.items()}
    return SmartSnapshot(
        crc_errors=_first(by_id.get(199), by_place.get("6/24")),
        reallocated=_first(
            by_id.get(5), by_place.get("3/32"), _integer(_at(document, "scsi_grown_defect_list"))
        ),
        pending=_first(
            by_id.get(197),
            by_place.get("3/56"),
            _integer(_at(document, "scsi_pending_defects", "count")),
        ),
        uncorrectable=_first(by_id.get(187), by_place.get("4/8"), _scsi_uncorrected(document)),
        power_cycles=_first(
            by_id.get(12),
            by_place.get("1/8"),
            _integer(_at(document, "power_cycle_count")),
            _integer(_at(document, _SCSI_CYCLES, "accumulated_start_stop_cycles")),
        ),
        start_stops=_first(
            by_id.get(4), _integer(_at(document, _SCSI_CYCLES, "accumulated_start_stop_cycles"))
        ),
        load_cycles=_first(
            by_id.get(193),
            by_place.get("3/24"),
            _integer(_at(document, _SCSI_CYCLES, "accumulated_load_unload_cycles")),
        ),
        unsafe_shutdowns=_first(*(by_name.get(name) for name in _POWER_LOSS), by_place.get("3/64")),
        temperature_c=_integer(_at(document, "temperature", "current")),
        phy_events=tuple(_phy_events(document)),
        statistics=tuple((f"{place} {name}", n) for (place, name), n in statistics.items()),
    )


def counts_errors(snapshot: SmartSnapshot) -> bool:
    """Whether there is a counter whose rise would indict anybody."""
    named = any(getattr(snapshot, name) is not None for name in ERROR_COUNTERS)
    return named or any(_indicts(name) for name, _ in snapshot.phy_events)


def compare(before: SmartSnapshot, after: SmartSnapshot) -> tuple[Delta, ...]:
    """What changed, the counters with a name of their own first."""
    changes: list[tuple[str, int | None, int | None]] = [
        (name, getattr(before, name), getattr(after, name)) for name in _COUNTERS
    ]
    old, new = dict(before.phy_events), dict(after.phy_events)
    changes += [(name, old.get(name), new[name]) for name in new]
    return tuple(
        Delta(name, was, now, _indicts(name) if now > was else None)
        for name, was, now in changes
        if was is not None and now is not None and was != now
    )


def _indicts(name: str) -> Literal["drive", "link"] | None:
    if name in _COUNTERS:
        return _INDICTS.get(name)
    return None if _PHY_ROUTINE.search(name) else "link"


_SCSI_CYCLES = "scsi_start_stop_cycle_counter"


def _attributes(document: object) -> tuple[dict[int, int], dict[str, int]]:
    """SMART attributes' raw values by number and by name."""
    by_id: dict[int, int] = {}
    by_name: dict[str, int] = {}
    for entry in _list(_at(document, "ata_smart_attributes", "table")):
        value = _raw(entry)
        number, name = _integer(_at(entry, "id")), _at(entry, "name")
        if value is None:
            continue
        if number is not None:
            by_id[number] = value
        if isinstance(name, str):
            by_name[name] = value
    return by_id, by_name


def _raw(attribute: object) -> int | None:
    """A raw value is 48 bits that a vendor may share out; smartctl's text knows its own drives."""
    text = _at(attribute, "raw", "string")
    leading = _LEADING_NUMBER.match(text) if isinstance(text, str) else None
    # A longer number than 15 digits is no 48-bit counter.
    if leading and len(leading[0]) <= 15:
        return int(leading[0])
    return _integer(_at(attribute, "raw", "value"))


def _statistics(document: object) -> Iterator[tuple[tuple[str, str], int]]:
    """Valid Device Statistics: ((page and offset, name), value); ACS-4, log 04h."""
    for page in _list(_at(document, "ata_device_statistics", "pages")):
        for entry in _list(_at(page, "table")):
            number, offset = _integer(_at(page, "number")), _integer(_at(entry, "offset"))
            value, name = _integer(_at(entry, "value")), _at(entry, "name")
            if number is None or offset is None or value is None:
                continue
            if _at(entry, "flags", "valid") is not False:
                yield (f"{number}/{offset}", plain(str(name))), value


def _phy_events(document: object) -> Iterator[tuple[str, int]]:
    """SATA Phy Event Counters by name; SAS phy counters as "port 0 phy 1 invalid_dword_count"."""
    for entry in _list(_at(document, "sata_phy_event_counters", "table")):
        value, name = _integer(_at(entry, "value")), _at(entry, "name")
        if value is not None and isinstance(name, str):
            yield plain(name), value
    if not isinstance(document, Mapping):
        return
    for key, port in document.items():
        if str(key).startswith("scsi_sas_port_") and isinstance(port, Mapping):
            yield from _sas_events(f"port {plain(str(key))[14:]}", port)


def _sas_events(port: str, phys: Mapping[object, object]) -> Iterator[tuple[str, int]]:
    for phy, counters in phys.items():
        if not isinstance(counters, Mapping):
            continue
        for name, value in counters.items():
            count = _integer(value)
            if count is not None and re.search(r"_count$", str(name)):
                yield f"{port} {plain(str(phy)).replace('_', ' ')} {plain(str(name))}", count


def _scsi_uncorrected(document: object) -> int | None:
    """Uncorrected errors of reads, writes and verifies together (SPC-4 log pages 02h, 03h, 05h)."""
    log = "scsi_error_counter_log"
    counts = [
        _integer(_at(document, log, operation, "total_uncorrected_errors"))
        for operation in ("read", "write", "verify")
    ]
    known = [count for count in counts if count is not None]
    return sum(known) if known else None


def _messages(document: object) -> list[str]:
    found = (_at(entry, "string") for entry in _list(_at(document, "smartctl", "messages")))
    return [plain(text) for text in found if isinstance(text, str)]


def _at(document: object, *keys: str) -> object:
    """The value at the end of `keys`; None where the JSON has another shape."""
    for key in keys:
        if not isinstance(document, Mapping):
            return None
        document = document.get(key)
    return document


def _list(value: object) -> list[object]:
    return value if isinstance(value, list) else []


def _integer(value: object) -> int | None:
    return value if isinstance(value, int) and not isinstance(value, bool) else None


def _first(*values: int | None) -> int | None:
    return next((value for value in values if value is not None), None)
