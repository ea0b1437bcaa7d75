"""`leadline kernel-log` as a user meets it: output, messages and exit codes."""

import json
from pathlib import Path

import pytest

from leadline.cli import main
from selftests.kernel_logs import HEALTHY_BOOT, TIMEOUT


def test_the_command_prints_the_contract(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    log = tmp_path / "log"
    log.write_text(TIMEOUT + "[ 101.0] ata2.00: NCQ disabled due to excessive errors\n")
    assert main(["kernel-log", "--json", str(log)]) == 1
    document = json.loads(capsys.readouterr().out)
    assert document["ncq_disabled"] is True
    assert [event["kind"] for event in document["events"]] == [
        "queued-command-timeout",
        "link-reset",
        "ncq-disabled",
    ]
    assert {"kind", "device", "time", "blame", "text"} <= document["events"][0].keys()
    assert [event["kind"] for event in document["notices"]] == ["link-up"]
    assert main(["kernel-log", str(log)]) == 1
    assert "switched queueing (NCQ) off on ata2.00" in capsys.readouterr().out


def test_the_command_is_content_with_a_healthy_log(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    log = tmp_path / "log"
    log.write_text(HEALTHY_BOOT)
    assert main(["kernel-log", str(log)]) == 0
    assert "No errors" in capsys.readouterr().out
    assert main(["kernel-log", "--json", str(log)]) == 0
    assert json.loads(capsys.readouterr().out)["events"] == []


@pytest.mark.parametrize("content", [b"", b"\n\n", b"no log at all\n", bytes(range(256)) * 999])
def test_the_command_passes_no_file_that_is_no_log(
    content: bytes, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    log = tmp_path / "log"
    log.write_bytes(content)
    assert main(["kernel-log", str(log)]) == 2
    said = capsys.readouterr().err
    assert "no kernel messages" in said
    assert said.count("\n") == 1
