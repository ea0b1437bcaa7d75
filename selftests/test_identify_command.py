"""`leadline identify` as a user meets it: output, messages and exit codes."""

import errno
import json
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import pytest

from leadline.cli import main
from leadline.commands import identify
from leadline.drive import bind, inquiry
from leadline.errors import DriveFault, RigTrouble
from leadline.host.programs import PACKAGES, missing
from leadline.host.trouble import DeadlinePassed, FileTrouble, HostLost
from selftests.identify_images import hex_words, image

IMAGE = image()


def test_json_is_one_object_with_the_fields_of_the_contract(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    dump = tmp_path / "dump.bin"
    dump.write_bytes(IMAGE)
    assert main(["identify", "--json", str(dump)]) == 0
    fields = json.loads(capsys.readouterr().out)
    assert fields["ncq"]["queue_depth"] == 32
    assert fields["sector"] == {"logical": 512, "physical": 512}
    assert list(fields) == [
        *("model", "serial", "firmware", "wwn", "class", "rotation_rpm", "checksum", "ncq"),
        *("link", "capacity_bytes", "sector", "write_cache", "trim", "security"),
        "power_management",
    ]


def test_for_people_it_is_a_table(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    dump = tmp_path / "dump.hex"
    dump.write_text(hex_words(IMAGE))
    assert main(["identify", str(dump)]) == 0
    rows = dict(line.split(maxsplit=1) for line in capsys.readouterr().out.splitlines())
    assert rows["model"] == "LEADLINE SPECIMEN"
    assert rows["ncq.supported"] == "yes"
    assert rows["rotation_rpm"] == "-"


def test_stdin_is_a_source() -> None:
    done = subprocess.run(
        [sys.executable, "-m", "leadline.cli", "identify", "--json", "-"],
        input=hex_words(IMAGE).encode(),
        capture_output=True,
        check=True,
        timeout=60,
    )
    assert json.loads(done.stdout)["serial"] == "SPEC0001"


def _damaged() -> bytes:
    data = bytearray(IMAGE)
    data[60] ^= 1
    return bytes(data)


@pytest.mark.parametrize(
    ("content", "message"),
    [
        (IMAGE[:500], "500 raw bytes where IDENTIFY data is 512"),
        (b"not a dump", "is not a hex word"),
        (bytes(512), "empty"),
        (image(words={0: 0x8580}), "an ATAPI device"),
        (_damaged(), "the checksum in word 255 does not hold"),
        (b"00" * 40_000, "more than 65536 bytes"),
    ],
)
def test_bad_input_is_one_line_and_exit_code_2(
    content: bytes, message: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    dump = tmp_path / "dump"
    dump.write_bytes(content)
    assert main(["identify", str(dump)]) == 2
    said = capsys.readouterr().err
    assert message in said
    assert said.startswith(f"leadline: {dump}")
    assert said.count("\n") == 1


def test_a_damaged_dump_is_shown_all_the_same(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    dump = tmp_path / "dump"
    dump.write_bytes(_damaged())
    assert main(["identify", "--json", str(dump)]) == 2
    assert json.loads(capsys.readouterr().out)["checksum"] == "invalid"


@pytest.mark.parametrize("source", ["/nonexistent", "/", "/dev/null"])
def test_what_cannot_be_a_source_is_refused(
    source: str, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main(["identify", source]) == 2
    assert capsys.readouterr().err.startswith("leadline: ")


REFUSED = RigTrouble("localhost: /dev/sdb: no ATA command reaches this drive")
NO_NODE = FileTrouble("localhost", "/dev/sdb", errno.ENOENT, "no such file")


@pytest.mark.parametrize(
    "unasked",
    [missing("localhost", "sg_inq"), HostLost("the rig is gone"), DeadlinePassed("20 s are over")],
)
def test_what_kept_a_scsi_drive_from_being_asked_is_the_cause(
    unasked: RigTrouble, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    """Not that it takes no ATA command, which is so of each such drive."""
    assert _asked_in_vain(REFUSED, unasked, monkeypatch) == 3
    first, *notes = capsys.readouterr().err.splitlines()
    assert first == f"leadline: {unasked}"
    assert "no ATA command reaches this drive" in "".join(notes)


@pytest.mark.parametrize(
    ("refused", "then"),
    [(NO_NODE, missing("localhost", "sg_inq")), (REFUSED, DriveFault("an enclosure"))],
)
def test_a_node_that_is_not_there_and_what_is_no_drive_need_no_scsi_program(
    refused: RigTrouble,
    then: Exception,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    assert _asked_in_vain(refused, then, monkeypatch) == 3
    assert capsys.readouterr().err == f"leadline: {refused}\n"


def _asked_in_vain(refused: Exception, then: Exception, monkeypatch: pytest.MonkeyPatch) -> int:
    """The exit code for a device that refuses ATA commands, and then is not asked INQUIRY."""

    def failing(error: Exception) -> Callable[..., None]:
        def fail(*_: object) -> None:
            raise error

        return fail

    monkeypatch.setattr(identify, "_is_device", lambda _: True)
    monkeypatch.setattr(bind, "read_identify", failing(refused))
    monkeypatch.setattr(inquiry, "read", failing(then))
    return main(["identify", "/dev/sdb"])


def test_each_program_that_a_scsi_drive_is_asked_with_has_a_package() -> None:
    assert {"sg_inq", "sg_vpd", "sg_readcap"} <= PACKAGES.keys()
