"""The host layer over a real ssh to a real kernel: the virtual rig's guest."""

import os
import re
import signal
import subprocess
import time
from collections.abc import Iterator
from pathlib import Path

import pytest

from leadline.host.connection import CommandRefused, DeviceBusy, Host, HostLost, open_host
from leadline.host.lease import LeaseTaken, take
from leadline.inventory.rig import HostSpec, Rig

AWAIT_S = 60.0
SOON_S = 30.0  # "within seconds", on a machine without hardware virtualisation


@pytest.fixture(scope="module")
def spec(shared_rig: Rig) -> HostSpec:
    return shared_rig.host


@pytest.fixture
def host(spec: HostSpec) -> Iterator[Host]:
    with open_host(spec, deadline=AWAIT_S) as opened:
        yield opened


@pytest.fixture
def other(spec: HostSpec) -> Iterator[Host]:
    with open_host(spec, deadline=AWAIT_S) as opened:
        yield opened


def ssh_clients() -> set[int]:
    """The ssh clients that are children of this process."""
    children = Path(f"/proc/{os.getpid()}/task").glob("*/children")
    pids = {int(pid) for file in children for pid in file.read_text().split()}
    return {pid for pid in pids if Path(f"/proc/{pid}/comm").read_text().strip() == "ssh"}


def disk(host: Host, serial: str) -> str:
    listed = host.run(["lsblk", "-dnro", "NAME,SERIAL"], deadline=AWAIT_S).stdout.decode()
    found = re.search(rf"^(\w+) {serial}$", listed, re.MULTILINE)
    if not found:
        pytest.skip(f"no {serial} on this guest")
    return f"/dev/{found.group(1)}"


def test_a_killed_ssh_client_takes_its_programs_and_leases_along(
    spec: HostSpec, other: Host
) -> None:
    before = ssh_clients()
    doomed = open_host(spec, deadline=AWAIT_S)
    (client,) = ssh_clients() - before
    take(doomed, "0x5000c5000000a001", "a doomed run", directory="/tmp/selftest-leases")
    script = "setsid sleep 4321 & trap '' TERM; echo $$; while :; do sleep 4321; done"
    (pid,) = doomed.start(["sh", "-c", script]).lines(AWAIT_S)
    with pytest.raises(LeaseTaken, match="a doomed run"):
        take(other, "0x5000c5000000a001", "the next", directory="/tmp/selftest-leases")
    os.kill(client, signal.SIGKILL)
    killed = time.monotonic()
    with pytest.raises(HostLost, match="killed by signal 9"):
        doomed.run(["true"], deadline=AWAIT_S)
    assert time.monotonic() - killed < SOON_S
    path = "/tmp/selftest-leases/0x5000c5000000a001.lock"
    assert isinstance(other.lock_file(path, shared=True, patience=SOON_S), int)
    assert not other.exists(f"/proc/{pid}")
    running = other.run(["sh", "-c", "cat /proc/[0-9]*/cmdline"], deadline=AWAIT_S, check=False)
    assert b"sleep\x004321" not in running.stdout


def test_fios_forked_jobs_end_with_the_connection(spec: HostSpec, other: Host) -> None:
    """They call setsid: no process group and no parent leads to them."""
    device = disk(other, "VSSD0001")
    before = ssh_clients()
    doomed = open_host(spec, deadline=AWAIT_S)
    (client,) = ssh_clients() - before
    job = ["fio", "--name=doomed", f"--filename={device}", "--readonly", "--rw=randread"]
    job += ["--numjobs=3", "--runtime=600", "--time_based", "--eta=always", "--eta-newline=250ms"]
    assert doomed.start(job).lines(AWAIT_S)
    os.kill(client, signal.SIGKILL)
    limit = time.monotonic() + SOON_S
    while (
        b"--name=doomed"
        in other.run(["sh", "-c", "cat /proc/[0-9]*/cmdline"], deadline=AWAIT_S, check=False).stdout
    ):
        assert time.monotonic() < limit


def test_reconnecting_after_the_client_was_killed(host: Host) -> None:
    for client in ssh_clients():
        os.kill(client, signal.SIGKILL)
    host.reconnect(AWAIT_S)
    assert host.run(["echo", "back"], deadline=AWAIT_S).stdout == b"back\n"


def test_inquiry_and_identify_through_a_held_device(host: Host) -> None:
    """SAT-4 12.2.2: ATA PASS-THROUGH (16), PIO data-in, one block; ECh is IDENTIFY DEVICE."""
    handle = host.hold_device(disk(host, "VSSD0001"))
    inquiry = host.sg_io(handle, bytes([0x12, 0, 0, 0, 96, 0]), 96, deadline=AWAIT_S)
    assert inquiry[8:32] == b"ATA     LEADLINE VSSD   "
    identify = bytes([0x85, 4 << 1, 0x0E, 0, 0, 0, 1, 0, 0, 0, 0, 0, 0, 0, 0xEC, 0])
    data = host.sg_io(handle, identify, 512, deadline=AWAIT_S)
    assert len(data) == 512
    assert data[54:62] == b"ELDAILEN"  # words 27-30, bytes swapped in each
    host.release_device(handle)


def test_a_refused_command_brings_its_sense_data(host: Host) -> None:
    handle = host.hold_device(disk(host, "VSCSI0001"))
    with pytest.raises(CommandRefused, match="status 02h") as caught:
        host.sg_io(handle, bytes([0x12, 1, 0xEE, 0, 96, 0]), 96, deadline=AWAIT_S)  # no such page
    assert (caught.value.key, caught.value.asc) == (5, 0x24)  # INVALID FIELD IN CDB
    host.release_device(handle)


def test_a_disk_in_use_is_busy(host: Host) -> None:
    image = "/tmp/selftest-image"
    host.run(["modprobe", "loop"], deadline=AWAIT_S, check=False)
    host.run(["truncate", "-s", "16M", image], deadline=AWAIT_S)
    loop = (
        host.run(["losetup", "--find", "--show", image], deadline=AWAIT_S).stdout.decode().strip()
    )
    try:
        host.run(["mkswap", loop], deadline=AWAIT_S)
        host.run(["swapon", loop], deadline=AWAIT_S)
        with pytest.raises(DeviceBusy, match="swap"):
            host.hold_device(loop)
        host.run(["swapoff", loop], deadline=AWAIT_S)
        host.release_device(host.hold_device(loop))
    finally:
        host.run(["losetup", "--detach", loop], deadline=AWAIT_S)


def effective(spec: HostSpec) -> dict[str, str]:
    """What the rig's configuration comes to, as ssh says itself."""
    said = subprocess.run(
        ["ssh", "-F", str(spec.ssh_config), "-G", spec.address],
        capture_output=True,
        text=True,
        check=True,
    )
    pairs = (line.split(" ", 1) for line in said.stdout.splitlines() if " " in line)
    return {
        key: value for key, value in pairs if key not in {"identityfile"} or Path(value).exists()
    }


def variant(spec: HostSpec, tmp_path: Path, **changes: str) -> HostSpec:
    """The same rig by another configuration."""
    now = effective(spec)
    kept = ("hostname", "port", "user", "identityfile", "userknownhostsfile", "hostkeyalias")
    options = {key: now[key] for key in kept if key in now} | changes
    lines = ["Host virtual", "StrictHostKeyChecking yes", "IdentitiesOnly yes"]
    lines += [f"{key} {value}" for key, value in options.items()]
    config = tmp_path / "ssh_config"
    config.write_text("\n".join(lines) + "\n")
    return HostSpec(reach="ssh", address="virtual", ssh_config=config)


def new_key(path: Path, kind: str) -> str:
    argv = ["ssh-keygen", "-q", "-t", kind, "-N", "", "-f", str(path)]
    subprocess.run(argv, check=True)
    return path.with_suffix(".pub").read_text()


def test_a_changed_host_key_is_refused_with_its_remedy(spec: HostSpec, tmp_path: Path) -> None:
    now = effective(spec)
    alias = now.get("hostkeyalias", f"[{now['hostname']}]:{now['port']}")
    known = tmp_path / "known_hosts"
    kinds = ("ed25519", "ecdsa", "rsa")
    known.write_text("".join(f"{alias} {new_key(tmp_path / kind, kind)}" for kind in kinds))
    with pytest.raises(HostLost, match=r"ssh-keygen .*-R") as caught:
        open_host(variant(spec, tmp_path, userknownhostsfile=str(known)), deadline=AWAIT_S)
    assert caught.value.reason == "host-key-changed"
    assert str(known) in str(caught.value)


def test_an_unknown_host_key_is_not_accepted(spec: HostSpec, tmp_path: Path) -> None:
    unknown = variant(spec, tmp_path, userknownhostsfile=str(tmp_path / "empty"))
    with pytest.raises(HostLost, match="log in once by hand") as caught:
        open_host(unknown, deadline=AWAIT_S)
    assert caught.value.reason == "host-key-unknown"


def test_a_key_that_is_not_authorised(spec: HostSpec, tmp_path: Path) -> None:
    new_key(tmp_path / "stranger", "ed25519")
    stranger = variant(spec, tmp_path, identityfile=str(tmp_path / "stranger"))
    with pytest.raises(HostLost, match="does not let root in") as caught:
        open_host(stranger, deadline=AWAIT_S)
    assert caught.value.reason == "permission"
