"""The virtual APC units as a stranger sees them: fence_apc drives them, through ser2net."""

import re
import shutil
import subprocess
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

import pytest

from leadline.inventory.pdu import FamilyName
from leadline.virtual.pdus import login
from leadline.virtual.pdus.apc_cli8 import Ap8900
from leadline.virtual.pdus.apc_menu import Aos2, Aos3, MasterSwitchPlus
from leadline.virtual.pdus.line import Unit
from leadline.virtual.pdus.pty import VirtualPdu
from selftests.ser2net import SER2NET, Ser2net

FENCE_APC = shutil.which("fence_apc", path="/usr/sbin:/usr/bin:/sbin:/bin")
pytestmark = pytest.mark.skipif(
    FENCE_APC is None or SER2NET is None or shutil.which("telnet") is None,
    reason="not installed (Debian: apt install fence-agents ser2net telnet)",
)
TRANSCRIPT = Path(__file__).parents[2] / "shared/pdu/transcripts/fence_apc_vs_vpdu.txt"
PROMPTS: dict[FamilyName, str] = {"apc-menu": r"\n> ", "apc-cli8": r"\napc>"}


@dataclass
class Bench:
    """A virtual unit, what its outlets did, and a ser2net before it."""

    pdu: VirtualPdu
    switched: list[tuple[int, bool]]
    ser2net: Ser2net
    prompt: str

    def fence(self, action: str, plug: int = 2) -> tuple[int, str]:
        """fence_apc's exit code and what it says, in a session of its own.

        Units log out who is idle; so does this, for fence_apc leaves `apc>` logged in.
        """
        self.pdu.dialogue.begin()
        assert FENCE_APC is not None
        done = subprocess.run(
            [
                FENCE_APC,
                "--ip=127.0.0.1",
                f"--ipport={self.ser2net.port}",
                f"--username={login.USERNAME}",
                f"--password={login.PASSWORD}",
                f"--command-prompt={self.prompt}",
                "--power-timeout=5",
                "--shell-timeout=30",
                "--login-timeout=30",
                f"--plug={plug}",
                f"--action={action}",
            ],
            capture_output=True,
            text=True,
            timeout=60,
            check=False,
        )
        return done.returncode, (done.stdout + done.stderr).strip()


@contextmanager
def bench(family: FamilyName, unit: type[Unit], folder: Path, off: int = 0) -> Iterator[Bench]:
    switched: list[tuple[int, bool]] = []
    port = folder / "pdu"
    with (
        VirtualPdu(
            8,
            lambda n, on: switched.append((n, on)),
            port,
            family=family,
            unit=unit,
            on=set(range(1, 9)) - {off},
        ) as pdu,
        Ser2net(port, folder) as ser2net,
    ):
        yield Bench(pdu, switched, ser2net, PROMPTS[family])


@pytest.mark.parametrize(
    ("family", "unit"),
    [
        ("apc-menu", Aos3),
        pytest.param("apc-menu", Aos2, marks=pytest.mark.long),
        pytest.param("apc-menu", MasterSwitchPlus, marks=pytest.mark.long),
        ("apc-cli8", Ap8900),
    ],
)
def test_fence_apc_asks_and_switches(family: FamilyName, unit: type[Unit], tmp_path: Path) -> None:
    with bench(family, unit, tmp_path) as on_line:
        assert on_line.fence("status") == (0, "Status: ON")
        assert on_line.fence("off") == (0, "Success: Powered OFF")
        assert on_line.fence("status") == (2, "Status: OFF")
        assert on_line.fence("on") == (0, "Success: Powered ON")
        on_line.pdu.settle(5)
        assert on_line.switched == [(2, False), (2, True)]


@pytest.mark.parametrize(("family", "unit"), [("apc-menu", Aos3), ("apc-cli8", Ap8900)])
def test_a_stuck_outlet_shows(family: FamilyName, unit: type[Unit], tmp_path: Path) -> None:
    with bench(family, unit, tmp_path) as on_line:
        on_line.pdu.faults.stuck.add(5)
        code, said = on_line.fence("off", plug=5)
        assert (code, on_line.pdu.contacts[5]) == (1, True)
        assert "Timed out waiting to power OFF" in said
        assert on_line.switched == []


@pytest.mark.skipif(not TRANSCRIPT.exists(), reason="the recorded dialogues are not here")
def test_it_says_what_it_said_when_it_was_recorded(tmp_path: Path) -> None:
    recorded = re.findall(
        r"--plug=(\d+) --action=(\w+).*\n(.*)\nrc=(\d+)\n", TRANSCRIPT.read_text()
    )
    assert [action for _, action, _, _ in recorded] == [
        "status", "on", "status", "off", "status", "reboot",
    ]  # fmt: skip
    with bench("apc-menu", Aos3, tmp_path, off=2) as on_line:
        for plug, action, said, code in recorded:
            assert on_line.fence(action, int(plug)) == (int(code), said)
