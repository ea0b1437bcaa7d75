"""A drive's counters out of smartctl's JSON, and what their change says."""

import json
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from leadline.drive.smart import Delta, SmartSnapshot, compare, counts_errors, parse, snapshot
from leadline.errors import RigTrouble
from leadline.host.connection import open_host
from leadline.inventory.rig import HostSpec

REAL = Path(__file__).parents[2] / "shared" / "realdata" / "smartctl_json"


def attribute(number: int, name: str, value: int, text: str | None = None) -> dict[str, object]:
    raw = {"value": value, "string": str(value) if text is None else text}
    return {"id": number, "name": name, "raw": raw}


ATA = {
    "smartctl": {"exit_status": 4},
    "temperature": {"current": 31},
    "power_cycle_count": 99,
    "ata_smart_attributes": {
        "table": [
            attribute(4, "Start_Stop_Count", 41),
            attribute(5, "Reallocated_Sector_Ct", 1),
            attribute(12, "Power_Cycle_Count", 40),
            attribute(187, "Reported_Uncorrect", 2),
            attribute(192, "Power-Off_Retract_Count", 7),
            attribute(193, "Load_Cycle_Count", 52),
            attribute(197, "Current_Pending_Sector", 281_474_976_710_659, "3 (0 1 0)"),
            attribute(199, "UDMA_CRC_Error_Count", 4),
        ]
    },
    "sata_phy_event_counters": {
        "table": [
            {"id": 1, "name": "Command failed due to ICRC error", "value": 5},
            {"id": 9, "name": "Transition from drive PhyRdy to drive PhyNRdy", "value": 8},
        ]
    },
}

STATISTICS = {
    "ata_device_statistics": {
        "pages": [
            {"number": 1, "table": [{"offset": 8, "name": "Power-On Resets", "value": 13}]},
            {
                "number": 3,
                "table": [
                    {"offset": 24, "name": "Head Load Events", "value": 15},
                    {"offset": 32, "name": "Reallocated Logical Sectors", "value": 2},
                    {"offset": 56, "name": "Realloc. Candidate Logical Sectors", "value": 6},
                    {"offset": 64, "name": "High Priority Unload Events", "value": 4},
                ],
            },
            {"number": 4, "table": [{"offset": 8, "name": "Uncorrectable", "value": 1}]},
            {
                "number": 6,
                "table": [
                    {"offset": 24, "name": "Interface CRC Errors", "value": 9},
                    {"offset": 8, "name": "Resets", "value": 3, "flags": {"valid": False}},
                ],
            },
        ]
    }
}

SCSI = {
    "scsi_grown_defect_list": 3,
    "scsi_pending_defects": {"count": 1},
    "scsi_start_stop_cycle_counter": {
        "accumulated_start_stop_cycles": 17,
        "accumulated_load_unload_cycles": 260,
    },
    "scsi_error_counter_log": {
        "read": {"total_uncorrected_errors": 1},
        "write": {"total_uncorrected_errors": 2},
    },
    "scsi_sas_port_0": {"phy_1": {"invalid_dword_count": 5, "negotiated_logical_link_rate": 12}},
}


def test_ata_attributes_and_phy_events() -> None:
    found = parse(ATA)
    assert (found.reallocated, found.pending, found.crc_errors) == (1, 3, 4)
    assert (found.uncorrectable, found.power_cycles, found.unsafe_shutdowns) == (2, 40, 7)
    assert (found.start_stops, found.load_cycles) == (41, 52)
    assert found.temperature_c == 31
    assert dict(found.phy_events)["Command failed due to ICRC error"] == 5


def test_device_statistics_serve_where_an_attribute_is_missing() -> None:
    found = parse(STATISTICS)
    assert (found.power_cycles, found.reallocated, found.pending) == (13, 2, 6)
    assert (found.load_cycles, found.unsafe_shutdowns) == (15, 4)
    assert (found.uncorrectable, found.crc_errors) == (1, 9)
    assert dict(found.statistics)["6/24 Interface CRC Errors"] == 9
    assert not any(name.startswith("6/8") for name, _ in found.statistics), "not valid"


def test_an_attribute_goes_before_the_statistics() -> None:
    assert parse(ATA | STATISTICS).crc_errors == 4


def test_a_scsi_drive_has_counters_of_its_own() -> None:
    found = parse(SCSI)
    assert (found.reallocated, found.pending, found.power_cycles) == (3, 1, 17)
    assert (found.start_stops, found.load_cycles) == (17, 260)
    assert found.uncorrectable == 3
    assert found.crc_errors is None
    assert found.phy_events == (("port 0 phy 1 invalid_dword_count", 5),)


@pytest.mark.parametrize(
    ("name", "number"),
    [
        ("Unsafe_Shutdown_Count", 174),
        ("Unexpect_Power_Loss_Ct", 174),
        ("POR_Recovery_Count", 235),
        ("Power-Off_Retract_Count", 192),
    ],
)
def test_power_lost_without_warning_has_many_names(name: str, number: int) -> None:
    table = {"ata_smart_attributes": {"table": [attribute(number, name, 11)]}}
    assert parse(table).unsafe_shutdowns == 11


def test_a_change_is_named_with_whom_it_indicts() -> None:
    before = SmartSnapshot(
        crc_errors=1,
        reallocated=0,
        pending=0,
        power_cycles=5,
        load_cycles=8,
        phy_events=(("R_ERR response for data FIS", 0), ("PhyRdy to PhyNRdy", 1), ("same", 1)),
    )
    after = SmartSnapshot(
        crc_errors=3,
        reallocated=2,
        pending=None,
        power_cycles=6,
        load_cycles=9,
        phy_events=(("R_ERR response for data FIS", 2), ("PhyRdy to PhyNRdy", 2), ("same", 1)),
    )
    assert compare(before, after) == (
        Delta("crc_errors", 1, 3, "link"),
        Delta("reallocated", 0, 2, "drive"),
        Delta("power_cycles", 5, 6, None),
        Delta("load_cycles", 8, 9, None),
        Delta("R_ERR response for data FIS", 0, 2, "link"),
        Delta("PhyRdy to PhyNRdy", 1, 2, None),
    )
    assert compare(after, after) == ()


@pytest.mark.parametrize("name", ["Vendor specific", "Unknown"])
def test_a_phy_counter_that_nobody_has_a_name_for_indicts_nobody(name: str) -> None:
    """Some drives have a clock there."""
    before, after = (SmartSnapshot(phy_events=((name, count),)) for count in (17207, 17260))
    assert compare(before, after) == (Delta(name, 17207, 17260, None),)


@pytest.mark.parametrize(
    ("told", "counts"),
    [
        (SmartSnapshot(power_cycles=3), False),
        (SmartSnapshot(phy_events=(("Vendor specific", 3), ("PhyRdy to PhyNRdy", 1))), False),
        (SmartSnapshot(phy_events=(("R_ERR response for data FIS", 0),)), True),
        (SmartSnapshot(pending=0), True),
    ],
)
def test_whether_a_drive_counts_errors_at_all(told: SmartSnapshot, counts: bool) -> None:
    assert counts_errors(told) == counts


def test_a_counter_that_falls_indicts_nobody() -> None:
    (delta,) = compare(SmartSnapshot(pending=8), SmartSnapshot(pending=0))
    assert (delta.change, delta.indicts) == (-8, None)


_JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False) | st.text(max_size=8),
    lambda inner: (
        st.lists(inner, max_size=4)
        | st.dictionaries(
            st.sampled_from(
                [*ATA, *STATISTICS, *SCSI, "table", "raw", "value", "id", "string", "pages", "name"]
            ),
            inner,
            max_size=5,
        )
    ),
    max_leaves=20,
)


@given(_JSON)
def test_json_of_any_shape_is_read(document: object) -> None:
    found = parse(document)
    assert compare(found, found) == ()


@pytest.mark.skipif(not REAL.is_dir(), reason="no output of real drives here")
def test_real_drives() -> None:
    counted = 0
    for path in sorted(REAL.iterdir()):
        document = json.loads(path.read_text(encoding="utf-8"))
        found = parse(document)
        if "ata_smart_attributes" not in document:
            continue
        counted += 1
        assert found.crc_errors is not None, path.name
        assert found.reallocated is not None, path.name
        assert 0 < (found.power_cycles or 0) < 10_000, path.name
        assert 15 <= (found.temperature_c or 0) <= 60, path.name
        assert 0 <= (found.pending or 0) < 1000, path.name
        assert 0 <= (found.unsafe_shutdowns or 0) < 100_000, path.name
    assert counted > 25
    full = parse(json.loads((REAL / "scrutiny__smart-ata-full.json").read_text()))
    assert len(full.phy_events) == 16
    assert dict(full.statistics)["6/24 Number of Interface CRC Errors"] == 0


@pytest.fixture
def smartctl(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A program of that name, found first; the tests write what it prints and how it ends."""
    program = tmp_path / "smartctl"
    monkeypatch.setenv("PATH", f"{tmp_path}:/usr/bin:/bin")
    return program


def _plays(program: Path, output: str, exit_code: int) -> None:
    said = program.with_suffix(".out")
    said.write_text(output)
    program.write_text(f"#!/bin/sh\ncat {said}\nexit {exit_code}\n")
    program.chmod(0o755)


@pytest.mark.parametrize("exit_code", [0, 4, 4 | 64, 8 | 16 | 32 | 128])
def test_smartctls_exit_code_may_tell_of_health_alone(smartctl: Path, exit_code: int) -> None:
    _plays(smartctl, json.dumps(ATA), exit_code)
    with open_host(HostSpec(reach="local")) as host:
        assert snapshot(host, "/dev/sda") == parse(ATA)


def test_a_drive_that_smartctl_cannot_open_is_the_rigs_trouble(smartctl: Path) -> None:
    said = {"smartctl": {"messages": [{"string": "Smartctl open device: \x1b[1mno such device"}]}}
    _plays(smartctl, json.dumps(said), 2)
    with (
        open_host(HostSpec(reach="local")) as host,
        pytest.raises(RigTrouble, match=r"/dev/sda: .*open device: \[1mno such device; run"),
    ):
        snapshot(host, "/dev/sda")


def test_an_old_smartctl_prints_no_json(smartctl: Path) -> None:
    _plays(smartctl, "smartctl 6.6: UNRECOGNIZED OPTION\n", 1)
    with (
        open_host(HostSpec(reach="local")) as host,
        pytest.raises(RigTrouble, match=r"no JSON; .*7\.0"),
    ):
        snapshot(host, "/dev/sda")
