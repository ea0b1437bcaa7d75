"""A ser2net of a test's own: a serial port of this machine over telnet on loopback."""

import shutil
import socket
import subprocess
import time
from pathlib import Path
from typing import Self

SER2NET = shutil.which("ser2net", path="/usr/sbin:/usr/bin:/sbin:/bin")
LISTENS_S = 10.0
LISTENING = "0A"


class Ser2net:
    """ser2net before a port, at loopback's `port`; a context manager.

    It sends an Enter whenever somebody connects, for consoles that are silent until then.
    """

    def __init__(self, device: Path, folder: Path) -> None:
        with socket.create_server(("127.0.0.1", 0)) as probe:
            self.port = int(probe.getsockname()[1])
        self._config = folder / "ser2net.yaml"
        self._config.write_text(
            "connection: &pdu\n"
            f"  accepter: telnet,tcp,127.0.0.1,{self.port}\n"
            f"  connector: serialdev,{device},9600n81,local\n"
            "  options:\n"
            '    openstr: "\\r"\n'
        )

    def __enter__(self) -> Self:
        assert SER2NET is not None
        # In the foreground, so that it ends with the test; no lock files, for the port is a pty.
        self._daemon = subprocess.Popen(
            [SER2NET, "-n", "-u", "-c", str(self._config)],
            stdout=subprocess.DEVNULL,
            stderr=subprocess.DEVNULL,
        )
        deadline = time.monotonic() + LISTENS_S
        while not self._listens():
            assert self._daemon.poll() is None, "ser2net ended"
            assert time.monotonic() < deadline, f"ser2net does not listen after {LISTENS_S} s"
            time.sleep(0.05)
        return self

    def __exit__(self, *_: object) -> None:
        self._daemon.terminate()
        self._daemon.wait(10)

    def _listens(self) -> bool:
        """By the kernel's table: to connect would be a session of its own."""
        rows = [line.split() for line in Path("/proc/net/tcp").read_text().splitlines()[1:]]
        return any(row[1].endswith(f":{self.port:04X}") and row[3] == LISTENING for row in rows)
