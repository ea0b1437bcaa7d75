"""Drives as a real kernel shows them: bound, climbed, set, and given back.

One guest holds a healthy drive beside drives that cannot queue, each for another reason.
"""

import json
import re
from collections.abc import Iterator, Mapping
from pathlib import Path

import pytest

from leadline.cli import main
from leadline.drive import inquiry, overlap, pair, queue_depth, settings
from leadline.drive.bind import Drive, bind, read_identify, scan
from leadline.drive.identify import decode
from leadline.drive.kernel_watch import KernelWatch
from leadline.drive.pair import Pair
from leadline.drive.scsi_changes import page_changes
from leadline.drive.scsi_pages import CAPACITY, INQUIRY, read_pages, vpd
from leadline.errors import DriveFault, Misuse, RigTrouble
from leadline.host.connection import Host
from leadline.host.journal import Journal
from leadline.host.programs import parse_version
from leadline.inventory.rig import ControllerSpec
from leadline.virtual import qmp
from selftests.quick_guest import (
    BAD_SECTOR,
    BOOT_S,
    Guest,
    ata,
    bad_sector,
    booted,
    scsi,
    shell,
    spec_of,
)
from selftests.virtual.watched_guest import HEALTHY, climbed, host, ssd, watch

__all__ = ["host", "ssd", "watch"]  # fixtures

BAD_SECTOR_DRIVE, FORCED, ON_IDE = "VSSD0002", "VSSD0003", "VSSD0004"
SCSI = "VSCSI0001"


@pytest.fixture(scope="module")
def guest(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Guest]:
    folder = tmp_path_factory.mktemp("live")
    drives = [
        ata(folder, HEALTHY, "ide.0"),
        bad_sector(folder, BAD_SECTOR_DRIVE, "ide.1"),
        ata(folder, FORCED, "ide.2"),
        ata(folder, ON_IDE, "pata.0"),
        scsi(folder, SCSI, 0),
    ]
    with booted(folder, drives, kernel_arguments="libata.force=3:noncq") as running:
        yield running


@pytest.fixture
def journal(host: Host) -> Iterator[Journal]:
    with Journal(host, "selftest") as opened:
        yield opened


# Binding.


def test_a_sata_drive_is_bound_and_speaks_for_itself(host: Host, ssd: Drive) -> None:
    assert ssd.identity.serial == HEALTHY
    assert ssd.identity.firmware == "1.0"
    assert ssd.identity.capacity_bytes == 1 << 30
    assert ssd.controller.driver == "ahci"
    assert ssd.controller.pci_address == "0000:00:1f.2"
    assert ssd.controller.pci_id == "8086:2922"
    assert ssd.ata_port == "ata1"
    assert ssd.link is not None
    assert ssd.link.speed == "1.5 Gbps"
    assert ssd.queue_depth == 32
    assert ssd.sg is not None
    assert host.exists(ssd.sg)


def test_identify_comes_from_the_drive_and_not_from_the_kernel(host: Host, ssd: Drive) -> None:
    data = read_identify(host, ssd.node)
    assert len(data) == 512
    assert decode(data) == ssd.identify


def test_a_scsi_drive_is_bound(host: Host) -> None:
    drive = bind(host, spec_of(SCSI))
    assert drive.identity.model == "LEADLINE VSCSI"
    assert drive.identity.wwn == spec_of(SCSI).wwn
    assert drive.identity.capacity_bytes == 1 << 30
    assert drive.identify is None
    assert drive.link is None


def test_a_scsi_drive_is_asked_for_its_pages(host: Host) -> None:
    drive = bind(host, spec_of(SCSI))
    pages = read_pages(host, drive.node)
    assert inquiry.standard(pages[INQUIRY]).product == "VSCSI"
    assert inquiry.capacity(pages[CAPACITY]).bytes == 1 << 30
    assert {vpd(code) for code in (0x00, 0x80, 0x83, 0xB0, 0xB1)} <= pages.keys()
    assert inquiry.wwn(pages[vpd(0x83)]) == drive.identity.wwn
    assert page_changes(pages, read_pages(host, drive.node)) == ()


def test_disks_are_found_without_udevs_database(host: Host) -> None:
    shell(host, "mv /run/udev/data /run/udev/away")
    try:
        assert HEALTHY in {disk.serial for disk in scan(host)}
        assert bind(host, spec_of(SCSI)).identity.serial == SCSI
    finally:
        shell(host, "rm -rf /run/udev/data; mv /run/udev/away /run/udev/data")


def test_a_drive_that_is_not_there(host: Host) -> None:
    with pytest.raises(RigTrouble, match=r"VSSD0099.*is not there") as caught:
        bind(host, spec_of("VSSD0099"))
    for serial in (HEALTHY, ON_IDE, SCSI):
        assert serial in str(caught.value)


@pytest.mark.parametrize(
    ("change", "said"),
    [
        ({"wwn": "0x5000c5000000dead"}, "another WWN"),
        ({"firmware": "1.1"}, "firmware: '1.1' in the rig file, '1.0' by the drive"),
        ({"model": "LEADLINE OTHER"}, "model: 'LEADLINE OTHER' in the rig file"),
    ],
)
def test_a_drive_that_is_not_as_the_rig_file_says(
    host: Host, change: Mapping[str, str], said: str
) -> None:
    with pytest.raises(Misuse, match=re.escape(said)):
        bind(host, spec_of(HEALTHY).model_copy(update=dict(change)))


def test_a_drive_on_another_controller_than_the_rig_file_says(host: Host) -> None:
    other = ControllerSpec(name="hba", driver="mpt3sas")
    with pytest.raises(RigTrouble, match="hangs on another controller than the rig file") as told:
        bind(host, spec_of(HEALTHY), controller=other)
    assert "driver of controller hba: 'mpt3sas' in the rig file, 'ahci' on the rig" in str(
        told.value
    )
    assert "ahci at 0000:00:1f.2 (8086:2922)" in str(told.value)


# The drive on its controller.


def found_pair(host: Host, watch: KernelWatch, serial: str) -> Pair:
    return pair.find(host, bind(host, spec_of(serial)), watch.history())


def quirk_names(found: Pair) -> list[str]:
    return [quirk.name for quirk in found.quirks]


def test_a_pair_on_ahci(host: Host, watch: KernelWatch) -> None:
    """QEMU's drives say that they are behind a bridge (IDENTIFY word 93), and Linux minds it."""
    found = found_pair(host, watch, HEALTHY)
    assert (found.adapter, found.takes, found.port) == ("ahci", 32, "ata1.00")
    assert (found.controller_gbps, found.link_gbps, found.drive_gbps) == (1.5, 1.5, None)
    assert found.ncq == "NCQ (depth 32)"
    assert quirk_names(found) == ["bridge-limits"]
    assert found.missing(["bridge-limits"]) == ()
    assert found.unexpected(["bridge-limits"]) == ()
    assert found.missing(["noncq"]) == ("noncq",), "of that this kernel would have told"
    assert found.forced == ()


def test_a_pair_from_which_libata_force_takes_ncq_away(host: Host, watch: KernelWatch) -> None:
    found = found_pair(host, watch, FORCED)
    assert found.forced == ("noncq",)
    assert found.ncq == "NCQ (not used)"
    assert "noncq" in quirk_names(found)
    assert [quirk.name for quirk in found.unexpected(["bridge-limits"])] == ["noncq"]


RIG = """\
rig: live
host: {{reach: ssh, address: guest, ssh_config: {ssh_config}}}
controllers: [{{name: ahci, driver: ahci}}]
drives:
  - {{slot: a, model: LEADLINE VSSD, serial: {serial}, firmware: "1.0", controller: ahci,
     protocol: sata}}
"""


def test_identify_shows_the_controller_of_a_rigs_drive(
    guest: Guest, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    rig = tmp_path / "rig.yaml"
    rig.write_text(RIG.format(ssh_config=guest.spec.ssh_config, serial=FORCED))
    assert main(["identify", "--rig", str(rig), "a", "--json"]) == 0
    said = json.loads(capsys.readouterr().out)
    assert said["serial"] == FORCED
    assert said["controller"] == {
        "pci_address": "0000:00:1f.2",
        "pci_id": "8086:2922",
        "driver": "ahci",
        "adapter": "ahci",
        "takes": 32,
        "port": "ata3.00",
        "port_gbps": 1.5,
        "link_gbps": 1.5,
        "queue_depth": 1,
        "ncq": "NCQ (not used)",
        "quirks": ["noncq", "bridge-limits"],
        "forced": ["noncq"],
    }
    assert main(["identify", "--rig", str(rig), "a"]) == 0
    assert "controller.quirks" in capsys.readouterr().out


def test_a_pair_on_ide(host: Host, watch: KernelWatch) -> None:
    found = found_pair(host, watch, ON_IDE)
    assert (found.controller.driver, found.adapter, found.takes) == ("ata_piix", "ata_piix", 1)
    assert found.controller_gbps is None
    assert found.ncq == "", "there QEMU's drive does not offer it"
    assert quirk_names(found) == []
    assert found.queue_depth == 1


def test_a_pair_on_virtio_scsi(host: Host, watch: KernelWatch) -> None:
    found = found_pair(host, watch, SCSI)
    assert (found.controller.driver, found.adapter) == ("virtio-pci", "virtio_scsi")
    assert found.controller.pci_id == "1af4:1004"
    assert (found.port, found.ncq, found.quirks) == ("", "", ())
    assert found.takes is not None
    assert found.takes > 32


def test_a_protocol_that_the_drive_does_not_speak(host: Host) -> None:
    spec = spec_of(SCSI).model_copy(update={"protocol": "sata"})
    with pytest.raises(RigTrouble, match="`protocol` in the rig file is wrong"):
        bind(host, spec)


def test_a_drive_that_is_there_twice(host: Host, guest: Guest) -> None:
    node, device = scsi(guest.folder, "VSCSI0002", 1)
    qmp.plug(guest.monitor, node, {**device, "serial": SCSI})
    try:
        shell(host, "until [ $(lsblk -dno SERIAL | grep -c VSCSI0001) = 2 ]; do sleep 0.1; done")
        with pytest.raises(RigTrouble, match="is there 2 times on guest, by its serial number"):
            bind(host, spec_of(SCSI))
    finally:
        qmp.unplug(guest.monitor, str(device["id"]), str(node["node-name"]))
    shell(host, "while [ $(lsblk -dno SERIAL | grep -c VSCSI0001) = 2 ]; do sleep 0.1; done")
    assert bind(host, spec_of(SCSI)).identity.serial == SCSI


# The ladder.


def test_a_healthy_drive_climbs_every_rung(host: Host, watch: KernelWatch) -> None:
    _, ladder = climbed(host, watch, HEALTHY)
    assert ladder.first_broken is None, str(ladder)
    assert ladder.unknown == (), str(ladder)
    assert ladder.overlap is not None
    assert set(ladder.overlap.opcodes) == {"READ FPDMA QUEUED"}
    # a busy machine does not always send all of a round before its first is done
    assert 2 <= ladder.overlap.most <= overlap.OFFERED_DEPTH
    assert host.versions["fio"] == parse_version(shell(host, "fio --version").encode())
    assert not ladder.bars_queueing


def test_a_scsi_drive_climbs_its_own(host: Host, watch: KernelWatch) -> None:
    _, ladder = climbed(host, watch, SCSI)
    assert ladder.first_broken is None, str(ladder)
    assert ladder.overlap is not None
    assert ladder.overlap.source == "scsi"
    assert 2 <= ladder.overlap.most <= overlap.OFFERED_DEPTH


def test_ncq_forced_off_is_the_kernels_doing(
    host: Host, watch: KernelWatch, journal: Journal
) -> None:
    drive, ladder = climbed(host, watch, FORCED)
    assert ladder.bars_queueing
    assert ladder.first_broken is not None
    assert ladder.first_broken.name == "kernel"
    assert "libata.force=3:noncq" in ladder.first_broken.found
    assert ladder.rungs[-1].holds is False  # and nothing overlaps
    with pytest.raises(DriveFault, match="does not queue"):
        queue_depth.set_depth(host, journal, drive, 8, ladder)
    assert queue_depth.read(host, drive) == 1


def test_an_ide_controller_cannot_queue(host: Host, watch: KernelWatch, journal: Journal) -> None:
    drive, ladder = climbed(host, watch, ON_IDE)
    assert drive.controller.driver == "ata_piix"
    assert ladder.bars_queueing
    assert ladder.first_broken is not None
    assert ladder.first_broken.name == "controller"
    with pytest.raises(DriveFault, match="ata_piix takes 1 at once"):
        queue_depth.set_depth(host, journal, drive, 8, ladder)


def test_a_queue_depth_left_at_one(host: Host, watch: KernelWatch, journal: Journal) -> None:
    drive = bind(host, spec_of(HEALTHY))
    journal.change(queue_depth.path(drive), "1")
    _, ladder = climbed(host, watch, HEALTHY)
    assert ladder.first_broken is not None
    assert ladder.first_broken.name == "setting"
    assert not ladder.bars_queueing, "a setting may change"
    assert ladder.overlap is not None
    assert (ladder.overlap.queued, set(ladder.overlap.opcodes)) == (0, {"READ DMA"})
    journal.give_back()
    assert queue_depth.read(host, drive) == 32


def test_ncq_switched_off_by_errors_is_found_and_not_mended(
    host: Host, watch: KernelWatch, journal: Journal
) -> None:
    drive, before = climbed(host, watch, BAD_SECTOR_DRIVE)
    mark = watch.mark()
    assert before.rungs[4].holds is True
    spread = f"--offset={(BAD_SECTOR - 64) * 512}"
    read = ["--readonly", "--direct=1", "--rw=randread", "--bs=4k", "--ioengine=libaio"]
    length = ["--size=64k", "--iodepth=8", "--continue_on_error=read", "--loops=4"]
    fio = ["fio", "--name=x", f"--filename={drive.node}", spread, *read, *length]
    host.run(fio, deadline=BOOT_S, check=False)
    assert "ncq-disabled" in [event.kind for event in watch.since(mark, drive)]
    assert queue_depth.read(host, drive) == 32  # sysfs knows nothing of it
    _, ladder = climbed(host, watch, BAD_SECTOR_DRIVE)
    assert ladder.first_broken is not None
    assert ladder.first_broken.name == "error handling"
    for depth in (1, 8, 32):
        with pytest.raises(DriveFault, match="NCQ disabled due to excessive errors"):
            queue_depth.set_depth(host, journal, drive, depth, ladder)
    assert overlap.probe(host, drive).queued == 0  # nothing was written, so the fault is there


# Settings.


def test_the_queue_depth_is_set_and_given_back(host: Host, watch: KernelWatch) -> None:
    drive, ladder = climbed(host, watch, HEALTHY)
    with Journal(host, "selftest") as journal:
        for depth in (8, 1, 31):
            queue_depth.set_depth(host, journal, drive, depth, ladder)
            assert queue_depth.read(host, drive) == depth
        with pytest.raises(Misuse, match="it is 1 to 32"):
            queue_depth.set_depth(host, journal, drive, 33, ladder)
    assert queue_depth.read(host, drive) == 32


def test_another_drives_ladder_is_no_leave_to_write(
    host: Host, watch: KernelWatch, journal: Journal, ssd: Drive
) -> None:
    _, others = climbed(host, watch, SCSI)
    with pytest.raises(ValueError, match="climb that of VSSD0001"):
        queue_depth.set_depth(host, journal, ssd, 8, others)
    assert queue_depth.read(host, ssd) == 32


def queue_settings(host: Host, drive: Drive) -> dict[str, str]:
    folder = f"/sys/block/{drive.name}/queue"
    names = ("scheduler", "nr_requests", "nomerges", "wbt_lat_usec", "read_ahead_kb")
    read = host.read_files([f"{folder}/{name}" for name in names])
    return {path: (data or b"").decode() for path, data in read.items()}


def test_settings_are_pinned_and_given_back(host: Host, ssd: Drive) -> None:
    folder = f"/sys/block/{ssd.name}/queue"
    for name, value in (("nr_requests", "100"), ("wbt_lat_usec", "12000"), ("nomerges", "1")):
        host.write_value(f"{folder}/{name}", value)
    before = queue_settings(host, ssd)
    assert "[mq-deadline]" in before[f"{folder}/scheduler"]
    with Journal(host, "selftest") as journal:
        pinned = settings.pin(host, journal, ssd)
        assert pinned["queue/scheduler"] == "none"
        assert pinned["queue/nomerges"] == "2"
        assert pinned["queue/wbt_lat_usec"] == "0"
        assert pinned["queue/nr_requests"] == "32"
        assert pinned["link_power_management_policy"] == "max_performance"
        assert "[none]" in queue_settings(host, ssd)[f"{folder}/scheduler"]
        assert settings.pin(host, journal, ssd) == pinned  # again changes nothing
    assert queue_settings(host, ssd) == before


def test_requests_that_the_rig_withheld_are_admitted(host: Host, journal: Journal) -> None:
    drive = bind(host, spec_of(SCSI))
    journal.change(f"/sys/block/{drive.name}/queue/nr_requests", "8")
    assert int(settings.pin(host, journal, drive)["queue/nr_requests"]) > 32
