"""`leadline power ... cycle` killed at random moments: the next command finds the outlet.

None by default, for they take minutes, those of the host a boot or two each.  Fifty of a
drive's own outlet and three of the host's take some twenty minutes:

    LEADLINE_KILLS=50 LEADLINE_HOST_KILLS=3 \
        ./run shell pytest -s selftests/virtual/test_killed_cycles.py

Each prints when it was killed and what the next command found; LEADLINE_SEED repeats them.
"""

import os
import random
import secrets
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from pathlib import Path

import pytest

from leadline.drive.bind import scan
from leadline.host.connection import HostLost, open_host
from leadline.host.journal import dead_entries
from leadline.inventory.rig import HostSpec, Rig, load_rig
from leadline.power.outlets import ENTRY
from leadline.power.pdu import open_pdu
from leadline.virtual import rig as virtual_rig
from selftests.own_journals import LEADLINE

KILLS = int(os.environ.get("LEADLINE_KILLS", "0"))
HOST_KILLS = int(os.environ.get("LEADLINE_HOST_KILLS", "0"))
SEED = int(os.environ.get("LEADLINE_SEED") or secrets.randbits(31))
DEADLINE_S = 600.0  # with the boot of a host that does not come
SHUT_DOWN_S = 60.0  # a host that has power, and does not boot in this time, was shut down


@dataclass
class Bench:
    """A running rig, and the command line before it."""

    rig: Rig
    folder: Path
    moments: random.Random = field(default_factory=lambda: random.Random(SEED))

    @property
    def journals(self) -> str:
        return str(self.folder / "journal")

    def start(self, *words: str) -> "subprocess.Popen[str]":
        argv = [sys.executable, "-c", LEADLINE, self.journals, "power", "--rig"]
        return subprocess.Popen(
            [*argv, str(self.rig.path), *words],
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
            env={**os.environ, "XDG_STATE_HOME": str(self.folder)},
        )

    def run(self, *words: str) -> tuple[int, str]:
        """Exit code and stderr."""
        with self.start(*words) as command:
            said = command.communicate(timeout=DEADLINE_S)[1]
        return command.returncode, said

    def killed(self, outlet: str, within_s: float) -> float:
        """A cycle of that outlet, killed; how many seconds after its beginning."""
        moment = self.moments.uniform(0.0, within_s)
        with self.start(outlet, "cycle") as command:
            time.sleep(moment)  # the moment is what is tried
            command.send_signal(signal.SIGKILL)
        return moment

    def outlets_off(self) -> list[int]:
        with open_pdu(self.rig.pdus[0]) as pdu:
            return [outlet for outlet, on in pdu.status().items() if not on]

    def left_on_record(self) -> int:
        with open_host(HostSpec(reach="local")) as here:
            return len(dead_entries(here, ENTRY, directory=self.journals))

    def boots(self) -> bool:
        """Whether the host answers, or comes up by itself."""
        limit = time.monotonic() + SHUT_DOWN_S
        while time.monotonic() < limit:
            try:
                with open_host(self.rig.host, deadline=SHUT_DOWN_S):
                    return True
            except HostLost:
                time.sleep(1.0)
        return False


@pytest.fixture(scope="module")
def bench(
    make_rig: Callable[..., Path], tmp_path_factory: pytest.TempPathFactory
) -> Iterator[Bench]:
    rig = load_rig(make_rig("killed"))
    with virtual_rig.running(rig):
        print(f"\nLEADLINE_SEED={SEED}")
        yield Bench(rig, tmp_path_factory.mktemp("state"))


def found(said: str) -> str:
    """What a command says of an outlet that a dead run left."""
    words = ("is on again", "was on already")
    return next((word for word in words if word in said), "nothing on record")


@pytest.mark.skipif(not KILLS, reason="takes minutes: give LEADLINE_KILLS=2")
def test_a_cycle_of_a_drives_own_outlet(bench: Bench) -> None:
    begun = time.monotonic()
    assert bench.run("scsi1", "cycle") == (0, "")
    takes_s = time.monotonic() - begun
    seen: list[str] = []
    for number in range(KILLS):
        moment = bench.killed("scsi1", takes_s)
        code, said = bench.run("scsi1", "cycle")
        seen.append(found(said))
        print(f"{number + 1}: killed after {moment:.2f} of {takes_s:.2f} s: {seen[-1]}; {code}")
        assert bench.outlets_off() == [], said
        assert code == 0, said
        assert bench.left_on_record() == 0
    with open_host(bench.rig.host) as host:
        assert "VSCSI0001" in [disk.serial for disk in scan(host)]
    print({word: seen.count(word) for word in seen})
    assert KILLS < 20 or {"is on again", "nothing on record"} <= set(seen), "else little was tried"


@pytest.mark.skipif(not HOST_KILLS, reason="takes minutes: give LEADLINE_HOST_KILLS=3")
def test_a_cycle_of_the_host(bench: Bench) -> None:
    begun = time.monotonic()
    assert bench.run("host", "cycle") == (0, "")
    takes_s = time.monotonic() - begun
    for number in range(HOST_KILLS):
        moment = bench.killed("host", takes_s)
        code, said = bench.run("scsi1", "cycle")  # a host that boots is waited for
        print(f"{number + 1}: killed after {moment:.2f} of {takes_s:.2f} s: {found(said)}")
        assert bench.outlets_off() == [], said
        assert bench.left_on_record() == 0
        if not bench.boots():  # killed when it was shut down, and before its outlet was off
            print(f"{number + 1}: shut down, its outlet never off: cycled once more")
            assert bench.run("host", "cycle", "--yes")[0] == 0
            assert bench.boots()
        else:
            assert code == 0, said
    assert bench.run("host", "cycle") == (0, ""), "as good as ever"
