"""powermand, a stranger, drives the virtual rig's PDU, and the guest feels it."""

import time
from collections.abc import Callable
from pathlib import Path

import pytest

from leadline.drive.bind import scan
from leadline.host.connection import Host, HostLost, open_host
from leadline.inventory.rig import Rig
from selftests.powermand import Powermand, needs_powermand

pytestmark = [needs_powermand, pytest.mark.long]
FELT_S = 60.0


def wait_until(felt: Callable[[], bool]) -> None:
    deadline = time.monotonic() + FELT_S
    while not felt():
        assert time.monotonic() < deadline, f"not felt within {FELT_S:.0f} s"
        time.sleep(0.2)


def has_scsi_drive(host: Host) -> bool:
    return any(disk.serial == "VSCSI0001" for disk in scan(host))


def test_on_off_cycle_and_query_reach_the_drives(shared_rig: Rig, tmp_path: Path) -> None:
    port = Path(shared_rig.pdus[0].port)
    with Powermand(port, tmp_path) as client, open_host(shared_rig.host) as host:
        assert client.shows("on") == "outlet[1-8]"
        client.powerman("-0", "outlet2")
        assert client.shows("off") == "outlet2"
        wait_until(lambda: not has_scsi_drive(host))
        client.powerman("-1", "outlet2")
        wait_until(lambda: has_scsi_drive(host))
        before = host.boot_id()
        client.powerman("-c", "outlet1")
        with pytest.raises(HostLost):
            host.run(["sleep", "60"], deadline=FELT_S)
        host.reconnect(shared_rig.host.boot_deadline_s)
        assert host.boot_id() != before
        assert client.shows("on") == "outlet[1-8]"
