"""A flash that is killed, and what the next commands make of it; and what an AHCI drive refuses.

With pytest's -s, what each command says is seen.
"""

import hashlib
import os
import re
import signal
import subprocess
import sys
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

import pytest

from leadline.drive.bind import bind
from leadline.host.connection import open_host
from leadline.inventory.rig import HostSpec, Rig, load_rig
from leadline.virtual import rig as virtual
from selftests.virtual.conftest import RIGS, MakeRig

DEADLINE_S = 240.0
FLASH = re.compile(r"    flash:\n(?:      .*\n)+")
# What was killed in a flash is heeded by its serial number, which other tests' drives have.
SERIAL = "VSCSI0091"
# A vendor's program: the image is staged in the drive; where a file says so, it then hangs.
PROGRAM = """\
#!/bin/sh
{leadline} virtual flash "$@" || exit
[ -e {hang} ] || exit 0
echo staged > {begun}
exec cat {begun}
"""


@dataclass
class Bench:
    """A running rig whose SCSI drive has a flash program that hangs when it is to."""

    rig: Path
    matrix: Path
    folder: Path

    def start(self, *words: str, rig: Path | None = None) -> "subprocess.Popen[str]":
        command, *rest = words
        argv = [sys.executable, "-m", "leadline.cli", command, "--rig", str(rig or self.rig)]
        argv += ["--matrix", str(self.matrix), "--results", str(self.folder / "results")]
        pipe = subprocess.PIPE
        return subprocess.Popen([*argv, *rest], stdout=pipe, stderr=pipe, text=True)

    def run(self, *words: str, rig: Path | None = None) -> tuple[int, str]:
        """Exit code, and everything that was said."""
        with self.start(*words, rig=rig) as command:
            out, said = command.communicate(timeout=DEADLINE_S)
        print(f"$ leadline {' '.join(words)}\n{out}{said}")
        return command.returncode, out + said

    def kill_in_the_flash(self) -> None:
        """`leadline flash` of the SCSI drive, killed when its program has staged the image."""
        (self.folder / "hang").touch()
        os.mkfifo(self.folder / "begun")
        with self.start("flash", "scsi1", "1.1") as command:
            (self.folder / "begun").read_text()  # waits for it
            command.send_signal(signal.SIGKILL)
            command.communicate(timeout=DEADLINE_S)
        (self.folder / "hang").unlink()
        (self.folder / "begun").unlink()

    def firmware(self, slot: str) -> str:
        rig = load_rig(self.rig)
        with open_host(rig.host) as host:
            return bind(host, rig.drive(slot), any_firmware=True).identity.firmware


def matrix_in(folder: Path) -> Path:
    """The packaged matrix, with a firmware 1.1 of the SCSI drive, whose serial number is its own.

    The firmwares of that drive, which are its profiles, are in the folder, too.
    """
    packaged = (RIGS / "profiles/vscsi-1.0.yaml").read_text()
    assert "VSCSI0001" in packaged
    released = packaged.replace("VSCSI0001", SERIAL)
    profile = released.replace('"1.0"', '"1.1"')
    (folder / "vscsi-1.0.yaml").write_text(released)
    (folder / "vscsi-1.1.yaml").write_text(profile)
    sha256 = _sha256(profile)
    text = (RIGS.parent / "firmware_matrix.yaml").read_text()
    text = text.replace("image: rigs/", f"image: {RIGS}/")
    text = text.replace(f"{RIGS}/profiles/vscsi-1.0.yaml", "vscsi-1.0.yaml")
    text = text.replace(_sha256(packaged), _sha256(released))
    # Of whole blocks, as an image that is downloaded has to be.
    old = (RIGS / "profiles/vssd-1.1.yaml").read_bytes()
    (folder / "vssd-1.1.yaml").write_bytes(blocks := old + b"\n" * (-len(old) % 512))
    text = text.replace(f"{RIGS}/profiles/vssd-1.1.yaml", "vssd-1.1.yaml")
    text = text.replace(hashlib.sha256(old).hexdigest(), hashlib.sha256(blocks).hexdigest())
    first = text.index("\n", text.index("sha256:", text.index("model: LEADLINE VSCSI"))) + 1
    more = (
        '      - revision: "1.1"\n        status: candidate\n'
        f"        image: vscsi-1.1.yaml\n        sha256: {sha256}\n"
    )
    path = folder / "matrix.yaml"
    path.write_text(text[:first] + more + text[first:])
    return path


def _sha256(text: str) -> str:
    return hashlib.sha256(text.encode()).hexdigest()


@pytest.fixture(scope="module")
def bench(make_rig: MakeRig, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Bench]:
    folder = tmp_path_factory.mktemp("flash")
    program = folder / "flasher"
    leadline = f"{sys.executable} -m leadline.cli"
    files = {name: folder / name for name in ("hang", "begun")}
    program.write_text(PROGRAM.format(leadline=leadline, **files))
    program.chmod(0o755)
    (ssd,) = FLASH.findall((RIGS / "virtual.yaml").read_text())
    words = f'[{program}, "{{rig}}", "{{slot}}", "{{image}}"]'
    scsi = f"    flash: {{command: {words}, runs_on: here, activates: power-cycle}}\n"
    model = "    model: LEADLINE VSCSI\n"
    matrix = matrix_in(folder)
    rig = make_rig(
        "flash",
        (ssd, "    flash: allowed\n"),
        (model, model + scsi),
        ("VSCSI0001", SERIAL),
        (f"profile: {RIGS}/profiles/vscsi-1.0.yaml", f"profile: {folder}/vscsi-1.0.yaml"),
    )
    with virtual.running(load_rig(rig)):
        yield Bench(rig, matrix, folder)


def test_the_next_run_says_what_state_the_drive_is_in_and_what_to_do(bench: Bench) -> None:
    """It shows the old firmware, and would come up with the new one: so it is not tested."""
    bench.kill_in_the_flash()
    assert bench.firmware("scsi1") == "1.0"
    code, said = bench.run("hil", "-k", "VSCSI-1.0 and matches_rig_file")
    assert code == 3, said
    finish = f"leadline flash --rig {bench.rig} scsi1 --resume --allow-flash"
    assert "ended while the image was sent to it, from firmware 1.0 to 1.1" in said
    assert "it runs 1.0, and may hold 1.1, to be taken up at its next power-on" in said
    assert finish in said
    code, said = bench.run("flash", "scsi1", "--resume", "--allow-flash")
    assert code == 0, said
    assert f"scsi1: {SERIAL} runs 1.1, and ran 1.0" in said
    assert bench.firmware("scsi1") == "1.1"


def test_a_run_puts_the_drive_back_on_the_firmware_it_came_with(bench: Bench) -> None:
    code, said = bench.run("hil", "-k", "VSCSI-1.1 and matches_rig_file")
    assert code == 0, said
    assert "slot scsi1 of rig" in said
    assert "goes back to firmware 1.0, with which it came" in said
    assert bench.firmware("scsi1") == "1.0"


def test_what_an_ahci_drive_refuses_is_explained(bench: Bench) -> None:
    """The kernel's libata answers for it; by hdparm, the drive itself."""
    code, said = bench.run("flash", "ssd1", "1.1", "--allow-flash")
    assert code == 2, said
    assert "DOWNLOAD MICROCODE was refused before it reached the drive" in said
    assert "(ahci), translates no WRITE BUFFER" in said
    assert "Invalid opcode" in said or "Invalid command operation code" in said
    assert "the drive: it still runs 1.0" in said
    by_hdparm = bench.folder / "hdparm.yaml"
    text = bench.rig.read_text()
    assert "flash: allowed" in text
    by_hdparm.write_text(text.replace("flash: allowed", "flash: {method: hdparm}"))
    code, said = bench.run("flash", "ssd1", "1.1", "--allow-flash", rig=by_hdparm)
    assert code == 2, said
    assert "takes no DOWNLOAD MICROCODE: its IDENTIFY DEVICE data has it as not supported" in said
    assert "DOWNLOAD_MICROCODE: not supported by device" in said, "hdparm has asked it"
    assert "the drive: it still runs 1.0" in said
    code, said = bench.run("hil", "-k", "VSSD-1.0 and matches_rig_file")
    assert code == 0, "and it is in no doubt"


def test_nothing_is_left_on_the_rig(bench: Bench) -> None:
    rig: Rig = load_rig(bench.rig)
    with open_host(rig.host) as host:
        assert host.list_dir(f"{host.state_directory()}/images") == []
    with open_host(HostSpec(reach="local")) as here:
        assert not [name for name in _journals(here.state_directory()) if _mentions(name)]


def _journals(state: str) -> list[Path]:
    folder = Path(state, "journal")
    return list(folder.iterdir()) if folder.exists() else []


def _mentions(path: Path) -> bool:
    return SERIAL in path.read_text()
