"""`leadline hil` around its child: Ctrl-C and its relatives."""

import os
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Sequence

import pytest

from leadline.commands import hil
from selftests.hil_world import Vendor, vendor
from selftests.power_world import quick

__all__ = ["quick", "vendor"]  # fixtures


def test_ctrl_c_before_the_child_is_there_ends_it_at_once(
    vendor: Vendor, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(hil, "refuse_absent", lambda *_: os.kill(os.getpid(), signal.SIGINT))
    before = [signal.getsignal(number) for number in hil.Signals._NUMBERS]
    assert vendor.hil("test_all.py") == 130
    assert vendor.exit_code() == 130
    assert vendor.kept("outcomes") == []
    assert [signal.getsignal(number) for number in hil.Signals._NUMBERS] == before


def test_a_signal_while_things_are_put_back_is_heard_afterwards(
    vendor: Vendor, monkeypatch: pytest.MonkeyPatch, capfd: pytest.CaptureFixture[str]
) -> None:
    def mend(*_: object) -> list[str]:
        os.kill(os.getpid(), signal.SIGTERM)
        return ["all was put back"]

    monkeypatch.setattr(hil, "mend", mend)
    assert vendor.hil("-k", "plain", "test_all.py") == 130
    assert "all was put back" in capfd.readouterr().err
    assert vendor.exit_code() == 130


LONG = """
import os, time
from pathlib import Path
import pytest

@pytest.fixture
def borrowed(visit):
    yield
    while not Path("signals-sent").exists():
        time.sleep(0.05)
    Path("given-back").touch()

def test_long(borrowed):
    Path("session").write_text(str(os.getsid(0)))
    time.sleep(60)
"""
STEERED = """
import sys
from leadline.cli import main
from leadline.commands import hil
hil.refuse_absent = lambda *_: None
hil.mend = lambda *_: ["mended"]
sys.exit(main(sys.argv[1:]))
"""


@pytest.mark.parametrize(
    "signals",
    [[signal.SIGINT], [signal.SIGTERM], [signal.SIGHUP, signal.SIGINT, signal.SIGTERM]],
    ids=lambda signals: "-".join(number.name for number in signals),
)
def test_the_first_signal_stops_the_tests_and_others_wait(
    vendor: Vendor, signals: Sequence[signal.Signals]
) -> None:
    (vendor.folder / "test_long.py").write_text(LONG)
    words = ["hil", "--rig", "bench.yaml", "--matrix", "matrix.yaml", "-x", "test_long.py"]
    said = vendor.folder / "said"
    with said.open("w") as stderr:
        steering = subprocess.Popen(
            [sys.executable, "-c", STEERED, *words],
            stdout=subprocess.PIPE,
            stderr=stderr,
            text=True,
        )
    wait_for((vendor.folder / "session").exists)
    for heard, number in enumerate(signals):
        wait_for(lambda n=heard: said.read_text().count("leadline: ") == n)  # type: ignore[misc]
        steering.send_signal(number)
    wait_for(lambda: said.read_text().count("leadline: ") == len(signals))
    (vendor.folder / "signals-sent").touch()
    out, _ = steering.communicate(timeout=60)
    err = said.read_text()
    assert steering.returncode == 130, out + err
    assert (vendor.folder / "given-back").exists()
    assert out.count("KeyboardInterrupt") > 0
    assert "leadline: stopping; outlets and settings are put back first" in err
    assert err.count("please wait") == len(signals) - 1
    assert err.endswith("leadline: mended\n")
    assert int((vendor.folder / "session").read_text()) != os.getsid(0), "out of Ctrl-C's way"
    assert vendor.exit_code() == 130


def wait_for(done: Callable[[], bool]) -> None:
    limit = time.monotonic() + 60
    while not done():
        assert time.monotonic() < limit
        time.sleep(0.05)
