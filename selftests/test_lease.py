"""Leases exclude other runs, say who holds them, and are free when the holder is gone."""

import os
import subprocess
import sys
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest

from leadline.errors import RigTrouble
from leadline.host.connection import Host, HostLost
from leadline.host.lease import LeaseTaken, file_name, holder_text, take
from selftests.local_hosts import AWAIT_S, directory, host, next_host

__all__ = ["directory", "host", "next_host"]  # fixtures

WWN = "0x5000c5000000a001"


def test_a_taken_lease_names_its_holder(host: Host, next_host: Host, directory: str) -> None:
    with take(host, WWN, "ann\x1b@desk run 7", directory=directory):
        with pytest.raises(LeaseTaken, match=rf"{WWN} is in use by ann\\x1b@desk run 7, since 2"):
            take(next_host, WWN, "bob", directory=directory)
        take(next_host, "0x5000c5000000a002", "bob", directory=directory).release()
    take(next_host, WWN, "bob", directory=directory).release()


def test_one_connection_cannot_take_it_twice(host: Host, directory: str) -> None:
    with take(host, WWN, "ann", directory=directory), pytest.raises(LeaseTaken):
        take(host, WWN, "ann", directory=directory)


def test_a_released_lease_no_longer_names_anybody(
    host: Host, next_host: Host, directory: str
) -> None:
    take(host, WWN, "ann", directory=directory).release()
    path = f"{directory}/{file_name(WWN)}"
    assert host.read_file(path) == b""
    handle = next_host.lock_file(path, shared=True)
    assert isinstance(handle, int)
    with pytest.raises(LeaseTaken, match="somebody who did not sign"):
        take(host, WWN, "ann", directory=directory)


def test_reconnecting_takes_it_again(host: Host, next_host: Host, directory: str) -> None:
    with take(host, WWN, "ann", directory=directory):
        host.reconnect(AWAIT_S)
        with pytest.raises(LeaseTaken, match="ann"):
            take(next_host, WWN, "bob", directory=directory)


def test_reconnecting_says_so_when_another_was_quicker(
    host: Host, next_host: Host, directory: str
) -> None:
    take(host, WWN, "ann", directory=directory)
    host.close()
    with take(next_host, WWN, "bob", directory=directory), pytest.raises(LeaseTaken, match="bob"):
        host.reconnect(AWAIT_S)


def test_who_lost_a_lease_while_away_does_nothing_more_on_the_rig(
    host: Host, next_host: Host, directory: str
) -> None:
    lost = take(host, WWN, "ann", directory=directory)
    other = take(host, "0x5000c5000000a002", "ann", directory=directory)
    host.close()
    with take(next_host, WWN, "bob", directory=directory):
        with pytest.raises(LeaseTaken, match="bob"):
            host.reconnect(AWAIT_S)
        with pytest.raises(HostLost, match="was closed"):
            host.exists("/")
    for lease in (lost, other):
        lease.release()  # which is no trouble: nothing is held any more


def test_what_else_cannot_be_taken_up_keeps_no_lease_from_being_taken_again(
    host: Host, next_host: Host, directory: str
) -> None:
    def refuse() -> None:
        raise RigTrouble("the kernel log says nothing")

    host.after_reconnect.append(refuse)
    with take(host, WWN, "ann", directory=directory):
        with pytest.raises(RigTrouble, match="the kernel log says nothing"):
            host.reconnect(AWAIT_S)
        with pytest.raises(LeaseTaken, match="ann"):
            take(next_host, WWN, "bob", directory=directory)


HOLDER = """
import sys
from leadline.host.connection import open_host
from leadline.host.lease import take
from leadline.inventory.rig import HostSpec
host = open_host(HostSpec(reach="local"))
lease = take(host, sys.argv[1], "a killed run", directory=sys.argv[2])
running = host.start(["sh", "-c", "trap '' TERM; echo up; while :; do sleep 1000; done"])
running.lines(10)
print("held", flush=True)
sys.stdin.read()
"""


def test_a_killed_holder_frees_it_after_its_programs_are_gone(host: Host, directory: str) -> None:
    argv = [sys.executable, "-c", HOLDER, WWN, directory]
    with subprocess.Popen(argv, stdin=subprocess.PIPE, stdout=subprocess.PIPE) as holder:
        assert holder.stdout
        assert holder.stdout.readline() == b"held\n"
        holder.kill()
        with pytest.raises(LeaseTaken, match="a killed run"):
            take(host, WWN, "me", directory=directory)  # its program ignores SIGTERM for 2 s
        path = f"{directory}/{file_name(WWN)}"
        assert isinstance(host.lock_file(path, shared=True, patience=AWAIT_S), int)


def test_whoever_is_patient_has_it_next(host: Host, next_host: Host, directory: str) -> None:
    theirs = take(host, WWN, "ann", directory=directory)
    with pytest.raises(LeaseTaken, match="ann"):
        take(next_host, WWN, "bob", directory=directory, patience=0.2)
    with ThreadPoolExecutor() as pool:
        waits = pool.submit(take, next_host, WWN, "bob", directory=directory, patience=60.0)
        with pytest.raises(TimeoutError):
            waits.result(0.3)
        theirs.release()
        waits.result(60).release()


def test_a_resource_cannot_leave_its_directory() -> None:
    assert file_name("pdu:/dev/ttyS0") == "pdu:%2Fdev%2FttyS0.lock"
    assert "/" not in file_name("../../etc/passwd")
    long = file_name("socket://" + "x" * 500)
    assert len(long) <= 255
    assert long != file_name("socket://" + "x" * 501)


def test_others_may_use_the_directory(host: Host, directory: str) -> None:
    take(host, WWN, "ann", directory=directory).release()
    assert Path(directory).stat().st_mode & 0o7777 == 0o1777
    assert (Path(directory) / file_name(WWN)).stat().st_mode & 0o777 == 0o666


def test_a_symbolic_link_in_the_shared_directory_is_not_followed(
    host: Host, directory: str, tmp_path: Path
) -> None:
    precious = tmp_path / "precious"
    precious.write_text("kept")
    Path(directory).mkdir(parents=True)
    (Path(directory) / file_name(WWN)).symlink_to(precious)
    with pytest.raises(RigTrouble, match="ELOOP"):
        take(host, WWN, "ann", directory=directory)
    assert precious.read_text() == "kept"


def test_the_holder_is_user_machine_process_and_run() -> None:
    assert f"process {os.getpid()} run r1" in holder_text("r1")
