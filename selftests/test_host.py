"""Programs, files and devices through the agent, on this machine."""

import errno
import os
import select
import signal
import subprocess
import sys
import threading
import time
from collections.abc import Iterator
from pathlib import Path

import pytest

from leadline.host import connection
from leadline.host.connection import (
    DeadlinePassed,
    DeviceBusy,
    FileTrouble,
    Host,
    ProgramFailed,
    ProgramMissing,
    ProgramTooOld,
    open_host,
)
from leadline.host.programs import install_hint, overhear, parse_version, require
from leadline.host.trouble import decode_sense, printable
from leadline.inventory.rig import HostSpec

AWAIT_S = 10.0


@pytest.fixture(scope="module")
def host() -> Iterator[Host]:
    with open_host(HostSpec(reach="local")) as opened:
        yield opened


def has_ended(pid: int) -> bool:
    """Whether a process ends within AWAIT_S; one that is reaped already has."""
    try:
        fd = os.pidfd_open(pid)
    except ProcessLookupError:
        return True
    try:
        return bool(select.select([fd], [], [], AWAIT_S)[0])
    finally:
        os.close(fd)


class TestPrograms:
    def test_arguments_arrive_as_they_are(self, host: Host) -> None:
        words = ["a b", "$HOME", "'\"`;", "", "\xe9", "*"]
        script = "import sys; print(sys.argv[1:])"
        done = host.run([sys.executable, "-X", "utf8", "-c", script, *words], deadline=10)
        assert done.stdout.decode() == f"{words}\n"
        assert done.exit_code == 0
        assert 0 < done.seconds < 10

    def test_input_and_both_outputs_of_a_megabyte_do_not_block_each_other(self, host: Host) -> None:
        data = os.urandom(1 << 20)
        script = "import sys; d = sys.stdin.buffer.read(); sys.stdout.buffer.write(d); "
        script += "sys.stderr.buffer.write(d[::-1])"
        done = host.run([sys.executable, "-c", script], input=data, deadline=20)
        assert done.stdout == data
        assert done.stderr == data[::-1]

    def test_a_program_that_reads_no_input_is_no_trouble(self, host: Host) -> None:
        assert host.run(["true"], input=bytes(1 << 20), deadline=10).exit_code == 0

    def test_an_attribute_is_read_while_a_program_runs(self, host: Host, tmp_path: Path) -> None:
        attribute = tmp_path / "attribute"
        attribute.write_text("3 4\n")
        done = host.run(["sleep", "0.5"], deadline=10, sample=(str(attribute), 0.05))
        assert 2 <= len(done.samples) <= done.seconds / 0.05 + 1
        assert {value for _, value in done.samples} == {"3 4\n"}
        times = [at for at, _ in done.samples]
        assert times == sorted(times)
        assert abs(times[0] - time.time()) < 5
        assert host.run(["true"], deadline=10).samples == ()

    def test_without_input_stdin_is_empty_and_not_the_protocol(self, host: Host) -> None:
        assert host.run(["cat"], deadline=10).stdout == b""

    def test_output_is_heard_while_the_program_runs(self, host: Host, tmp_path: Path) -> None:
        go_on = tmp_path / "go-on"
        os.mkfifo(go_on)
        heard: list[tuple[str, bytes]] = []

        def hear(stream: str, data: bytes) -> None:
            heard.append((stream, data))
            if data == b"one\n":
                go_on.write_text("\n")  # the program waits for this: it cannot have ended

        host.run(
            ["sh", "-c", f"echo one; read x <{go_on}; echo two >&2"], deadline=10, on_output=hear
        )
        assert heard == [("stdout", b"one\n"), ("stderr", b"two\n")]

    def test_exit_code_and_last_words_are_in_the_error(self, host: Host) -> None:
        with pytest.raises(ProgramFailed, match=r"exit code 3\n    it \\x1b\[31m broke") as caught:
            host.run(["sh", "-c", r"printf 'it \033[31m broke' >&2; exit 3"], deadline=10)
        assert (caught.value.exit_code, caught.value.stderr) == (3, b"it \x1b[31m broke")
        assert host.run(["false"], deadline=10, check=False).exit_code == 1

    def test_a_signal_is_a_negative_exit_code(self, host: Host) -> None:
        done = host.run(["sh", "-c", "kill -9 $$"], deadline=10, check=False)
        assert done.exit_code == -signal.SIGKILL

    def test_a_missing_program_names_its_packages(self, host: Host, tmp_path: Path) -> None:
        with pytest.raises(ProgramMissing, match=r"is not installed.*the package that has"):
            host.run([str(tmp_path / "no-such")], deadline=10)
        running = host.start([str(tmp_path / "no-such")])
        with pytest.raises(ProgramMissing):
            running.lines(AWAIT_S)
        assert "apt install smartmontools" in install_hint("/usr/sbin/smartctl")

    def test_programs_run_at_the_same_time(self, host: Host, tmp_path: Path) -> None:
        """Each end of the fifo waits for the other one to be opened."""
        fifo = tmp_path / "fifo"
        os.mkfifo(fifo)
        reader = host.start(["cat", str(fifo)])
        host.run(["sh", "-c", f"echo met > {fifo}"], deadline=10)
        assert reader.lines(AWAIT_S) == ["met"]

    def test_sbin_is_searched(self, host: Host) -> None:
        path = host.run(["sh", "-c", "echo $PATH"], deadline=10).stdout.decode()
        assert "/usr/sbin" in path.strip().split(":")


class TestEnding:
    def test_the_deadline_ends_a_program_and_keeps_what_it_said(self, host: Host) -> None:
        with pytest.raises(DeadlinePassed, match=r"not finished within 2 s, and ended") as caught:
            host.run(["sh", "-c", "echo $$; exec sleep 1000"], deadline=2.0)
        assert has_ended(int(caught.value.stdout))

    def test_sigterm_ignored_is_followed_by_sigkill(self, host: Host) -> None:
        script = "trap '' TERM; echo $$; while :; do sleep 1000; done"
        with pytest.raises(DeadlinePassed) as caught:
            host.run(["sh", "-c", script], deadline=2.0)
        assert has_ended(int(caught.value.stdout))

    def test_a_grandchild_in_a_session_of_its_own_is_found(self, host: Host) -> None:
        """As fio's forked jobs are; no process group leads to them."""
        script = "setsid sh -c 'echo $$; exec sleep 1000' & wait"
        with pytest.raises(DeadlinePassed) as caught:
            host.run(["sh", "-c", script], deadline=2.0)
        assert has_ended(int(caught.value.stdout))

    def test_a_child_without_our_mark_is_found_by_its_group(self, host: Host) -> None:
        script = "env -i /bin/sh -c 'echo $$; exec /bin/sleep 1000' & wait"
        with pytest.raises(DeadlinePassed) as caught:
            host.run(["sh", "-c", script], deadline=2.0)
        assert has_ended(int(caught.value.stdout))

    def test_a_child_left_behind_with_our_pipe_does_not_hold_us_up(self, host: Host) -> None:
        done = host.run(["sh", "-c", "sleep 1000 & echo $!"], deadline=60)
        assert done.exit_code == 0
        assert done.seconds < 30
        assert has_ended(int(done.stdout))

    def test_ctrl_c_ends_the_program_before_it_reaches_the_caller(self, host: Host) -> None:
        heard = bytearray()

        def interrupt(_stream: str, data: bytes) -> None:
            heard.extend(data)
            signal.raise_signal(signal.SIGINT)

        with pytest.raises(KeyboardInterrupt):
            host.run(["sh", "-c", "echo $$; exec sleep 1000"], deadline=60, on_output=interrupt)
        assert not Path(f"/proc/{int(heard)}").exists()

    def test_a_started_program_gives_lines_and_stops(self, host: Host) -> None:
        with host.start(["sh", "-c", "echo $$; printf part; exec sleep 1000"]) as running:
            (pid,) = running.lines(AWAIT_S)
            assert running.lines(0.0) == []
        assert running.ended
        assert has_ended(int(pid))

    def test_of_a_program_that_never_pauses_some_lines_are_left_for_the_next_call(
        self, host: Host
    ) -> None:
        with host.start(["seq", "1000000"]) as running:
            lines = running.lines(AWAIT_S, 1000)
            assert 0 < len(lines) < 100_000
            while not running.ended:
                lines += running.lines(AWAIT_S, 1000)
        assert lines == [str(number) for number in range(1, 1_000_001)]

    def test_a_started_program_that_ends_gives_its_last_line(self, host: Host) -> None:
        running = host.start(["sh", "-c", "echo one; printf two; echo three >&2; exit 4"])
        lines: list[str] = []
        while not running.ended:
            lines += running.lines(AWAIT_S)
        assert lines + running.lines(0.0) == ["one", "two"]
        assert (running.exit_code, running.stderr) == (4, b"three\n")


class TestFiles:
    def test_write_and_read(self, host: Host, tmp_path: Path) -> None:
        path, data = tmp_path / "file", os.urandom(300_000)
        host.write_file(str(path), data, mode=0o640)
        assert host.read_file(str(path)) == data
        assert path.stat().st_mode & 0o777 == 0o640
        assert host.list_dir(str(tmp_path)) == ["file"]  # no scratch file stays

    def test_a_full_disk_leaves_the_old_contents(self, host: Host, tmp_path: Path) -> None:
        if os.geteuid() != 0:
            pytest.skip("needs root to mount a small file system")
        small = tmp_path / "small"
        small.mkdir()
        subprocess.run(["mount", "-t", "tmpfs", "-o", "size=64k", "none", small], check=True)
        try:
            host.write_file(str(small / "file"), b"old")
            with pytest.raises(FileTrouble, match="No space left") as caught:
                host.write_file(str(small / "file"), bytes(1 << 20))
            assert caught.value.errno == errno.ENOSPC
            assert host.list_dir(str(small)) == ["file"]
            assert host.read_file(str(small / "file")) == b"old"
        finally:
            subprocess.run(["umount", small], check=True)

    def test_a_link_is_followed_by_write_and_told_by_read_link(
        self, host: Host, tmp_path: Path
    ) -> None:
        (tmp_path / "target").write_text("old")
        (tmp_path / "link").symlink_to("target")
        host.write_file(str(tmp_path / "link"), b"new")
        assert (tmp_path / "target").read_text() == "new"
        assert host.read_link(str(tmp_path / "link")) == "target"
        assert host.read_with_path(str(tmp_path / "link")) == (b"new", str(tmp_path / "target"))

    def test_many_in_one_round_trip(self, host: Host, tmp_path: Path) -> None:
        (tmp_path / "a").write_text("1\n")
        paths = [str(tmp_path / "a"), str(tmp_path / "missing"), str(tmp_path)]
        assert host.read_files(paths) == dict(zip(paths, [b"1\n", None, None], strict=True))

    def test_a_missing_file_is_typed(self, host: Host, tmp_path: Path) -> None:
        with pytest.raises(FileTrouble, match="No such file or directory") as caught:
            host.read_file(str(tmp_path / "missing"))
        assert caught.value.errno == errno.ENOENT
        assert not host.exists(str(tmp_path / "missing"))
        with pytest.raises(FileTrouble):
            host.write_value(str(tmp_path / "missing"), "1")

    def test_a_read_that_hangs_does_not_hang_the_others(self, host: Host, tmp_path: Path) -> None:
        fifo = tmp_path / "fifo"
        os.mkfifo(fifo)
        stuck = threading.Thread(target=host.read_file, args=(str(fifo),))
        stuck.start()
        assert host.exists("/")
        fifo.write_text("")
        stuck.join(AWAIT_S)
        assert not stuck.is_alive()

    def test_what_does_not_answer_is_named(
        self, host: Host, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        fifo = tmp_path / "fifo"
        os.mkfifo(fifo)
        monkeypatch.setattr(connection, "CALL_S", 0.3)
        with pytest.raises(DeadlinePassed, match=rf"localhost: read {fifo}: no answer in .*dmesg"):
            host.read_file(str(fifo))
        fifo.write_text("")
        monkeypatch.setattr(connection, "KILL_S", -0.7)
        with pytest.raises(DeadlinePassed, match=r"localhost: run sleep 1: no answer in"):
            host.run(["sleep", "1"], deadline=1)

    def test_the_boot_id_is_the_kernels(self, host: Host) -> None:
        assert host.boot_id() == Path("/proc/sys/kernel/random/boot_id").read_text().strip()
        assert host.alive()


@pytest.fixture
def loop_device(tmp_path: Path) -> Iterator[str]:
    if os.geteuid() != 0 or not Path("/dev/loop-control").exists():
        pytest.skip("needs root and loop devices")
    image = tmp_path / "image"
    image.write_bytes(bytes(1 << 20))
    made = subprocess.run(
        ["losetup", "--find", "--show", image], capture_output=True, text=True, check=False
    )
    if made.returncode != 0:
        pytest.skip(f"no loop device to be had: {made.stderr.strip()}")
    device = made.stdout.strip()
    yield device
    subprocess.run(["losetup", "--detach", device], check=True)


class TestDevices:
    def test_a_held_device_cannot_be_claimed_by_another(self, host: Host, loop_device: str) -> None:
        handle = host.hold_device(loop_device)
        with pytest.raises(DeviceBusy, match=f"{loop_device}.*mounted"):
            host.hold_device(loop_device)
        with pytest.raises(OSError, match="busy"):
            os.open(loop_device, os.O_RDONLY | os.O_EXCL)
        host.release_device(handle)
        host.release_device(host.hold_device(loop_device))

    def test_a_program_inherits_the_held_device(self, host: Host, loop_device: str) -> None:
        handle = host.hold_device(loop_device)
        argv = ["sh", "-c", "head -c 4096 {device} | wc -c; readlink -f $0", "{device}"]
        said = host.run(argv, deadline=10, handle=handle).stdout.decode().split()
        host.release_device(handle)
        assert said == ["4096", loop_device]

    def test_what_is_not_a_block_device_is_refused(self, host: Host, tmp_path: Path) -> None:
        (tmp_path / "file").write_text("")
        with pytest.raises(FileTrouble, match="not a block device"):
            host.hold_device(str(tmp_path / "file"))

    def test_sg_io_on_what_knows_no_scsi(self, host: Host, loop_device: str) -> None:
        handle = host.hold_device(loop_device, exclusive=False)
        with pytest.raises(FileTrouble, match=r"loop.* command 12"):
            host.sg_io(handle, bytes([0x12, 0, 0, 0, 96, 0]), 96, deadline=5)
        host.release_device(handle)

    def test_a_handle_that_was_released_is_refused(self, host: Host) -> None:
        with pytest.raises(FileTrouble, match="no such handle"):
            host.sg_io(12345, bytes(6), 8, deadline=5)

    def test_sense_data_in_both_formats(self) -> None:
        fixed = bytes([0x70, 0, 5, 0, 0, 0, 0, 10, 0, 0, 0, 0, 0x24, 0x01, 0, 0, 0, 0])
        assert decode_sense(fixed) == (5, 0x24, 0x01)
        assert decode_sense(bytes([0x72, 1, 0x00, 0x1D, 0, 0, 0, 14])) == (1, 0, 0x1D)
        assert decode_sense(b"") == (None, None, None)


class TestRequire:
    def test_versions_are_asked_once_and_kept(self, host: Host) -> None:
        version = require(host, "python3", "3.8")
        assert host.versions["python3"] == version
        host.versions["python3"] = "2.7.18"
        with pytest.raises(ProgramTooOld, match=r"python3 2\.7\.18 is too old; 3\.8 or newer"):
            require(host, "python3", "3.8")
        del host.versions["python3"]

    @pytest.mark.parametrize(
        ("said", "version"),
        [
            (b"fio-3.33\n", "3.33"),
            (b"smartctl 7.3 2022-02-28 r5338 [x86_64-linux-6.1.0]\n", "7.3"),
            (b"\nhdparm v9.65\n", "9.65"),
            (b"\nversion string: 2.31 20220209\n", "2.31"),
            (b"lsblk from util-linux 2.38.1\n", "2.38.1"),
            (b"252 (252.39-1)\n", "252.39"),
            (b"OpenSSH_9.2p1 Debian-2\n", "9.2"),
            (b"no number\n", ""),
        ],
    )
    def test_version_texts(self, said: bytes, version: str) -> None:
        assert parse_version(said) == version

    def test_a_version_that_is_told_by_the_way_is_not_asked_for(self, host: Host) -> None:
        overhear(host, "no-such-program", b"no number")
        assert "no-such-program" not in host.versions
        overhear(host, "no-such-program", b"3.33;overlap;0;0")
        assert require(host, "no-such-program", "3.16") == "3.33"
        overhear(host, "no-such-program", b"4.0")
        assert host.versions.pop("no-such-program") == "3.33"

    def test_two_digits_are_newer_than_one(self, host: Host) -> None:
        host.versions["fio"] = "3.9"
        with pytest.raises(ProgramTooOld):
            require(host, "fio", "3.10")
        host.versions["fio"] = "3.33"
        assert require(host, "fio", "3.10") == "3.33"
        del host.versions["fio"]


def test_control_characters_do_not_reach_a_terminal() -> None:
    assert printable("a\x1b[2Jb\x07\x9b\n\tç") == "a\\x1b[2Jb\\x07\\x9b\n\tç"
