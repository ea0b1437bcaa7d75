"""What happens to programs and callers when the connection ends, whoever ends it."""

import json
import os
import select
import signal
import subprocess
import sys
import threading
import time
from pathlib import Path

import pytest

from leadline.host import wire
from leadline.host.agent_bytes import unpack
from leadline.host.connection import FileTrouble, Host, HostLost, Running, open_host
from leadline.host.wire import BOOTSTRAP, agent_source
from leadline.inventory.rig import HostSpec
from selftests.local_hosts import AWAIT_S, directory, host

__all__ = ["directory", "host"]  # fixtures

SLEEPERS = {
    "plain": "echo $$; exec sleep 1000",
    "ignores SIGTERM": "trap '' TERM; echo $$; while :; do sleep 1000; done",
    "a session of its own": "setsid sh -c 'echo $$; exec sleep 1000' & wait",
}


def start_sleeper(host: Host, script: str) -> tuple[Running, int]:
    running = host.start(["sh", "-c", script])
    (pid,) = running.lines(AWAIT_S)
    return running, int(pid)


def agent_pid(running_pid: int) -> int:
    """The agent is the parent of a program's session leader."""
    fields = Path(f"/proc/{running_pid}/stat").read_text().rpartition(")")[2].split()
    return int(fields[1])


def has_ended(pid: int, within: float = AWAIT_S) -> bool:
    """Whether it ends in time; an orphan may stay a zombie until init cares."""
    try:
        fd = os.pidfd_open(pid)
    except ProcessLookupError:
        return True
    try:
        return bool(select.select([fd], [], [], within)[0])
    finally:
        os.close(fd)


@pytest.mark.parametrize("script", SLEEPERS.values(), ids=SLEEPERS.keys())
def test_closing_ends_programs_before_it_returns(host: Host, script: str) -> None:
    _, pid = start_sleeper(host, script)
    host.close()
    assert has_ended(pid, within=0)
    with pytest.raises(HostLost, match="was closed"):
        host.exists("/")


@pytest.mark.parametrize("script", SLEEPERS.values(), ids=SLEEPERS.keys())
def test_a_killed_agents_guardian_ends_its_programs(host: Host, script: str) -> None:
    _, leader = start_sleeper(host, SLEEPERS["plain"])
    _, pid = start_sleeper(host, script)
    os.kill(agent_pid(leader), signal.SIGKILL)
    assert has_ended(pid)


def test_a_killed_agent_is_noticed_at_once_by_everyone_who_waits(host: Host) -> None:
    running, pid = start_sleeper(host, SLEEPERS["plain"])
    lost: list[HostLost] = []

    def wait_for_a_program() -> None:
        try:
            host.run(["sleep", "1000"], deadline=2000)
        except HostLost as error:
            lost.append(error)

    waiting = threading.Thread(target=wait_for_a_program)
    waiting.start()
    os.kill(agent_pid(pid), signal.SIGKILL)
    waiting.join(AWAIT_S)
    assert len(lost) == 1
    with pytest.raises(HostLost, match="agent ended"):
        running.lines(AWAIT_S)
    assert not host.alive()
    host.reconnect(AWAIT_S)
    assert host.run(["echo", "back"], deadline=AWAIT_S).stdout == b"back\n"


def test_a_handle_of_the_connection_before_is_no_others(host: Host, directory: str) -> None:
    """Who lets an old one go would free a lease or a journal that has its number by now."""
    old = host.hold_device("/dev/null", exclusive=False)
    host.reconnect(AWAIT_S)
    handle = host.lock_file(f"{directory}/journal", shared=False)
    with pytest.raises(FileTrouble, match="no such handle"):
        host.release_device(old)
    assert isinstance(handle, int)
    host.append(handle, b"still ours")


def test_an_agent_that_hears_nothing_for_long_ends_its_programs() -> None:
    """As when the steering machine was unplugged: no end of file ever comes."""
    source = agent_source().replace(b"SILENCE_S = 60.0", b"SILENCE_S = 3.0")
    sleeper = {"argv": ["sh", "-c", SLEEPERS["plain"]], "input": {"b": ""}}
    request = {"id": 1, "op": "run", "deadline": None, "handle": None, "sample": None, **sleeper}
    with subprocess.Popen(
        [sys.executable, "-IS", "-c", BOOTSTRAP], stdin=subprocess.PIPE, stdout=subprocess.PIPE
    ) as agent:
        assert agent.stdin
        assert agent.stdout
        agent.stdin.write(b"%d\n%s" % (len(source), source))
        agent.stdin.flush()
        assert b"hello" in agent.stdout.readline()
        agent.stdin.write(json.dumps(request).encode() + b"\n")
        agent.stdin.flush()
        pid = int(unpack(json.loads(agent.stdout.readline())["stdout"]))
        assert has_ended(pid)
        assert agent.wait(AWAIT_S) == 0


def test_what_a_slow_line_has_not_taken_when_the_program_ends_is_not_lost() -> None:
    """More than the pipe to ssh holds: nobody reads that for a second."""
    source = agent_source().replace(b"DRAIN_S = 0.5", b"DRAIN_S = 0.05")
    speaker = {"argv": ["head", "-c", "120000", "/dev/urandom"], "input": {"b": ""}}
    request = {"id": 1, "op": "run", "deadline": 60, "handle": None, "sample": None, **speaker}
    with subprocess.Popen(
        [sys.executable, "-IS", "-c", BOOTSTRAP], stdin=subprocess.PIPE, stdout=subprocess.PIPE
    ) as agent:
        assert agent.stdin
        assert agent.stdout
        agent.stdin.write(b"%d\n%s" % (len(source), source))
        agent.stdin.flush()
        assert b"hello" in agent.stdout.readline()
        agent.stdin.write(json.dumps(request).encode() + b"\n")
        agent.stdin.flush()
        time.sleep(1.0)
        size = 0
        while "done" not in (message := json.loads(agent.stdout.readline())):
            size += len(unpack(message["stdout"]))
        agent.stdin.close()
        assert agent.wait(AWAIT_S) == 0
    assert size == 120_000


USER = """
import sys
from leadline.host.agent_bytes import unpack
from leadline.host.connection import open_host
from leadline.host.wire import BOOTSTRAP, agent_source
from leadline.inventory.rig import HostSpec
with open_host(HostSpec(reach="local")) as host:
    try:
        host.run(["sh", "-c", sys.argv[1]], deadline=1000,
                 on_output=lambda stream, data: print(data.decode(), end="", flush=True))
    except KeyboardInterrupt:
        print(host.run(["echo", "still connected"], deadline=10).stdout.decode(), end="")
        raise
"""


@pytest.mark.parametrize("script", SLEEPERS.values(), ids=SLEEPERS.keys())
def test_a_killed_caller_leaves_no_program(script: str) -> None:
    with subprocess.Popen(
        [sys.executable, "-c", USER, script], stdout=subprocess.PIPE, text=True
    ) as user:
        assert user.stdout
        pid = int(user.stdout.readline())
        user.kill()
        assert has_ended(pid)


def test_a_terminals_ctrl_c_reaches_the_caller_and_not_its_connection() -> None:
    """SIGINT to the whole process group, as a terminal sends it."""
    with subprocess.Popen(
        [sys.executable, "-c", USER, SLEEPERS["plain"]],
        stdout=subprocess.PIPE,
        stderr=subprocess.DEVNULL,
        text=True,
        start_new_session=True,
    ) as user:
        assert user.stdout
        pid = int(user.stdout.readline())
        os.killpg(user.pid, signal.SIGINT)
        assert has_ended(pid)
        assert user.stdout.read() == "still connected\n"
        assert user.wait(AWAIT_S) == -signal.SIGINT


MUTE = """\
import sys, time
sys.stdin.buffer.read(int(sys.stdin.buffer.readline()))
print('{"hello":{}}', flush=True)
time.sleep(1000)
"""


def test_a_rig_that_answers_no_ping_is_lost_though_ssh_does_not_say_so(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """As behind a shared connection without keepalive: every call would meet its own deadline."""
    monkeypatch.setattr(wire, "PULSE_S", 0.3)
    ended = HostLost("it ended")
    mute = wire.Wire([sys.executable, "-c", MUTE], "rig", lambda *_: ended, AWAIT_S)
    call = mute.begin("read", path="/x")
    with pytest.raises(HostLost, match=r"rig: nothing was heard of it .*powered on") as lost:
        list(call.messages(time.monotonic() + AWAIT_S))
    assert lost.value.reason == "timeout"
    with pytest.raises(HostLost, match="nothing was heard"):
        mute.begin("read", path="/x")
    mute.close()


def test_one_that_has_nothing_to_say_but_to_pings_is_not_lost(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(wire, "PULSE_S", 0.5)
    with open_host(HostSpec(reach="local")) as quiet:
        time.sleep((wire.UNANSWERED + 3) * 0.5)
        assert quiet.exists("/")
