"""The kernel's scsi_debug takes downloads by the real sg_write_buffer, in every mode that we use.

It answers every mode of WRITE BUFFER with GOOD, tells of modes 5 and 7 by a unit attention
(MICROCODE HAS BEEN CHANGED WITHOUT RESET), and shows whatever revision its parameter says; with
its option 1 it logs each command.  So what reaches a drive is seen here, and a drive that takes
up what it was sent is played by writing that parameter.
"""

import hashlib
import re
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

import pytest

from leadline.drive.ask import READ_CAPACITY_16
from leadline.drive.bind import Drive, bind, scan
from leadline.drive.microcode import Image, activate, download
from leadline.errors import DriveFault, Misuse
from leadline.flashing import flash
from leadline.host import journal
from leadline.host.connection import CommandRefused, Host, open_host
from leadline.inventory.flash import FlashSpec
from leadline.inventory.rig import DriveSpec
from leadline.live import Live
from leadline.results.record import Record
from leadline.station import Station
from leadline.visiting import OpenVisit
from selftests.quick_guest import Guest, booted, scsi, shell, spec_of
from selftests.visit_world import make_run

CHANGED = (0x6, 0x3F, 0x16)
CHUNK = 4096
IMAGE = Image("microcode.bin", bytes(range(256)) * 39)  # two chunks and a part
PARAMETERS = "/sys/module/scsi_debug/parameters"
# What activates what was saved is played here, after the real program has been told to.
PLAYED = """\
#!/bin/sh
/usr/bin/sg_write_buffer "$@" || exit
case "$*" in *--mode=15*) printf 0192 >{parameters}/inq_rev;; esac
"""
RIG = """\
rig: guest
host: {{reach: ssh, address: guest, ssh_config: {config}}}
controllers: [{{name: c, driver: scsi_debug}}]
drives:
  - {{slot: d, model: Linux scsi_debug, serial: "{serial}", firmware: "0191", controller: c,
     protocol: scsi, ready_s: 5, flash: {{mode: 0xe, activates: at-once}}}}
"""
MATRIX = """\
classes: {{}}
models:
  - model: Linux scsi_debug
    class: ssd
    protocol: scsi
    queue_depth: 32
    firmware:
      - {{revision: "0191", status: released, image: microcode.bin, sha256: {sha256}}}
      - {{revision: "0192", status: candidate, image: microcode.bin, sha256: {sha256}}}
"""


@pytest.fixture(scope="module")
def guest(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Guest]:
    folder = tmp_path_factory.mktemp("microcode")
    with booted(folder, [scsi(folder, "VSCSI0001", 0)]) as running:
        yield running


@pytest.fixture(scope="module")
def host(guest: Guest) -> Iterator[Host]:
    with open_host(guest.spec) as opened:
        yield opened


@pytest.fixture
def debug(host: Host) -> Iterator[Drive]:
    """A drive of scsi_debug, fresh, and its commands logged."""
    shell(host, "modprobe scsi_debug dev_size_mb=8 opts=1; udevadm settle")
    (seen,) = [disk for disk in scan(host) if disk.model.endswith("scsi_debug")]
    spec = DriveSpec(
        slot="d",
        model="Linux scsi_debug",
        serial=seen.serial,
        firmware="0191",
        controller="c",
        protocol="scsi",
    )
    drive = bind(host, spec)
    shell(host, "dmesg --clear")
    yield drive
    # udev looks at a device whenever it has been closed, and keeps it busy for that moment.
    shell(host, "until modprobe -r scsi_debug 2>&1; do udevadm settle; done")
    shell(host, "rm -f /usr/local/bin/sg_write_buffer")


def written(host: Host) -> list[tuple[int, int, int]]:
    """The WRITE BUFFER commands that reached the drive: mode, offset, length (SPC-4)."""
    found = re.findall(r"cmd ((?:[0-9a-f]{2} ){9}[0-9a-f]{2})", shell(host, "dmesg"))
    cdbs = [bytes.fromhex(text) for text in found]
    return [
        (cdb[1], int.from_bytes(cdb[3:6], "big"), int.from_bytes(cdb[6:9], "big"))
        for cdb in cdbs
        if cdb[0] == 0x3B
    ]


def attention(host: Host, handle: int) -> tuple[int | None, int | None, int | None] | None:
    """What the drive has to tell before it answers."""
    try:
        host.sg_io(handle, READ_CAPACITY_16, 32, 20.0)
    except CommandRefused as refused:
        return refused.key, refused.asc, refused.ascq
    return None


def sent(host: Host, debug: Drive, spec: FlashSpec) -> tuple[int | None, ...] | None:
    """Download, and activate what was saved only; what the drive had to tell in between."""
    host.write_file("/tmp/microcode", IMAGE.data)
    handle = host.hold_device(debug.node)  # and udev does not ask it anything meanwhile
    try:
        attention(host, handle)
        download(host, debug, spec, IMAGE, "/tmp/microcode")
        told = attention(host, handle)
        if spec.defers:
            activate(host, debug, spec)
    finally:
        host.release_device(handle)
    return told


@pytest.mark.parametrize("spec", [FlashSpec(mode=0x5), FlashSpec(mode=0x7, chunk_kib=16)])
def test_an_image_in_one_piece_is_taken_and_told_of(
    host: Host, debug: Drive, spec: FlashSpec
) -> None:
    assert sent(host, debug, spec) == CHANGED
    assert written(host) == [(spec.mode, 0, len(IMAGE.data))]


@pytest.mark.parametrize(("mode", "byte"), [(0xD, 0x8D), (0xE, 0x0E)])
def test_pieces_are_saved_and_then_activated(
    host: Host, debug: Drive, mode: int, byte: int
) -> None:
    """Mode 0Dh with PO_ACT: a power-on would activate it, too."""
    assert sent(host, debug, FlashSpec(mode=mode, chunk_kib=CHUNK // 1024)) is None
    pieces = [(byte, 0, 4096), (byte, 4096, 4096), (byte, 8192, 1792)]
    assert written(host) == [*pieces, (0xF, 0, 0)]


def test_a_drive_that_takes_the_first_piece_for_the_whole(host: Host, debug: Drive) -> None:
    """scsi_debug tells of each command of mode 7, where a drive tells of the last."""
    with pytest.raises(DriveFault, match="said in the middle of WRITE BUFFER mode 07h that its"):
        sent(host, debug, FlashSpec(mode=7, chunk_kib=4))
    assert written(host) == [(7, 0, 4096), (7, 4096, 4096)], "the third was not sent any more"


def test_a_drive_that_has_no_write_buffer(host: Host) -> None:
    """QEMU's SCSI drive."""
    host.write_file("/tmp/microcode", IMAGE.data)
    drive = bind(host, spec_of("VSCSI0001"))
    with pytest.raises(Misuse, match="there is no WRITE BUFFER: the drive, or the HBA") as caught:
        download(host, drive, FlashSpec(), IMAGE, "/tmp/microcode")
    assert "exit code 9" in str(caught.value)


@pytest.fixture
def visit(
    guest: Guest, debug: Drive, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> Iterator[OpenVisit]:
    """A visit for firmware 0192, bound by hand: no HBA is under this drive.

    What it leaves on record is not among the journals of this machine's user.
    """
    monkeypatch.setattr(journal, "default_directory", lambda _: str(tmp_path / "journal"))
    (tmp_path / "microcode.bin").write_bytes(IMAGE.data)
    sha256 = hashlib.sha256(IMAGE.data).hexdigest()
    text = RIG.format(config=guest.spec.ssh_config, serial=debug.spec.serial)
    run = replace(make_run(tmp_path, text, MATRIX.format(sha256=sha256)), drive_time_s=None)
    (rig,) = run.rigs.values()
    record = Record(run.results, run.id)
    record.start("a command", "0")
    with Station(rig, run, record, Live(None)) as station:
        opened = OpenVisit(station, run.visits[1])
        opened.rebound(bind(station.host, opened.spec))
        yield opened
        opened.rebound(opened.drive)
    record.close()


def test_a_flash_from_the_keys_to_what_the_drive_says(host: Host, visit: OpenVisit) -> None:
    program = PLAYED.format(parameters=PARAMETERS).encode()
    host.write_file("/usr/local/bin/sg_write_buffer", program, 0o755)
    assert flash(visit) is None
    assert visit.drive.identity.firmware == "0192"
    assert [mode for mode, *_ in written(host)] == [0xE, 0xE, 0xE, 0xF]


def test_a_drive_that_takes_an_image_and_runs_its_old_firmware(
    visit: OpenVisit, tmp_path: Path
) -> None:
    with pytest.raises(DriveFault, match=r"it runs 0191, though it took the image of 0192"):
        flash(visit)
    assert "may hold 0192" in visit.station.in_doubt["d"]
    assert [path.name for path in (tmp_path / "journal").iterdir()] == ["run-1.jsonl"]
