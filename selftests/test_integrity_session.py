"""A real load on a file, by the program that rigs are sent; and what is made of what it says."""

import ast
import errno
import json
import mmap
import os
import random
import shutil
import subprocess
from contextlib import suppress
from dataclasses import replace
from importlib.resources import files
from pathlib import Path

import pytest

from leadline.drive.ask import INQUIRY
from leadline.errors import DriveFault, RigTrouble
from leadline.host.connection import Host, Running
from leadline.host.wire import BOOTSTRAP, for_bootstrap, source_of
from leadline.integrity import session, writer
from leadline.integrity.account import Account
from leadline.integrity.intents import IntentLog, account_of
from leadline.integrity.pattern import Stamp, stamp_of
from leadline.integrity.plan import Plan
from leadline.integrity.report import found_in, line_of, told
from leadline.integrity.session import PARTS, Load, Target, read_back
from selftests.integrity_load import ENOUGH, FOR_EVER_S, PLAN, enough, log, never
from selftests.local_hosts import host
from selftests.simulated_drive import SimulatedDrive

__all__ = ["host", "log"]  # fixtures


@pytest.fixture
def target(host: Host, tmp_path: Path) -> Target:
    """A file for a drive: it keeps everything."""
    path = tmp_path / "drive"
    path.write_bytes(bytes((PLAN.last + 1) * 512))
    try:
        os.close(os.open(path, os.O_RDWR | os.O_DIRECT))
    except OSError:
        pytest.skip(f"{tmp_path} knows no O_DIRECT")
    return Target(host, str(path), "slot a", 8)


class Speaker(Target):
    """Instead of a load, a program that says what its node is."""

    def start(self, plan: Plan, seconds: float) -> Running:
        return self.host.start(["printf", "%s\\n", self.node])


def pids_of(words: str) -> list[int]:
    """The programs that have these words in their command line."""
    found = []
    for each in Path("/proc").glob("[0-9]*/cmdline"):
        with suppress(FileNotFoundError, ProcessLookupError):
            if words.encode() in each.read_bytes():
                found.append(int(each.parent.name))
    return found


def spoil(target: Target, lba: int, data: bytes) -> None:
    with Path(target.node).open("r+b") as file:
        file.seek(lba * 512)
        file.write(data)


def loaded(target: Target, log: IntentLog) -> Account:
    with Load(target, PLAN, 1.0, log) as load:
        load.until(never)
    return load.account


@pytest.mark.parametrize("part", PARTS)
def test_what_is_sent_to_rigs_is_python_3_8(part: str) -> None:
    package, _, name = part.rpartition(".")
    source = files(package).joinpath(f"{name}.py").read_text()
    ast.parse(source, feature_version=(3, 8))


@pytest.mark.parametrize("python", ["python3.8", "python3.9", "python3.13"])
def test_it_runs_on(target: Target, python: str) -> None:
    program = shutil.which(python)
    if not program or subprocess.run([program, "-V"], capture_output=True, check=False).returncode:
        pytest.skip(f"{python} is not installed")
    job = {"device": target.node, "plan": list(PLAN), "in_flight": 8, "seconds": 0.1, "command": ""}
    done = subprocess.run(
        [program, "-IS", "-c", BOOTSTRAP, json.dumps(job)],
        input=for_bootstrap(source_of(PARTS)),
        capture_output=True,
        check=True,
    )
    account = Account(PLAN)
    for line in done.stdout.decode().splitlines():
        account.take(line)
    assert account.ended
    assert account.acknowledged > PLAN.fills


def test_a_load_fills_the_span_mixes_and_ends_in_order(target: Target, log: IntentLog) -> None:
    account = loaded(target, log)
    assert account.ended
    assert account.history.under_way() == 0
    assert account.acknowledged > PLAN.fills
    assert account.reads > 0
    assert 1 < account.most_under_way <= target.in_flight
    for cut in (False, True):
        found = read_back(target, account, cut=cut, log=log)
        assert (found.sectors, found.wrong, found.unheard) == (PLAN.sectors, (), 0)


def test_the_log_alone_tells_the_same(target: Target, log: IntentLog) -> None:
    account = loaded(target, log)
    log.remark("a remark\nof two lines")
    with log.path.open("a") as file:
        file.write("i 99")  # cut short: it never counted
    again = account_of(log.path)
    assert again.plan == PLAN
    for field in ("acknowledged", "reads", "ended", "most_under_way"):
        assert getattr(again, field) == getattr(account, field)
    assert again.history.under_way() == 0
    for lba in PLAN.chunks()[0]:
        assert again.history.lasting(lba) == account.history.lasting(lba)
    assert json.loads(log.path.read_text().splitlines()[0])["cell"] == "a"


def test_the_intent_is_on_record_before_anything_is_written(
    target: Target, log: IntentLog, monkeypatch: pytest.MonkeyPatch
) -> None:
    synced: list[str] = []

    def start(self: Target, plan: Plan, seconds: float) -> None:
        assert synced
        assert json.loads(log.path.read_text().splitlines()[0])["plan"] == plan._asdict()
        raise RigTrouble("seen")

    monkeypatch.setattr(IntentLog, "sync", lambda self: synced.append(self.path.read_text()))
    monkeypatch.setattr(Target, "start", start)
    with pytest.raises(RigTrouble, match="seen"):
        Load(target, PLAN, 1.0, log)


def test_a_log_that_cannot_be_written_is_trouble_before_the_load(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("")
    with pytest.raises(RigTrouble, match="cannot be put on record"):
        IntentLog(tmp_path / "file" / "load.log", PLAN, {})


def test_the_first_wrong_sector_is_found_with_what_it_holds(target: Target, log: IntentLog) -> None:
    account = loaded(target, log)
    other, first = PLAN.chunks()[9].start, PLAN.chunks()[3].start + 5
    with Path(target.node).open("rb") as file:
        file.seek(other * 512)
        data = file.read(512)
    spoil(target, first, data)
    spoil(target, first + 70, bytes(1024))
    found = read_back(target, account, cut=True, log=log)
    assert [wrong.lba for wrong in found.wrong] == [first, first + 70, first + 71]
    assert found.wrong[0].holds.startswith(f"the data of LBA {other} (write ")
    assert found.wrong[1].holds == "zeros"


def test_a_read_beside_the_writes_that_is_wrong_ends_the_load(
    target: Target, log: IntentLog
) -> None:
    def spoiled(account: Account) -> bool:
        if account.history.covered == PLAN.sectors:
            spoil(target, PLAN.first, bytes(PLAN.blocks * 512))
        return False

    with (
        pytest.raises(DriveFault, match=r"a read beside .* LBA \d+ holds zeros") as caught,
        Load(target, PLAN, FOR_EVER_S, log) as load,
    ):
        load.until(spoiled)
    assert str(log.path) in str(caught.value)


@pytest.mark.parametrize(
    ("said", "error", "message"),
    [
        (
            "i 1\ne 1 5",
            DriveFault,
            r"a write of 64 sectors at LBA 2048 failed \(Input/output error\)",
        ),
        ("i 1\nx", DriveFault, "does not say any more who it is"),
        ("i 1\na 7", RigTrouble, "said what is no event: 'a 7'"),
        ("i 1", RigTrouble, "ended before its time"),
        ("i 1\nend", RigTrouble, "ended with 1 requests under way"),
    ],
)
def test_what_a_load_may_say_and_whose_fault_it_is(
    host: Host, log: IntentLog, said: str, error: type[Exception], message: str
) -> None:
    with (
        pytest.raises(error, match=message),
        Load(Speaker(host, said, "slot a", 8), PLAN, FOR_EVER_S, log) as load,
    ):
        load.until(never)


SMALL = Plan(11, 4096, 1 << 20, 1, 256)


@pytest.fixture
def simulated() -> tuple[SimulatedDrive, Account]:
    """A load that has ended, its last writes in the drive's cache."""
    drive = SimulatedDrive(SMALL, random.Random(2), in_flight=16)
    drive.run(200)
    drive.finish()
    account = Account(SMALL)
    for line in drive.lines:
        account.take(line)
    return drive, account


def reader(host: Host, drive: SimulatedDrive, sectors: int = SMALL.sectors) -> Speaker:
    """Reads so many sectors of it."""
    span = range(SMALL.first, SMALL.first + sectors)
    words = told(b"".join(map(drive.sector, span)), SMALL.seed, span[0])
    return Speaker(host, f"v {span[0]} {line_of(words)}\nend", "slot a", 8)


def test_what_is_read_back_at_rest_is_known_from_then_on(
    host: Host, log: IntentLog, simulated: tuple[SimulatedDrive, Account]
) -> None:
    """Of writes side by side either may have won; which one did is seen once, and stays."""
    drive, account = simulated
    span = SMALL.chunks()[0].start, SMALL.last + 1
    assert any(len(account.history.current(lba)) > 1 for lba in range(*span))
    assert read_back(reader(host, drive), account, cut=False, log=log).wrong == ()
    for lba in range(*span):
        stamp = stamp_of(drive.sector(lba))
        assert isinstance(stamp, Stamp)
        assert account.history.current(lba) == {stamp.generation}


def test_what_was_not_flushed_may_be_gone_after_a_cut_and_not_otherwise(
    host: Host, log: IntentLog, simulated: tuple[SimulatedDrive, Account]
) -> None:
    drive, account = simulated
    drive.cut()
    found = read_back(reader(host, drive), account, cut=True, log=log)
    assert found.wrong == ()
    assert len(read_back(reader(host, drive), account, cut=False, log=log).wrong) == found.older > 0


def test_a_span_that_was_not_read_to_its_end_proves_nothing(
    host: Host, log: IntentLog, simulated: tuple[SimulatedDrive, Account]
) -> None:
    drive, account = simulated
    with pytest.raises(RigTrouble, match=r"128 of 256 sectors were read back"):
        read_back(reader(host, drive, 128), account, cut=True, log=log)


class Mute(Target):
    """Instead of a program, one that issues a write, says nothing more, and does not end."""

    def start(self, plan: Plan, seconds: float) -> Running:
        said = ["i 1\n"] if seconds else [""]
        return self.host.start(["sh", "-c", 'printf "$1"; exec sleep 60', "sh", *said])


@pytest.fixture
def mute(host: Host, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Mute:
    """On which a moment's silence is enough; a path below /sys/block leads out to the folder."""
    monkeypatch.setattr(session, "SILENCE_S", 1.0)
    monkeypatch.setattr(session, "LISTEN_S", 0.05)
    return Mute(host, f"/dev/../..{tmp_path}", "slot a", 8)


@pytest.mark.parametrize(
    ("in_flight", "whose", "message"),
    [
        ("       0        4\n", DriveFault, "the drive has 4 requests yet, and the rig answers"),
        ("       0        0\n", RigTrouble, "the drive has none; is the rig overloaded"),
        (None, RigTrouble, "does the drive still answer"),
    ],
)
def test_whose_fault_silence_is_the_drives_requests_tell(
    mute: Mute, log: IntentLog, in_flight: str | None, whose: type[Exception], message: str
) -> None:
    """Of a load, and of reading back."""
    if in_flight is not None:
        Path("/sys/block", mute.node.removeprefix("/dev/"), "inflight").write_text(in_flight)
    with pytest.raises(whose, match=f"slot a .*: nothing was answered in 1 s.*{message}"):
        read_back(mute, Account(SMALL), cut=False, log=log)
    under_way = f"1 requests under way, and none was answered in 1 s.*{message}"
    with (
        pytest.raises(whose, match=under_way),
        Load(mute, PLAN, FOR_EVER_S, log) as load,
    ):
        load.until(never)


class HalfBlind(writer.Drive):
    """Answers zeros, but for two blocks."""

    def __init__(self, bad: set[int]) -> None:
        self.bad = bad
        self.said: list[str] = []

    def read(self, buffer: mmap.mmap, lba: int, size: int) -> bytes:
        if self.bad & set(range(lba, lba + size // 512)):
            raise OSError(errno.EIO, "unreadable")
        return bytes(size)

    def say(self, line: str) -> None:
        self.said.append(line)


@pytest.mark.parametrize("block", [1, 8])
def test_a_sector_that_cannot_be_read_takes_no_more_than_its_block_with_it(block: int) -> None:
    plan = SMALL._replace(block=block)
    bad = SMALL.first + 80
    drive = HalfBlind({bad})
    writer.read_back(drive, plan, 1)
    unreadable = []
    sectors = 0
    for line in drive.said:
        _, lba, found = line.split(" ", 2)
        words = found_in(found)
        sectors += len(words)
        unreadable += [int(lba) + n for n, word in enumerate(words) if word == "e5"]
    assert unreadable == list(range(bad, bad + block))
    assert sectors == plan.sectors


def test_a_drive_that_cannot_be_opened_is_the_rigs_trouble(target: Target, log: IntentLog) -> None:
    nowhere = replace(target, node="/dev/nowhere")
    with (
        pytest.raises(RigTrouble, match=r"ended before its time.*\n +/dev/nowhere: No such file"),
        Load(nowhere, PLAN, 1.0, log) as load,
    ):
        load.until(never)
    with pytest.raises(RigTrouble, match="ended before its time"):
        read_back(nowhere, Account(PLAN), cut=False, log=log)


def test_what_takes_no_command_is_told(target: Target, log: IntentLog) -> None:
    """A file takes none: as a drive that has stopped to answer."""
    asked = replace(target, command=INQUIRY, length=96)
    with (
        pytest.raises(DriveFault, match="does not say any more who it is"),
        Load(asked, PLAN, FOR_EVER_S, log) as load,
    ):
        load.until(never)


def test_a_host_that_is_lost_leaves_what_had_arrived(
    target: Target, host: Host, log: IntentLog
) -> None:
    """The connection ends without a word, as it does when the host loses power."""
    with Load(target, PLAN, FOR_EVER_S, log) as load:
        load.until(enough)
        before = load.account.acknowledged
        while load._running._call._inbox.qsize() < 3:
            pass  # more has arrived, and nobody has heard it yet
        host._wire._process.kill()
        host._wire._reader.join()  # and that is all that will
        load.cut_off()
    account = load.account
    assert account.acknowledged > before
    assert not account.ended
    assert account.acknowledged > ENOUGH
    host.reconnect(30.0)
    while pids_of(target.node):
        pass  # on this machine the power is not cut: the agent's guardian ends the load
    found = read_back(target, account, cut=True, log=log)
    assert found.wrong == ()
    assert found.sectors == PLAN.sectors


def test_a_load_is_gone_when_it_is_left(target: Target, log: IntentLog) -> None:
    with suppress(KeyboardInterrupt), Load(target, PLAN, FOR_EVER_S, log) as load:
        load.until(enough)
        raise KeyboardInterrupt
    assert not pids_of(target.node)
