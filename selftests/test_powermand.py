"""The virtual PDU as a stranger sees it: powermand drives it, as it drives the real one."""

import re
import shutil
import socket
import subprocess
from collections.abc import Iterator
from pathlib import Path

import pytest

from leadline.virtual.pdu import VirtualPdu

POWERMAND = shutil.which("powermand", path="/usr/sbin:/usr/bin:/sbin:/bin")
DESCRIPTION = Path("/etc/powerman/baytech-rpc3-nc.dev")

pytestmark = pytest.mark.skipif(
    POWERMAND is None or not DESCRIPTION.exists(),
    reason="powermand is not installed (Debian: apt install powerman)",
)


class Bench:
    """A virtual PDU, a powermand before it, and what the outlets did."""

    def __init__(self, tmp_path: Path) -> None:
        self.switched: list[tuple[int, bool]] = []
        self.pdu = VirtualPdu(8, lambda n, on: self.switched.append((n, on)), tmp_path / "pdu")
        with socket.create_server(("127.0.0.1", 0)) as probe:
            self.port = probe.getsockname()[1]
        self.config = tmp_path / "powerman.conf"
        self.config.write_text(
            f'include "{DESCRIPTION}"\n'
            f'listen "127.0.0.1:{self.port}"\n'
            f'device "pdu" "baytech-rpc3-nc" "{tmp_path / "pdu"}" "9600,8n1"\n'
            'node "hdd[1-8]" "pdu"\n'
        )

    def powerman(self, *arguments: str) -> str:
        """Run powerman; its output.  powermand listens a moment after it starts: retry that."""
        command = ["powerman", "-h", f"127.0.0.1:{self.port}", *arguments]
        for _ in range(50):
            done = subprocess.run(command, capture_output=True, text=True, timeout=30, check=False)
            if "could not connect" not in done.stderr + done.stdout:
                break
            pause(0.1)
        assert done.returncode == 0, done.stdout + done.stderr
        return done.stdout

    def shows(self, state: str) -> str:
        """The nodes that `powerman -q` lists as `state`."""
        found = re.search(rf"^{state}: *(.*?) *$", self.powerman("-q"), re.MULTILINE)
        assert found
        return found[1]


def pause(seconds: float) -> None:
    """Wait, where there is no event to wait for."""
    subprocess.run(["sleep", str(seconds)], check=True)


@pytest.fixture
def bench(tmp_path: Path) -> Iterator[Bench]:
    assert POWERMAND is not None
    bench = Bench(tmp_path)
    with bench.pdu:
        # In the foreground, so that it ends with this test.
        daemon = subprocess.Popen(
            [POWERMAND, "-f", "-c", str(bench.config)],
            stdout=subprocess.DEVNULL,
            stderr=subprocess.DEVNULL,
        )
        try:
            yield bench
        finally:
            daemon.terminate()
            daemon.wait(10)


def test_powermand_queries_and_switches(bench: Bench) -> None:
    assert bench.shows("on") == "hdd[1-8]"
    assert "completed successfully" in bench.powerman("-0", "hdd3")
    assert bench.shows("off") == "hdd3"
    bench.powerman("-1", "hdd3")
    assert bench.shows("on") == "hdd[1-8]"
    bench.powerman("-0", "hdd[1-8]")
    assert bench.shows("on") == ""
    bench.pdu.settle(5)
    assert bench.switched == [(3, False), (3, True), *((n, False) for n in range(1, 9))]


def test_powermand_cycles(bench: Bench) -> None:
    bench.powerman("-c", "hdd2")
    bench.pdu.settle(5)
    assert bench.switched == [(2, False), (2, True)]
    assert bench.shows("on") == "hdd[1-8]"


def test_powermand_believes_a_stuck_outlet(bench: Bench) -> None:
    """Why Leadline reads back: this client reports success, and the outlet is still on."""
    bench.pdu.faults.stuck.add(5)
    assert "completed successfully" in bench.powerman("-0", "hdd5")
    assert bench.shows("on") == "hdd[1-8]"
    assert bench.switched == []
