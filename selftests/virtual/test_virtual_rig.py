"""The virtual rig as it runs: what its outlets do to data, and that nothing of it is left over."""

import json
import os
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from leadline.errors import RigTrouble
from leadline.inventory.rig import Rig, load_rig
from leadline.power.pdu import open_pdu
from leadline.virtual import rig as virtual
from leadline.virtual.request_log import read_request_log
from leadline.virtual.rig import Changes
from leadline.virtual.state import State

pytestmark = [pytest.mark.timeout(600), pytest.mark.slow]

MakeRig = Callable[..., Path]
HOST, SCSI = 1, 2  # outlets of the packaged rig's PDU
SOON_S = 120.0  # on a machine that does other things, too


@pytest.fixture(scope="module")
def rig(make_rig: MakeRig) -> Iterator[Rig]:
    found = load_rig(make_rig("rigtest"))
    with virtual.running(found) as status:
        assert status["host"] == "up"
        assert status["already"] is False
        yield found
    forget(found)


def forget(rig: Rig) -> None:
    """Not even logs are left of a test's rig."""
    root = State(rig.name).root
    State(rig.name).clear()
    root.with_name(f"{rig.name}.lock").unlink(missing_ok=True)


def ssh(rig: Rig, command: str) -> str:
    """What a command says on the guest; tried again while nobody answers."""
    words = ["ssh", "-F", str(rig.host.ssh_config), "-o", "BatchMode=yes", rig.host.address]
    deadline = time.monotonic() + SOON_S
    while True:
        answer = subprocess.run(
            [*words, command], check=False, capture_output=True, text=True, timeout=SOON_S
        )
        if answer.returncode != 255 or time.monotonic() > deadline:
            assert answer.returncode == 0, answer.stderr
            return answer.stdout
        time.sleep(0.2)


def drives(rig: Rig) -> dict[str, tuple[str, str]]:
    """Node and firmware of each drive that the guest sees, by serial number."""
    found = ssh(rig, "lsblk --json --nodeps --output NAME,SERIAL,REV")
    return {
        each["serial"]: (f"/dev/{each['name']}", each["rev"].strip())
        for each in json.loads(found)["blockdevices"]
    }


def wait_for(rig: Rig, serial: str) -> str:
    deadline = time.monotonic() + SOON_S
    while serial not in (found := drives(rig)):
        assert time.monotonic() < deadline, found
    return found[serial][0]


def switch(rig: Rig, outlet: int, on: bool) -> None:
    """Through the line, as anybody would; returns when it has had its effect."""
    with open_pdu(rig.pdus[0]) as pdu:
        pdu.switch(outlet, on)
    if outlet == HOST:
        wait_for_status(rig, lambda found: found["host"] == ("up" if on else "off"))
    else:
        wait_for_status(rig, lambda found: found["drives"]["scsi1"]["powered"] is on)


def wait_for_status(rig: Rig, holds: Callable[[dict[str, Any]], bool]) -> None:
    deadline = time.monotonic() + SOON_S
    while not holds(found := virtual.status(rig.name)):
        assert time.monotonic() < deadline, found
        time.sleep(0.05)


def write(rig: Rig, node: str, text: str, sector: int, *, flush: bool) -> None:
    ssh(
        rig,
        f"printf %-512s {text} | dd of={node} bs=512 seek={sector} count=1 oflag=direct "
        f"{'conv=fsync' if flush else ''} status=none",
    )


def read(rig: Rig, node: str, sector: int) -> str:
    return ssh(
        rig,
        f"dd if={node} bs=512 skip={sector} count=1 iflag=direct status=none | tr -cd A-Za-z",
    )


def test_an_emulated_processor_has_nothing_that_only_silicon_does_fast(rig: Rig) -> None:
    if State(rig.name).read_status()["accelerator"] == "kvm":
        pytest.skip("not emulated: the guest has this machine's processor")
    flags = ssh(rig, "grep -m1 ^flags /proc/cpuinfo").split()
    assert {"sse2", "rep_good"} <= set(flags)
    assert not {"erms", "fsrm", "xsave", "avx", "pku"} & set(flags)


def test_the_programs_of_an_emulated_guest_lie_where_they_lay(rig: Rig) -> None:
    if State(rig.name).read_status()["accelerator"] == "kvm":
        pytest.skip("not emulated: nothing is translated")
    # A shell's first mapping, thrice: what is translated is found again there.
    said = ssh(rig, "for i in 1 2 3; do sh -c 'read -r first < /proc/self/maps; echo $first'; done")
    first, *others = said.splitlines()
    assert "-" in first
    assert others == [first, first]


def test_the_guest_sees_the_drives_of_the_rig_file(rig: Rig) -> None:
    found = drives(rig)
    assert {serial: firmware for serial, (_, firmware) in found.items()} == {
        drive.serial: drive.firmware for drive in rig.drives
    }
    node = found["VSSD0001"][0]
    assert ssh(rig, f"cat /sys/block/{Path(node).name}/device/queue_depth").strip() == "32"


def test_the_drives_model_is_given_32_requests_at_once(rig: Rig) -> None:
    node = wait_for(rig, "VSSD0001")
    log = State(rig.name).medium("ssd1") / "requests.jsonl"
    deadline, most = time.monotonic() + SOON_S, 0
    while most < 32:  # a busy machine does not always send them as fast as the drive takes them
        assert time.monotonic() < deadline, most
        ssh(
            rig,
            f"fio --name=j --filename={node} --readonly --direct=1 --rw=randread --bs=4k "
            "--ioengine=libaio --iodepth=32 --runtime=2 --time_based --output=/dev/null",
        )
        time.sleep(0.5)  # it is written behind, and not at once
        most = max(request.in_flight for request in read_request_log(log))


def test_an_outlet_takes_one_drive_away_and_what_it_had_not_flushed(rig: Rig) -> None:
    node = wait_for(rig, "VSCSI0001")
    boot = ssh(rig, "cat /proc/sys/kernel/random/boot_id")
    write(rig, node, "flushed", 100, flush=True)
    write(rig, node, "volatile", 200, flush=False)
    assert read(rig, node, 200) == "volatile"
    switch(rig, SCSI, False)
    assert set(drives(rig)) == {"VSSD0001"}
    switch(rig, SCSI, True)
    node = wait_for(rig, "VSCSI0001")
    assert read(rig, node, 100) == "flushed"
    assert "volatile" not in read(rig, node, 200)
    assert ssh(rig, "cat /proc/sys/kernel/random/boot_id") == boot


@pytest.mark.long
def test_the_hosts_outlet_cuts_its_drive_off_and_new_firmware_starts_with_it(rig: Rig) -> None:
    found = drives(rig)
    node, firmware = found["VSSD0001"]
    assert firmware == "1.0"
    write(rig, node, "flushed", 100, flush=True)
    write(rig, node, "volatile", 200, flush=False)
    write(rig, found["VSCSI0001"][0], "independent", 300, flush=False)
    boot = ssh(rig, "cat /proc/sys/kernel/random/boot_id")
    packaged = {drive.slot: drive.profile for drive in rig.virtual.drives} if rig.virtual else {}
    healthy = packaged["ssd1"]
    assert healthy is not None
    assert virtual.flash(rig.name, "ssd1", healthy.with_name("vssd-1.1.yaml")) == "1.1"
    assert virtual.status(rig.name)["drives"]["ssd1"]["staged"] == "1.1"
    assert drives(rig)["VSSD0001"][1] == "1.0"
    switch(rig, HOST, False)
    switch(rig, HOST, True)
    found = drives(rig)
    node, firmware = found["VSSD0001"]
    assert firmware == "1.1"
    assert read(rig, node, 100) == "flushed"
    assert "volatile" not in read(rig, node, 200)
    assert ssh(rig, "cat /proc/sys/kernel/random/boot_id") != boot
    # The other drive has an outlet of its own, and never lost its power.
    assert read(rig, found["VSCSI0001"][0], 300) == "independent"


@pytest.mark.long
def test_a_guest_that_powers_itself_off_is_seen_and_starts_again(rig: Rig) -> None:
    subprocess.run(
        ["ssh", "-F", str(rig.host.ssh_config), rig.host.address, "poweroff"],
        check=False,
        capture_output=True,
        timeout=SOON_S,
    )
    wait_for_status(rig, lambda found: found["host"] == "halted")
    assert virtual.status(rig.name)["trouble"] == ""
    switch(rig, HOST, False)
    switch(rig, HOST, True)
    wait_for(rig, "VSSD0001")


def test_a_second_up_says_so_and_changes_nothing(rig: Rig) -> None:
    said: list[str] = []
    before = virtual.status(rig.name)
    with virtual.running(rig, say=said.append) as found:
        assert found["already"] is True
    assert virtual.status(rig.name) == before
    assert said == [f"virtual rig {rig.name} is up already"]


OWNER = """
import sys, time
from pathlib import Path
from leadline.inventory.rig import load_rig
from leadline.virtual.rig import Changes, running
with running(load_rig(Path(sys.argv[1])), Changes(kernel_arguments="libata.force=noncq")):
    print("up", flush=True)
    time.sleep(600)
"""


@pytest.fixture
def owned(make_rig: MakeRig) -> Iterator[tuple[Rig, subprocess.Popen[str]]]:
    """A rig that belongs to another process."""
    path = make_rig("owned")
    with subprocess.Popen(
        [sys.executable, "-c", OWNER, str(path)], stdout=subprocess.PIPE, text=True
    ) as owner:
        assert owner.stdout is not None
        assert owner.stdout.readline() == "up\n"
        rig = load_rig(path)
        yield rig, owner
        owner.kill()
    virtual.down(rig.name)
    forget(rig)


def children(process: int) -> list[int]:
    text = Path(f"/proc/{process}/task/{process}/children").read_text()
    return [int(word) for word in text.split()]


def alive(process: int) -> bool:
    try:
        return Path(f"/proc/{process}/stat").read_text().rpartition(")")[2].split()[0] != "Z"
    except (FileNotFoundError, ProcessLookupError):
        return False


def mounts(rig: Rig) -> list[str]:
    text = Path("/proc/self/mountinfo").read_text()
    return [line for line in text.splitlines() if f"/{rig.name}/" in line]


def left_over(rig: Rig, processes: list[int]) -> list[object]:
    """Whatever is still there of a rig that should have gone; logs may stay."""
    found: list[object] = [process for process in processes if alive(process)]
    found += mounts(rig)
    if not mounts(rig):  # a dead one cannot be looked into
        kept = {".log", ".jsonl"}
        every = State(rig.name).root.rglob("*")
        found += [path for path in every if not path.is_dir() and not kept & {*path.suffixes}]
    return found


def wait_until_gone(rig: Rig, processes: list[int]) -> None:
    deadline = time.monotonic() + 20
    while left := left_over(rig, processes):
        assert time.monotonic() < deadline, left
        time.sleep(0.1)


def test_a_rig_goes_with_its_owner_even_when_that_is_killed(
    owned: tuple[Rig, subprocess.Popen[str]],
) -> None:
    rig, owner = owned
    # libata.force=noncq, whichever name the drive has
    assert "1" in ssh(rig, "cat /sys/block/sd*/device/queue_depth").split()
    server = State(rig.name).server()
    assert server is not None
    processes = [server, *children(server)]
    assert len(processes) == 4  # QEMU, and a model for each drive
    owner.send_signal(signal.SIGKILL)
    wait_until_gone(rig, processes)
    assert virtual.status(rig.name) == {"rig": rig.name, "running": False}


def test_nothing_outlives_a_killed_server_and_down_clears_up(
    owned: tuple[Rig, subprocess.Popen[str]],
) -> None:
    rig, _ = owned
    server = State(rig.name).server()
    assert server is not None
    processes = children(server)
    os.kill(server, signal.SIGKILL)
    deadline = time.monotonic() + 20
    # Its threads may outlive its first one, which alone /proc shows as gone; the lock does not.
    while State(rig.name).server() or any(alive(process) for process in (server, *processes)):
        assert time.monotonic() < deadline
        time.sleep(0.1)
    assert mounts(rig)
    assert virtual.down(rig.name) is False
    assert left_over(rig, []) == []


def test_a_guest_that_does_not_boot_is_reported_with_its_last_words(make_rig: MakeRig) -> None:
    rig = load_rig(make_rig("broken"))
    with pytest.raises(RigTrouble) as caught:
        virtual.up(rig, Changes(kernel_arguments="rdinit=/usr/bin/false"), say=lambda _: None)
    message = str(caught.value)
    assert "the guest did not come up: Kernel panic" in message
    assert "Kernel panic - not syncing" in message
    assert str(State(rig.name).log / "console.log") in message
    assert virtual.status(rig.name)["running"] is False
    assert left_over(rig, []) == []
    forget(rig)
