"""A real load on a virtual drive that loses power; the loop device above it makes FUA a flush."""

import os
import shutil
import signal
import subprocess
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from leadline.errors import DriveFault, RigTrouble
from leadline.host.connection import Host
from leadline.integrity import session
from leadline.integrity.account import Account
from leadline.integrity.check import Checked
from leadline.integrity.intents import IntentLog
from leadline.integrity.plan import FLUSH, FUA
from leadline.integrity.session import Load, Target, read_back
from leadline.virtual import mount
from selftests.integrity_load import FOR_EVER_S, PLAN, enough, log, never
from selftests.local_hosts import host
from selftests.medium_process import Drive

__all__ = ["host", "log"]  # fixtures


@contextmanager
def attached(drive: Drive) -> Iterator[str]:
    words = ["losetup", "--find", "--show", "--direct-io=on", str(drive.medium)]
    done = subprocess.run(words, capture_output=True, text=True, check=False)
    if done.returncode != 0:
        pytest.skip(f"no loop device can be had here: {done.stderr.strip()}")
    node = done.stdout.strip()
    try:
        yield node
    finally:
        subprocess.run(["losetup", "--detach", node], check=True)


@pytest.fixture
def drive(tmp_path: Path) -> Iterator[Drive]:
    if os.geteuid() != 0 or not shutil.which("losetup"):
        pytest.skip("loop devices are for root")
    try:
        mount.load_fuse()
    except RigTrouble as trouble:
        pytest.skip(str(trouble))
    made = Drive(tmp_path, "channels: 8\nread_ms: 1\nwrite_ms: 3\n")
    yield made
    made.clean_up()


def after_a_cut(drive: Drive, host: Host, log: IntentLog, cycle: int) -> tuple[Account, Checked]:
    """The power goes in the middle of the load.  Each load on a drive has a seed of its own."""
    plan = PLAN._replace(seed=cycle)
    drive.power_on(cycle=cycle)
    with (
        attached(drive) as node,
        Load(Target(host, node, "slot a", 16), plan, FOR_EVER_S, log) as load,
    ):
        load.until(enough)
        drive.cut_power()
        load.cut_off()
    drive.power_on(cycle=cycle + 1)
    with attached(drive) as node:
        target = Target(host, node, "slot a", 16)
        found = read_back(target, load.account, cut=True, log=log)
    drive.cut_power()
    return load.account, found


def test_a_drive_that_loses_what_was_not_flushed_has_kept_its_promise(
    drive: Drive, host: Host, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Fault V13, which is none.  Cut just after a flush, it has nothing to lose: then again."""
    monkeypatch.setattr(session, "LISTEN_S", 10.0)  # the load ends by itself
    older = cycle = 0
    while cycle < 4 or (not older and cycle < 20):
        with IntentLog(tmp_path / f"{cycle}.log", PLAN, {}) as log:
            account, found = after_a_cut(drive, host, log, cycle)
        assert found.wrong == ()
        assert account.history.under_way() == len(account.failed) > 0, "it was cut in the middle"
        assert not account.ended
        older, cycle = older + found.older, cycle + 2
    assert older > 0, "and it did lose some"
    assert max(request.in_flight for request in drive.log()) >= 8, "they were in its hands"


def test_a_write_with_fua_is_flushed_to_the_drive(drive: Drive, host: Host, log: IntentLog) -> None:
    """By the kernel, as this drive knows no FUA; one at a time, or several have one flush."""
    drive.power_on()
    with (
        attached(drive) as node,
        Load(Target(host, node, "slot a", 1), PLAN, FOR_EVER_S, log) as load,
    ):
        load.until(lambda account: account.acknowledged > PLAN.fills + 60)
    drive.end(signal.SIGTERM)  # in order, so that its log is whole
    answered = [line.split()[1] for line in log.path.read_text().splitlines() if line[0] == "a"]
    kinds = [PLAN.request(int(number)).kind for number in answered]
    flushes = sum(request.op == "flush" for request in drive.log())
    assert kinds.count(FUA) > 5
    assert flushes >= kinds.count(FUA) + kinds.count(FLUSH)


def test_a_drive_that_returns_another_sectors_data_is_found(
    drive: Drive, host: Host, log: IntentLog
) -> None:
    """Fault V14."""
    drive.use("channels: 8\nread_ms: 1\nwrite_ms: 3\nfaults: {wrong_data: {one_in: 10}}\n")
    drive.power_on()
    with (
        attached(drive) as node,
        pytest.raises(DriveFault, match=r"a read beside .*: LBA \d+ holds"),
        Load(Target(host, node, "slot a", 16), PLAN, FOR_EVER_S, log) as load,
    ):
        load.until(never)


def test_a_drive_that_ignores_flushes_is_found(drive: Drive, host: Host, log: IntentLog) -> None:
    """Faults V12 and V21: acknowledged and flushed, and gone with the power."""
    fault = "faults: {ignore_flush: true}\n"
    drive.use("channels: 8\nread_ms: 1\nwrite_ms: 3\n" + fault)
    _, found = after_a_cut(drive, host, log, 0)
    assert len(found.wrong) == PLAN.sectors
    assert found.wrong[0].lba == PLAN.first
    assert "Leadlin" in found.wrong[0].holds, "what it held when it was new"
