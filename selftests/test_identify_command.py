"""`leadline identify` as a user meets it: output, messages and exit codes."""

import json
import subprocess
import sys
from pathlib import Path

import pytest

from leadline.cli import main
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
