"""Downloads of microcode: the commands, as the real sg_write_buffer reads them, and refusals."""

import errno
import re
import shutil
import subprocess
from dataclasses import replace
from pathlib import Path

import pytest

from leadline.drive.bind import Drive
from leadline.drive.identify import decode
from leadline.drive.microcode import (
    MOST_BYTES,
    Image,
    activate_argv,
    download_argv,
    explained,
    refuse_hopeless,
    was_refused,
)
from leadline.errors import DriveFault, Misuse, RigTrouble
from leadline.host.trouble import ProgramFailed
from leadline.inventory.flash import FlashSpec
from selftests.identify_images import image as identify_image
from selftests.power_world import drive

BY_HDPARM = FlashSpec(method="hdparm")
BY_PROGRAM = FlashSpec(command=("f", "{image}"), runs_on="rig", activates="at-once")


def sata(*, download: bool, offsets: bool = False, behind: str = "sas", **words: int) -> Drive:
    """A SATA drive that says this of DOWNLOAD MICROCODE; words by number, as in w234=8."""
    given = {83: 0x4400 | download, 86: 0x0400 | download, 87: 0x4100}
    given |= {119: 0x4000 | offsets << 4, 120: 0x4000 | offsets << 4}
    given |= {int(name[1:]): value for name, value in words.items()}
    made = drive("a", identify=decode(identify_image(words=given)))
    return made if behind == "ahci" else replace(made, link=None)


def dry_run(folder: Path, spec: FlashSpec, size: int) -> list[tuple[str, str, str]]:
    """The commands that the real program would send: mode, offset, length."""
    if shutil.which("sg_write_buffer") is None:
        pytest.skip("sg_write_buffer is not installed (`./run selftest` installs sg3-utils)")
    path = folder / "image"
    path.write_bytes(bytes(size))
    program, *words = download_argv(spec, "/dev/null", str(path), size)
    argv = [program, "--dry-run", *words]
    done = subprocess.run(argv, capture_output=True, text=True, check=True, timeout=30)
    pattern = r"mode=0x(\w+), \w+=(\d), id=0, +offset=(\d+), len=(\d+)"
    found = re.findall(pattern, done.stderr)
    assert {specific for _, specific, _, _ in found} == {"4" if spec.mode == 13 else "0"}
    return [(mode, offset, length) for mode, _, offset, length in found]


@pytest.mark.parametrize("mode", [0x7, 0xD, 0xE])
def test_in_pieces_with_offsets(tmp_path: Path, mode: int) -> None:
    spec = FlashSpec(mode=mode, chunk_kib=4)
    assert dry_run(tmp_path, spec, 10_000) == [
        (f"{mode:x}", "0", "4096"),
        (f"{mode:x}", "4096", "4096"),
        (f"{mode:x}", "8192", "1808"),
    ]


@pytest.mark.parametrize("mode", [0x5, 0x7])
def test_an_image_above_8_mib_is_sent_whole(tmp_path: Path, mode: int) -> None:
    """More than the program reads of a file by itself."""
    spec = FlashSpec(mode=5) if mode == 5 else FlashSpec(mode=7, chunk_kib=1024)
    size = (9 << 20) + 5
    sent = dry_run(tmp_path, spec, size)
    assert sum(int(length) for *_, length in sent) == size
    assert len(sent) == (1 if mode == 5 else 10)


def test_what_activates_what_was_saved(tmp_path: Path) -> None:
    assert activate_argv("/dev/sda")[-1] == "/dev/sda"
    assert "--mode=15" in activate_argv("/dev/sda")
    assert not [word for word in activate_argv("/dev/sda") if word.startswith("--in")]


def test_hdparm_is_told_that_it_is_meant() -> None:
    argv = download_argv(BY_HDPARM, "/dev/sda", "/tmp/x", 512)
    assert argv[-3:] == ["--fwdownload", "/tmp/x", "/dev/sda"]
    assert "--please-destroy-my-drive" in argv


class TestHopeless:
    """What cannot be what was meant is refused before its first byte."""

    def test_an_empty_image(self) -> None:
        with pytest.raises(Misuse, match="/x is empty: nothing was sent"):
            refuse_hopeless(BY_PROGRAM, sata(download=True), Image("/x", b""))

    def test_a_part_of_a_block(self) -> None:
        torn = Image("/x", bytes(513))
        for spec in (FlashSpec(), BY_HDPARM):
            with pytest.raises(Misuse, match=r"/x has 513 bytes, and .* blocks of 512"):
                refuse_hopeless(spec, sata(download=True), torn)
        refuse_hopeless(BY_PROGRAM, sata(download=True), torn)
        refuse_hopeless(FlashSpec(), drive("a", link=None), torn)

    def test_more_than_24_bits_can_count(self) -> None:
        subject = drive("a", link=None)
        refuse_hopeless(FlashSpec(), subject, Image("/x", bytes(MOST_BYTES - 1)))
        above = Image("/x", bytes(MOST_BYTES))
        with pytest.raises(Misuse, match="WRITE BUFFER carries at most 16777215"):
            refuse_hopeless(FlashSpec(), subject, above)
        refuse_hopeless(BY_PROGRAM, subject, above)

    def test_more_blocks_than_16_bits_can_count(self) -> None:
        """By hdparm, which sends no WRITE BUFFER."""
        subject = sata(download=True, behind="ahci")
        refuse_hopeless(BY_HDPARM, subject, Image("/x", bytes(0xFFFF * 512)))
        with pytest.raises(Misuse, match="DOWNLOAD MICROCODE carries at most 33553920"):
            refuse_hopeless(BY_HDPARM, subject, Image("/x", bytes(0x10000 * 512)))

    @pytest.mark.parametrize(
        ("kib", "size", "refused"),
        [
            (4, 51_200, True),
            (16, 51_200, False),
            (32, 51_200, False),
            (64, 51_200, True),
            (64, 32_768, False),  # it is one command of 64 blocks
        ],
    )
    def test_pieces_that_the_drive_says_it_does_not_take(
        self, kib: int, size: int, refused: bool
    ) -> None:
        subject = sata(download=True, offsets=True, w234=32, w235=64)  # 16 to 32 KiB
        spec, image = FlashSpec(chunk_kib=kib), Image("/x", bytes(size))
        if not refused:
            refuse_hopeless(spec, subject, image)
            return
        with pytest.raises(Misuse, match=r"takes 32 to 64 in one command .*words 234 and 235"):
            refuse_hopeless(spec, subject, image)

    def test_the_only_piece_may_be_small(self) -> None:
        subject = sata(download=True, offsets=True, w234=32)
        refuse_hopeless(FlashSpec(), subject, Image("/x", bytes(4096)))

    def test_a_scsi_drive_says_nothing_of_it(self) -> None:
        refuse_hopeless(FlashSpec(), drive("a", link=None), Image("/x", bytes(99)))


SAID = b"Write buffer(10):\nAdditional sense: Invalid field in cdb\x1b[2J\n"


def why(spec: FlashSpec, subject: Drive, code: int) -> tuple[type[Exception], str]:
    argv = download_argv(spec, "/dev/sda", "/tmp/x", 1)
    error = explained(spec, subject, ProgramFailed("rig", argv, code, b"", SAID))
    assert f"ended with exit code {code})" in str(error)
    assert "Invalid field in cdb\\x1b[2J" in str(error), "what it said, and nothing for a terminal"
    assert "slot a: MODEL SERIAL-a: " in str(error)
    return type(error), str(error)


@pytest.mark.parametrize(
    ("code", "owner", "words"),
    [
        (2, RigTrouble, "was not ready"),
        (3, DriveFault, "broke off WRITE BUFFER mode 07h"),
        (5, Misuse, "does the drive know the mode and take chunks of 4 KiB"),
        (6, RigTrouble, "was reset in the middle"),
        (7, Misuse, "locked or frozen"),
        (9, Misuse, "there is no WRITE BUFFER"),
        (11, Misuse, "is the image made for this drive"),
        (15, RigTrouble, "max_sectors_kb"),
        (33, DriveFault, "did not answer WRITE BUFFER mode 07h within 600 s"),
        (72, RigTrouble, "max_sectors_kb"),  # EINVAL: 50 and errno
        (99, RigTrouble, "no word for"),
    ],
)
def test_each_exit_status_has_its_owner(code: int, owner: type[Exception], words: str) -> None:
    found, said = why(FlashSpec(), drive("a", link=None), code)
    assert found is owner
    assert words in said


@pytest.mark.parametrize("code", [5, 72])
def test_an_image_that_is_sent_whole_has_no_chunks(code: int) -> None:
    """`chunk_kib` cannot be given with mode 5, so it is not what is to be changed."""
    _, said = why(FlashSpec(mode=5), drive("a", link=None), code)
    assert "chunk" not in said
    assert ("take the whole image in one" in said) == (code == 5)
    assert ("the image, which goes in one command" in said) == (code == 72)


def test_a_drive_that_takes_a_part_for_the_whole() -> None:
    """As scsi_debug does with mode 7: the next piece finds the attention."""
    said = b"Additional sense: Microcode has been changed without reset\n"
    failed = ProgramFailed("rig", ["sg_write_buffer"], 6, b"", said)
    error = explained(FlashSpec(), drive("a", link=None), failed)
    assert isinstance(error, DriveFault)
    assert "took the pieces that it had for the whole; send it in one" in str(error)


@pytest.mark.parametrize("code", [5, 9, 11])
def test_an_activation_that_is_refused_is_no_matter_of_the_image_or_its_pieces(code: int) -> None:
    failed = ProgramFailed("rig", activate_argv("/dev/sda"), code, b"", SAID)
    error = explained(FlashSpec(mode=0xE), sata(download=True, offsets=True), failed)
    assert isinstance(error, Misuse)
    assert "took the image by mode 0Eh, and refused WRITE BUFFER mode 0Fh" in str(error)
    assert "activates: power-cycle in the rig file" in str(error)
    assert "chunks" not in str(error)


@pytest.mark.parametrize("code", [5, 11])
def test_a_sata_drive_is_held_to_what_it_advertises(code: int) -> None:
    in_pieces, whole = FlashSpec(mode=7), FlashSpec(mode=5)
    found, said = why(in_pieces, sata(download=True, offsets=True), code)
    assert (found, "words 119 and 120 bit 4" in said) == (DriveFault, True)
    found, said = why(in_pieces, sata(download=True), code)
    assert found is Misuse, "it never said that it takes pieces"
    found, said = why(whole, sata(download=True), code)
    assert (found, "words 83 and 86 bit 0" in said) == (DriveFault, True)
    found, said = why(whole, sata(download=False), code)
    assert (found, "has it as not supported" in said) == (Misuse, True)


def test_libata_translates_no_write_buffer() -> None:
    found, said = why(FlashSpec(), sata(download=True, behind="ahci"), 9)
    assert found is Misuse
    assert "refused before it reached the drive" in said
    assert "(ahci), translates no WRITE BUFFER" in said
    assert "use method: hdparm" in said
    assert "nor would the drive" not in said
    _, said = why(FlashSpec(), sata(download=False, behind="ahci"), 9)
    assert "use method: hdparm" not in said, "it would do no good"
    assert "nor would the drive take it: its IDENTIFY DEVICE data has it as not supported" in said


def test_hdparm_that_fails() -> None:
    found, said = why(BY_HDPARM, sata(download=True, behind="ahci"), 5)
    assert (found, "which it says that it supports" in said) == (DriveFault, True)
    found, said = why(BY_HDPARM, sata(download=False, behind="ahci"), 95)
    assert (found, "takes no DOWNLOAD MICROCODE" in said) == (Misuse, True)
    found, said = why(BY_HDPARM, sata(download=True, behind="ahci"), errno.EBADE)
    assert (found, "had no answer of the drive" in said) == (RigTrouble, True)
    found, _ = why(BY_HDPARM, drive("a"), 5)
    assert found is Misuse, "no IDENTIFY data: nothing was advertised"


@pytest.mark.parametrize("code", [-9, errno.EPERM, errno.ENOENT, errno.ENOMEM, errno.EACCES])
def test_hdparm_that_sent_nothing_or_was_ended_is_not_the_drives_fault(code: int) -> None:
    found, said = why(BY_HDPARM, sata(download=True, behind="ahci"), code)
    assert (found, "was not sent" in said) == (RigTrouble, True)


@pytest.mark.parametrize(
    ("spec", "codes", "refused"),
    [
        (FlashSpec(mode=0xE), (2, 5, 7, 9, 11, 15, 51, 96), True),
        (FlashSpec(mode=0xE), (-9, 3, 6, 33, 97, 99), False),
        (BY_HDPARM, (5, 95), True),
        (BY_HDPARM, (-9, errno.EBADE), False),
        (BY_PROGRAM, (1, 5), False),
    ],
)
def test_what_was_refused_is_not_kept_and_what_broke_off_may_be(
    spec: FlashSpec, codes: tuple[int, ...], refused: bool
) -> None:
    for code in codes:
        assert was_refused(spec, ProgramFailed("rig", ["f"], code, b"", b"")) == refused
