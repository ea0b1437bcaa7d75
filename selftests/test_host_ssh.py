"""What ssh says when it cannot reach a rig, and what we make of it.

The texts are OpenSSH's own.  ``virtual/test_host_over_ssh.py`` has the real server.
"""

import os
import signal
import socket
import subprocess
import sys
import threading
from pathlib import Path

import pytest

from leadline.errors import RigTrouble
from leadline.host.connection import DeadlinePassed, HostLost, ProgramMissing, open_host
from leadline.host.ssh import by_hand, command, explain
from leadline.host.wire import BOOTSTRAP, NOISE_BYTES, Wire
from leadline.inventory.rig import HostSpec

AWAIT_S = 15.0

CHANGED = """\
@@@@@@@@@@@@@@@@@@@@@@@@@@@@@@@@@@@@@@@@@@@@@@@@@@@@@@@@@@@
@    WARNING: REMOTE HOST IDENTIFICATION HAS CHANGED!     @
@@@@@@@@@@@@@@@@@@@@@@@@@@@@@@@@@@@@@@@@@@@@@@@@@@@@@@@@@@@
Someone could be eavesdropping on you right now (man-in-the-middle attack)!
Please contact your system administrator.
Add correct host key in /home/ann/.ssh/known_hosts to get rid of this message.
Offending ED25519 key in /home/ann/.ssh/known_hosts:7
Host key for bench-a has changed and you have requested strict checking.
Host key verification failed.
"""
SUGGESTED = CHANGED.replace(
    "Host key for",
    "  remove with:\n"
    '  ssh-keygen -f "/home/ann/.ssh/known_hosts" -R "[bench-a]:2222"\n'
    "Host key for",
)
UNKNOWN = """\
No ED25519 host key is known for bench-a and you have requested strict checking.
Host key verification failed.
"""


@pytest.mark.parametrize(
    ("said", "reason", "expected"),
    [
        (CHANGED, "host-key-changed", "ssh-keygen -f /home/ann/.ssh/known_hosts -R bench-a"),
        (SUGGESTED, "host-key-changed", '-R "[bench-a]:2222"'),
        (UNKNOWN, "host-key-unknown", "log in once by hand"),
        ("root@bench-a: Permission denied (publickey).", "permission", "does not let root in"),
        ("Permission denied (publickey,password).", "permission", "does not let you in"),
        ("ssh: connect to host a port 22: Connection refused", "refused", "is sshd running"),
        ("ssh: Could not resolve hostname a: Name or service not known", "name", "is unknown"),
        ("ssh: connect to host a port 22: Connection timed out", "timeout", "powered on"),
        ("ssh: connect to host a port 22: No route to host", "timeout", "powered on"),
        ("Timeout, server bench-a not responding.", "timeout", "powered on"),
        ("bash: x: Permission denied\nTimeout, server a not responding.", "timeout", "powered on"),
        ("/x: line 1: Bad configuration option: foo", "configuration", "correct the file"),
        ("Connection closed by 192.0.2.1 port 22", "ended", "exit code 255"),
    ],
)
def test_each_complaint_has_a_reason_and_a_remedy(said: str, reason: str, expected: str) -> None:
    error = explain("root@bench-a", Path("/rigs/ssh config"), 255, said)
    assert isinstance(error, HostLost)
    assert error.reason == reason
    assert expected in str(error)
    assert "try by hand: ssh -F '/rigs/ssh config' root@bench-a true" in str(error)
    assert said.strip().splitlines()[-1] in str(error)  # ssh's own words are kept


@pytest.mark.parametrize(
    ("code", "said"),
    [
        (127, "bash: line 1: exec: python3: not found"),
        (127, "sh: 1: exec: python3: not found"),
        (1, "zsh:1: command not found: python3\nexec: python3: not found"),
    ],
)
def test_a_rig_without_python_names_the_package(code: int, said: str) -> None:
    error = explain("bench-a", None, code, said)
    assert isinstance(error, ProgramMissing)
    assert "apt install python3" in str(error)


def test_a_rig_with_an_old_python_says_so() -> None:
    error = explain("bench-a", None, 1, "python3 too old: 3.6.8\n")
    assert isinstance(error, RigTrouble)
    assert "3.8 or newer is needed\n    python3 too old: 3.6.8" in str(error)


def test_what_the_other_side_says_is_untrusted() -> None:
    error = explain("bench-a", None, 255, "\x1b]0;owned\x07 Connection refused")
    assert "\x1b" not in str(error)
    assert "\x07" not in str(error)


def test_the_users_configuration_holds() -> None:
    """Only what must be is overridden; host keys are never waved through."""
    line = " ".join(command("bench-a", Path("/c"), fresh=False))
    assert line.startswith("ssh -F /c -T ")
    assert line.endswith(" -- bench-a")
    for option in ("BatchMode=yes", "ServerAliveInterval=5", "ServerAliveCountMax=3"):
        assert option in line
    for option in ("StrictHostKeyChecking", "UserKnownHostsFile", "ProxyJump", "IdentityFile"):
        assert option not in line
    assert "ControlPath=none" in command("bench-a", None, fresh=True)
    assert by_hand("bench-a", None) == "ssh bench-a true"


def closed_port() -> int:
    with socket.socket() as taken:
        taken.bind(("127.0.0.1", 0))
        return int(taken.getsockname()[1])


def test_a_real_refusal(tmp_path: Path) -> None:
    config = tmp_path / "ssh_config"
    config.write_text(f"Host bench\n  HostName 127.0.0.1\n  Port {closed_port()}\n")
    with pytest.raises(HostLost, match="refuses the connection") as caught:
        open_host(HostSpec(reach="ssh", address="bench", ssh_config=config))
    assert caught.value.reason == "refused"


def test_a_real_mistake_in_the_configuration(tmp_path: Path) -> None:
    config = tmp_path / "ssh_config"
    config.write_text("Host bench\n  NoSuchOption yes\n")
    with pytest.raises(HostLost, match="Bad configuration option") as caught:
        open_host(HostSpec(reach="ssh", address="bench", ssh_config=config))
    assert caught.value.reason == "configuration"


def test_a_host_that_accepts_and_says_nothing_meets_the_deadline(tmp_path: Path) -> None:
    with socket.create_server(("127.0.0.1", 0)) as silent:
        config = tmp_path / "ssh_config"
        port = silent.getsockname()[1]
        config.write_text(f"Host bench\n  HostName 127.0.0.1\n  Port {port}\n")
        with pytest.raises(DeadlinePassed, match=r"no answer within 0\.5 s"):
            open_host(HostSpec(reach="ssh", address="bench", ssh_config=config), deadline=0.5)


def test_no_ssh_on_this_machine(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setenv("PATH", str(tmp_path))
    with pytest.raises(ProgramMissing, match="apt install openssh-client"):
        open_host(HostSpec(reach="ssh", address="bench"))


def lost(code: int | None, said: str) -> RigTrouble:
    return HostLost(f"ended with {code}: {said}")


def test_what_a_login_shell_prints_first_is_skipped() -> None:
    script = 'echo "Welcome to bench-a"; printf "{"; echo; exec "$0" -IS -c "$1"'
    wire = Wire(["sh", "-c", script, sys.executable, BOOTSTRAP], "bench-a", lost, AWAIT_S)
    assert wire.hello["pid"] > 0
    wire.close()


def test_what_ssh_left_behind_with_its_stderr_does_not_hold_up_the_end(tmp_path: Path) -> None:
    """As an older OpenSSH leaves the master of a shared connection to a jump host."""
    script = 'sleep 1000 </dev/null >/dev/null & echo $! >"$2"; exec "$0" -IS -c "$1"'
    left = tmp_path / "pid"
    argv = ["sh", "-c", script, sys.executable, BOOTSTRAP, str(left)]
    wire = Wire(argv, "bench-a", lost, AWAIT_S)
    closing = threading.Thread(target=wire.close, daemon=True)
    closing.start()
    closing.join(AWAIT_S)
    held_up = closing.is_alive()
    os.kill(int(left.read_text()), signal.SIGKILL)
    assert not held_up


def test_a_host_that_never_stops_printing_is_given_up() -> None:
    with pytest.raises(HostLost):
        Wire(["yes", "x" * (NOISE_BYTES // 64)], "bench-a", lost, AWAIT_S)


def test_a_rig_that_logs_in_and_ends_is_lost_with_its_words() -> None:
    with pytest.raises(HostLost, match="ended with 7: no login today"):
        Wire(["sh", "-c", "echo no login today >&2; exit 7"], "bench-a", lost, AWAIT_S)


def test_the_bootstrap_may_stand_in_any_shells_single_quotes() -> None:
    """It is the one thing that a remote shell reads: no quote, dollar, backslash or bang."""
    assert not set("'$\\!`\n") & set(BOOTSTRAP)
    done = subprocess.run(
        ["sh", "-c", f"exec '{sys.executable}' -IS -c '{BOOTSTRAP}'"],
        input=b"11\nprint('ok')",
        capture_output=True,
        check=False,
    )
    assert done.stdout == b"ok\n"
