"""Power cycles for real: a virtual rig's PDU, its guest, and the drives that it cuts."""

import json
import os
import shutil
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import ExitStack
from dataclasses import dataclass
from pathlib import Path
from typing import Literal

import pytest

from leadline.drive.bind import Drive, bind, scan
from leadline.drive.guard import Refused, admit, admit_host
from leadline.drive.kernel_watch import KernelWatch
from leadline.errors import DriveFault, RigTrouble
from leadline.host.connection import Host, open_host
from leadline.host.journal import Journal, dead_entries, replay
from leadline.inventory.rig import HostSpec, OutletSpec, Rig, load_rig
from leadline.power.cycle import Bench, Leave, PowerCycle, power_cycle
from leadline.power.outlets import ENTRY, restore_outlets
from leadline.power.pdu import open_pdu
from leadline.power.supplies import Supply
from leadline.power.wear import wear_of
from leadline.virtual import rig as virtual_rig
from leadline.virtual.state import State

pytestmark = pytest.mark.slow

Feeds = Literal["drive", "host"]
PROFILES = Path(virtual_rig.__file__).parents[1] / "rigs/profiles"
RESTORED_S = 30.0


@dataclass
class Live:
    """The running rig, and what a cycle on it needs."""

    rig: Rig
    here: Host
    host: Host
    watch: KernelWatch
    journals: str

    def outlet(self, name: str) -> OutletSpec:
        return next(outlet for outlet in self.rig.outlets if outlet.name == name)

    def bound(self, slot: str, firmware: str = "1.0") -> Drive:
        return bind(self.host, self.rig.drive(slot), firmware=firmware)

    def cycle(
        self,
        drive: Drive,
        outlet: OutletSpec,
        *,
        abrupt: bool,
        sharing: Sequence[Drive] = (),
        expected_firmware: str | None = None,
    ) -> PowerCycle:
        """One cycle, as the fixtures of the suite do it."""
        feeds: Feeds = "host" if outlet.feeds == "host" else "drive"
        with ExitStack() as stack:
            pdu = stack.enter_context(open_pdu(self.rig.pdu_of(outlet)))
            journal = stack.enter_context(Journal(self.here, "live", directory=self.journals))
            leave: Leave
            if feeds == "host":
                leave = stack.enter_context(admit_host(self.host, [drive, *sharing]))
            else:
                leave = stack.enter_context(admit(self.host, drive.spec, drive, "cut power"))
            return power_cycle(
                Bench(self.host, self.rig.host, journal, self.watch),
                drive,
                [Supply(pdu, outlet.outlet)],
                leave,
                feeds=feeds,
                abrupt=abrupt,
                sharing=sharing,
                expected_firmware=expected_firmware,
            )

    def outlets(self) -> dict[int, bool]:
        with open_pdu(self.rig.pdus[0]) as pdu:
            return pdu.status()


@pytest.fixture(scope="module")
def live(make_rig: Callable[..., Path], tmp_path_factory: pytest.TempPathFactory) -> Iterator[Live]:
    rig = load_rig(make_rig("power"))
    journals = str(tmp_path_factory.mktemp("journals"))
    with (
        pytest.MonkeyPatch.context() as environment,
        virtual_rig.running(rig),
        open_host(HostSpec(reach="local")) as here,
        open_host(rig.host) as host,
        KernelWatch(host) as watch,
    ):
        environment.setenv("XDG_STATE_HOME", str(tmp_path_factory.mktemp("state")))
        yield Live(rig, here, host, watch, journals)
    shutil.rmtree(State(rig.name).root)


@pytest.mark.parametrize("abrupt", [False, True], ids=["graceful", "abrupt"])
def test_a_drive_with_an_outlet_of_its_own(live: Live, abrupt: bool) -> None:
    boot = live.host.boot_id()
    done = live.cycle(live.bound("scsi1"), live.outlet("scsi1"), abrupt=abrupt)
    print(done.phases)
    assert done.verified
    assert done.phases.off_s >= live.rig.drive("scsi1").off_s
    assert done.phases.link_up_s is None, "it has none"
    assert [counts.power_cycles for counts in done.smart] == [None, None], "it counts none"
    assert done.after.identity == done.before.identity
    assert live.host.boot_id() == boot
    assert all(live.outlets().values())


@pytest.mark.parametrize(
    "abrupt",
    [pytest.param(False, marks=pytest.mark.long, id="graceful"), pytest.param(True, id="abrupt")],
)
def test_a_drive_on_the_hosts_outlet(live: Live, abrupt: bool) -> None:
    boot = live.host.boot_id()
    drive, other = live.bound("ssd1"), live.bound("scsi1")
    had = wear_of(other.spec)
    done = live.cycle(drive, live.outlet("host"), abrupt=abrupt, sharing=[other])
    print(done.phases)
    assert done.verified
    assert done.feeds == "host"
    assert done.phases.link_up_s is not None, "by the kernel's log of the new boot"
    assert 0 < done.phases.link_up_s < done.phases.back_s < done.phases.ready_s
    assert done.wear == wear_of(drive.spec)
    assert wear_of(other.spec).power_cycles == had.power_cycles + 1
    assert done.wear.emergency_unloads == 0, "an SSD has no heads to unload"
    assert done.after.identity == done.before.identity
    assert live.host.boot_id() != boot
    assert all(live.outlets().values())


@pytest.mark.long
def test_a_firmware_that_is_expected_must_come_and_another_is_a_fault(live: Live) -> None:
    virtual_rig.flash(live.rig.name, "ssd1", PROFILES / "vssd-1.1.yaml")
    done = live.cycle(live.bound("ssd1"), live.outlet("host"), abrupt=True, expected_firmware="1.1")
    assert done.after.identity.firmware == "1.1"
    virtual_rig.flash(live.rig.name, "ssd1", PROFILES / "vssd-1.0.yaml")
    with pytest.raises(DriveFault, match=r"firmware was '1\.1' and is '1\.0'"):
        live.cycle(live.bound("ssd1", "1.1"), live.outlet("host"), abrupt=True)
    assert all(live.outlets().values())


def test_an_outlet_that_feeds_nothing_is_found_by_the_drive_that_stays(
    live: Live, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("leadline.power.dark.HOLD_UP_S", 3.0)
    wrong = live.outlet("scsi1").model_copy(update={"outlet": 3})
    with pytest.raises(RigTrouble, match=r"slot scsi1: .* is still there .*outlet 3 of PDU 'pdu'"):
        live.cycle(live.bound("scsi1"), wrong, abrupt=False)
    assert all(live.outlets().values())
    assert live.bound("scsi1").queue_depth, "and it is back"


def test_a_drive_in_use_is_refused_before_anything_moves(live: Live, tmp_path: Path) -> None:
    drive = live.bound("ssd1")
    live.host.run(["mkswap", drive.node], deadline=60)
    live.host.run(["swapon", drive.node], deadline=60)
    try:
        for outlet in ("host", "scsi1"):
            with pytest.raises(Refused, match="swap"):
                live.cycle(drive, live.outlet(outlet), abrupt=True)
        done = power(live, tmp_path, "host", "cycle", "--abrupt", "--yes")
        assert done.returncode == 2, "and no --yes overrides that"
        assert "swap" in done.stderr
    finally:
        live.host.run(["swapoff", drive.node], deadline=60)
        live.host.run(["wipefs", "--quiet", "--all", drive.node], deadline=60)
    assert all(live.outlets().values())


def power(live: Live, state: Path, *words: str) -> "subprocess.CompletedProcess[str]":
    """Run `leadline power` on the rig, its byte logs in `state`."""
    return subprocess.run(
        [sys.executable, "-m", "leadline.cli", "power", "--rig", str(live.rig.path), *words],
        env=os.environ | {"XDG_STATE_HOME": str(state)},
        capture_output=True,
        text=True,
        timeout=120,
        check=False,
    )


def test_the_command_says_what_it_did_and_keeps_what_was_said(live: Live, tmp_path: Path) -> None:
    done = power(live, tmp_path, "--drive", "scsi1", "cycle", "--json")
    assert done.returncode == 0, done.stderr
    said = json.loads(done.stdout)
    assert said["verified"] is True
    assert said["drives"] == ["scsi1"]
    assert said["phases"]["off_s"] >= 1
    (log,) = (tmp_path / "leadline" / "serial").glob("*/pdu.log")
    assert [line[30:] for line in log.read_text().splitlines() if "> o" in line] == [
        r"off 2\r",
        r"on 2\r",
    ]


DOOMED = """
import sys
from pathlib import Path
from leadline.drive.bind import bind
from leadline.drive.guard import admit
from leadline.host.connection import open_host
from leadline.host.journal import Journal
from leadline.inventory.rig import HostSpec, load_rig
from leadline.power.cycle import Bench, power_cycle
from leadline.power.supplies import Supply
from leadline.power.pdu import open_pdu

rig = load_rig(Path(sys.argv[1]))
with (
    open_host(HostSpec(reach="local")) as here,
    open_host(rig.host) as host,
    open_pdu(rig.pdus[0]) as pdu,
):
    bench = Bench(host, rig.host, Journal(here, "doomed", directory=sys.argv[2]))
    drive = bind(host, rig.drive("scsi1"))
    leave = admit(host, drive.spec, drive, "cut power")
    print("begins", flush=True)
    power_cycle(bench, drive, [Supply(pdu, 2)], leave, feeds="drive")
"""


@pytest.mark.parametrize(
    "after_s", [*(pytest.param(each, marks=pytest.mark.long) for each in (0.1, 0.8, 2.2)), 1.3]
)
def test_a_killed_run_leaves_an_outlet_that_the_next_one_finds(
    live: Live, after_s: float, tmp_path: Path
) -> None:
    journals = str(tmp_path / "journal")
    with subprocess.Popen(
        [sys.executable, "-c", DOOMED, str(live.rig.path), journals], stdout=subprocess.PIPE
    ) as doomed:
        assert doomed.stdout
        assert doomed.stdout.readline() == b"begins\n"
        time.sleep(after_s)  # the moment is what is tried
        doomed.send_signal(signal.SIGKILL)
    assert doomed.returncode == -signal.SIGKILL, "it was under way"
    replay(live.here, run_id="doomed", patience=RESTORED_S, directory=journals)
    print(restore_outlets(live.here, directory=journals))
    assert all(live.outlets().values())
    assert dead_entries(live.here, ENTRY, directory=journals) == []
    limit = time.monotonic() + RESTORED_S
    while not any(disk.serial == "VSCSI0001" for disk in scan(live.host)):
        assert time.monotonic() < limit, "the drive comes back, too"
        time.sleep(0.2)
