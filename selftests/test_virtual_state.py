"""A virtual rig's state and its server: who runs it, how far it is, what is left of it."""

import os
import queue
import signal
import subprocess
import sys
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from types import FrameType
from typing import Any

import pytest

from leadline.cli import main
from leadline.errors import RigTrouble
from leadline.inventory.rig import load_rig
from leadline.virtual import rig as virtual
from leadline.virtual.profile import digest
from leadline.virtual.server import Options, Server
from leadline.virtual.state import State, made_up
from selftests.virtual_rig_file import PROFILES, VIRTUAL, changed_rig, own_cache

__all__ = ["own_cache"]  # fixture

HOLD = """
import sys
from leadline.virtual.state import State
state = State(sys.argv[1])
assert state.take()
print("taken", flush=True)
sys.stdin.read()
"""


@contextmanager
def held(name: str) -> Iterator["subprocess.Popen[bytes]"]:
    """A process that is the server of such a rig, as far as the kernel knows."""
    with subprocess.Popen(
        [sys.executable, "-c", HOLD, name], stdin=subprocess.PIPE, stdout=subprocess.PIPE
    ) as holder:
        assert holder.stdout is not None
        assert holder.stdout.readline() == b"taken\n"
        yield holder


def test_the_kernel_knows_who_runs_a_rig() -> None:
    state = State("held")
    assert state.server() is None
    with held("held") as holder:
        assert state.server() == holder.pid
        assert state.server() == holder.pid  # asking takes nothing
        assert not state.take()
        holder.send_signal(signal.SIGKILL)
        holder.wait()
    assert state.server() is None


@pytest.mark.parametrize(
    "words",
    [
        ["--kernel-arguments", "libata.force=noncq"],
        ["--kernel-arguments", ""],
        ["--profile", f"ssd1={PROFILES / 'vssd-1.1.yaml'}"],
    ],
)
def test_a_rig_that_is_up_is_not_said_to_be_as_it_was_not_started(
    words: list[str], capsys: pytest.CaptureFixture[str]
) -> None:
    with held("virtual"):
        State("virtual").root.mkdir()
        State("virtual").write_status({"rig": "virtual", "running": True, "host": "up"})
        assert main(["virtual", "up", *words]) == 2
        assert "only when it is started: `leadline virtual down --rig" in capsys.readouterr().err


@pytest.mark.parametrize("host", ["off", "halted"])
def test_a_rig_whose_host_is_not_there_is_not_said_to_be_up(
    host: str, capsys: pytest.CaptureFixture[str]
) -> None:
    with held("virtual"):
        State("virtual").root.mkdir()
        State("virtual").write_status({"rig": "virtual", "running": True, "host": host})
        assert main(["virtual", "up"]) == 3
        assert f"is up already, and its host is {host}: switch its" in capsys.readouterr().err


def test_a_rig_that_another_brings_up_is_waited_for_and_not_for_ever(tmp_path: Path) -> None:
    rig = changed_rig(tmp_path, ("boot_deadline_s: 300", "boot_deadline_s: 2"))
    state = State(rig.name)
    booting = {"rig": rig.name, "running": True, "host": "booting"}
    with held(rig.name):
        state.root.mkdir()
        state.write_status(booting)
        begun = time.monotonic()
        later = threading.Timer(0.5, state.write_status, [booting | {"host": "up"}])
        later.start()
        assert virtual.await_boot(rig)["host"] == "up"
        assert time.monotonic() - begun >= 0.5
        later.join()
        state.write_status(booting)
        with pytest.raises(RigTrouble, match="is still booting after 2 s"):
            virtual.await_boot(rig)
    with pytest.raises(RigTrouble, match="went down just now"):
        virtual.await_boot(rig)


DEAF = """
import signal, time
signal.signal(signal.SIGTERM, signal.SIG_IGN)
time.sleep(600)
"""


def test_a_server_that_says_nothing_and_hears_nothing_is_the_rigs_trouble(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    rig = changed_rig(tmp_path, ("boot_deadline_s: 300", "boot_deadline_s: 4"))
    for name in ("_MARGIN_S", "_PROGRESS_S", "_DOWN_S"):
        monkeypatch.setattr(virtual, name, 1.0)
    with subprocess.Popen(
        [sys.executable, "-c", DEAF], stdout=subprocess.PIPE, stderr=subprocess.PIPE
    ) as server:
        try:
            with pytest.raises(RigTrouble, match="its server does not start"):
                virtual._hear(server, rig, lambda _: None)
            assert server.returncode == -signal.SIGKILL
        finally:
            server.kill()


def test_a_dead_rig_is_down_and_what_it_left_is_removed() -> None:
    state = State("dead")
    state.root.mkdir(parents=True)
    (state.root / "pdu").symlink_to("/dev/pts/nowhere")
    state.write_status({"rig": "dead", "running": True})
    assert virtual.status("dead") == {"rig": "dead", "running": False}
    assert virtual.down("dead") is False
    assert list(state.root.iterdir()) == []
    state.clear()
    assert not state.root.exists()
    assert state.take()
    state.forget()
    assert list(state.root.parent.glob("dead*")) == []


def test_what_a_dead_process_left_of_its_rig_goes_when_another_makes_one_up() -> None:
    with subprocess.Popen([sys.executable, "-c", ""]) as process:
        process.wait()
    dead, ours, users = map(State, (f"b-{process.pid}", f"b-{os.getpid()}", "b-one"))
    for state in (dead, ours, users):
        state.log.mkdir(parents=True)
        state.root.with_name(f"{state.name}.lock").touch()
    with held(dead.name):
        assert made_up("b") == ours.name
        assert dead.root.exists()  # it is going down yet
    assert made_up("b") == ours.name
    left = {path.name for path in ours.root.parent.iterdir()}
    assert left == {ours.name, f"{ours.name}.lock", "b-one", "b-one.lock"}


def test_a_drives_request_log_outlives_its_rig_and_its_data_does_not() -> None:
    medium = State("gone").medium("ssd1")
    medium.mkdir(parents=True)
    for name in ("requests.jsonl", "requests.jsonl.1", "backing", "written"):
        (medium / name).touch()
    assert virtual.down("gone") is False
    assert {path.name for path in medium.iterdir()} == {"requests.jsonl", "requests.jsonl.1"}


def test_a_signal_that_comes_while_the_server_looks_what_is_asked_does_not_hang_it() -> None:
    options = Options("", "", "", None, None, {}, tied=False)
    server = Server(load_rig(VIRTUAL), options)

    def interrupt(frame: FrameType, event: str, argument: Any) -> None:
        if frame.f_code.co_name == "_qsize":  # of a queue that holds its lock meanwhile
            server._asked.put(None)

    def look() -> None:
        sys.settrace(interrupt)
        with suppress(queue.Empty):
            server._asked.get(timeout=0.1)

    looking = threading.Thread(target=look, daemon=True)
    looking.start()
    looking.join(10)
    assert not looking.is_alive()


def test_a_second_image_of_the_revision_that_runs_is_staged(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(State, "server", lambda _: 1)
    runs, again = PROFILES / "vssd-1.0.yaml", tmp_path / "again.yaml"
    again.write_text(runs.read_text() + "# built again\n")
    state = State("virtual")
    state.root.mkdir(parents=True)
    drive = {"bus": "ahci", "firmware": "1.0", "profile_sha256": digest(runs)}
    state.write_status({"rig": "virtual", "running": True, "drives": {"ssd1": drive}})
    for image, staged in ((runs, ""), (again, "1.0")):
        virtual.flash("virtual", "ssd1", image)
        assert virtual.status("virtual")["drives"]["ssd1"]["staged"] == staged


def test_flashing_a_rig_that_is_down_is_refused() -> None:
    with pytest.raises(RigTrouble, match="is not up, so there is nothing to flash"):
        virtual.flash("virtual", "ssd1", PROFILES / "vssd-1.1.yaml")
