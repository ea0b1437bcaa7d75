"""A drive model that is not ours: the one of docs/how-to/bring-a-drive-model.md, on nbdkit."""

import re
import subprocess
import tempfile
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from leadline.errors import RigTrouble
from leadline.inventory.rig import load_rig
from leadline.virtual import rig as virtual
from selftests.foreign import found, needs
from selftests.virtual.conftest import RIGS
from selftests.virtual.test_hil import hil, outcomes

pytestmark = [pytest.mark.timeout(900), pytest.mark.measures, needs("nbdkit")]

MakeRig = Callable[..., Path]
PAGE = Path(__file__).parents[2] / "docs" / "how-to" / "bring-a-drive-model.md"
STARTS_S = 30.0
PROFILE = f"profile: {RIGS}/profiles/vssd-1.0.yaml"
FLASH = re.compile(r"    flash:\n(?:      .*\n)+")


@contextmanager
def served(*parameters: str) -> Iterator[str]:
    """The page's model, served by nbdkit; its URI."""
    (script,) = re.findall(r"```python\n(.*?)```", PAGE.read_text(), re.DOTALL)
    program = found("nbdkit")
    assert program is not None
    with tempfile.TemporaryDirectory() as folder:  # of a short name, as a socket's has to be
        plugin, socket = Path(folder, "banks.py"), Path(folder, "banks.sock")
        plugin.write_text(script)
        command = [program, "--foreground", "--threads", "32", "--unix", str(socket), "python"]
        command += [str(plugin), *parameters]
        with subprocess.Popen(command, stderr=subprocess.PIPE, text=True) as server:
            try:
                wait_for(socket, server)
                yield f"nbd+unix:///?socket={socket}"
            finally:
                server.terminate()
                server.communicate(timeout=STARTS_S)


def wait_for(socket: Path, server: "subprocess.Popen[str]") -> None:
    deadline = time.monotonic() + STARTS_S
    while not socket.exists():
        if server.poll() is not None:
            pytest.fail(f"nbdkit does not start: {server.communicate()[1]}")
        assert time.monotonic() < deadline
        time.sleep(0.05)


def rig_on(make_rig: MakeRig, name: str, uri: str) -> Path:
    (flash,) = FLASH.findall((RIGS / "virtual.yaml").read_text())
    return make_rig(name, (PROFILE, f"medium: {uri}"), (flash, ""))


def test_a_foreign_model_is_bound_cycled_and_judged(make_rig: MakeRig, tmp_path: Path) -> None:
    with served() as uri:
        code, summary, said = hil(rig_on(make_rig, "banks", uri), tmp_path, "-k", "VSSD")
    assert code == 0, said
    found_out = outcomes(summary)
    assert set(found_out.values()) <= {"pass", "skipped"}
    assert found_out["ssd1 1.0", "depth_8_over_depth_1"] == "pass"
    assert found_out["ssd1 1.0", "drive_comes_back_as_itself"] == "pass"
    (ratio,) = [v for v in summary["verdicts"] if v["unit"] == "pair"]
    # It is settled as soon as it is above 3, by few pairs: its interval holds the truth, about 4.5.
    assert ratio["low"] < 5.5
    assert ratio["high"] > 3.5


@pytest.mark.long
def test_a_foreign_model_that_serialises_is_found_out(make_rig: MakeRig, tmp_path: Path) -> None:
    with served("banks=1") as uri:
        rig = rig_on(make_rig, "bank", uri)
        code, summary, said = hil(rig, tmp_path, "-k", "VSSD and depth_8")
    assert code == 1, said
    assert outcomes(summary)["ssd1 1.0", "depth_8_over_depth_1"] == "fail"
    (ratio,) = [v["estimate"] for v in summary["verdicts"] if v["unit"] == "pair"]
    assert ratio < 2


def test_an_export_that_nobody_serves_is_the_rigs_trouble(
    make_rig: MakeRig, tmp_path: Path
) -> None:
    rig = load_rig(rig_on(make_rig, "nobody", f"nbd+unix:///?socket={tmp_path}/nobody.sock"))
    with pytest.raises(RigTrouble, match=r"nobody\.sock"):
        virtual.up(rig, say=lambda _: None)
