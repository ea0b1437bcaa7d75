"""A powermand of a test's own, in front of a PDU on a port of this machine."""

import re
import shutil
import socket
import subprocess
import time
from pathlib import Path
from typing import Self

import pytest

POWERMAND = shutil.which("powermand", path="/usr/sbin:/usr/bin:/sbin:/bin")
DESCRIPTIONS = Path("/etc/powerman")
LISTENS_S = 10.0

needs_powermand = pytest.mark.skipif(
    POWERMAND is None or not DESCRIPTIONS.exists(),
    reason="powermand is not installed (Debian: apt install powerman)",
)


class Powermand:
    """powermand on a loopback port, its `nodes` the PDU's plugs in order; a context manager.

    `kind` is the PDU's in powerman's own words: the name of its description.
    """

    def __init__(
        self,
        port: Path,
        folder: Path,
        kind: str = "baytech-rpc3-nc",
        nodes: str = "outlet[1-8]",
    ) -> None:
        with socket.create_server(("127.0.0.1", 0)) as probe:
            self._address = f"127.0.0.1:{probe.getsockname()[1]}"
        self._config = folder / "powerman.conf"
        self._config.write_text(
            f'include "{DESCRIPTIONS / kind}.dev"\n'
            f'listen "{self._address}"\n'
            f'device "pdu" "{kind}" "{port}" "9600,8n1"\n'
            f'node "{nodes}" "pdu"\n'
        )

    def __enter__(self) -> Self:
        assert POWERMAND is not None
        # In the foreground, so that it ends with the test.
        self._daemon = subprocess.Popen(
            [POWERMAND, "-f", "-c", str(self._config)],
            stdout=subprocess.DEVNULL,
            stderr=subprocess.DEVNULL,
        )
        return self

    def __exit__(self, *_: object) -> None:
        self._daemon.terminate()
        self._daemon.wait(10)

    def powerman(self, *arguments: str) -> str:
        """Run powerman; its output.  powermand listens a moment after it starts: retry that."""
        command = ["powerman", "-h", self._address, *arguments]
        deadline = time.monotonic() + LISTENS_S
        while True:
            done = subprocess.run(command, capture_output=True, text=True, timeout=60, check=False)
            said = done.stdout + done.stderr
            if "could not connect" not in said or time.monotonic() > deadline:
                assert done.returncode == 0, said
                return done.stdout
            time.sleep(0.1)

    def shows(self, state: str) -> str:
        """The nodes that `powerman -q` lists as `state`."""
        found = re.search(rf"^{state}: *(.*?) *$", self.powerman("-q"), re.MULTILINE)
        assert found
        return found[1]
