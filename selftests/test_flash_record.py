"""A flash is on record before its first byte, until the drive has said what it runs for good."""

from collections.abc import Iterator
from contextlib import nullcontext
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from leadline import flash_record
from leadline.drive.bind import Drive
from leadline.errors import RigTrouble
from leadline.flash_record import (
    FlashRecord,
    begin,
    look_after,
    of_nobody,
    settle,
    state_of,
    takes_up_at_once,
    unfinished,
)
from leadline.host.connection import Host, open_host
from leadline.host.journal import Journal, dead_entries
from leadline.inventory.flash import FlashSpec
from leadline.inventory.rig import DriveSpec, HostSpec, Rig, load_rig
from selftests.local_hosts import directory, next_host
from selftests.power_world import drive
from selftests.visit_world import RIG

__all__ = ["directory", "next_host"]  # fixtures

RECORD = FlashRecord(
    rig="bench",
    rig_file="old.yaml",
    slot="a",
    model="MODEL",
    serial="SERIAL-a",
    wwn=None,
    before="1.0",
    revision="candidate",
    shows="1.1",
    image="/images/1.1.bin",
    sha256="0" * 64,
    method="write-buffer mode Eh",
    voids_unless_whole=False,
)
AT_ONCE = replace(RECORD, voids_unless_whole=True)
WAITS = replace(RECORD, awaits_power=True)
SAME_REVISION = replace(AT_ONCE, shows="1.0")


@pytest.mark.parametrize(
    ("record", "firmware", "in_doubt", "words"),
    [
        (RECORD, "1.1", False, "took effect"),
        (RECORD, "1.0", True, "may hold candidate, to be taken up at its next power-on; finish it"),
        (RECORD, "2.0", False, "neither of the two"),
        (WAITS, "1.1", True, "it says 1.1, which waits for a power cycle, so that it may run 1.0"),
        (replace(WAITS, step="activating"), "1.1", False, "took effect"),
        (replace(WAITS, back="1.0-a"), "1.0", True, "old.yaml a 1.0-a --allow-flash)"),
        (RECORD, None, True, "does not say which firmware it runs (gone); it may hold a part"),
        (AT_ONCE, "1.0", False, "did not reach it whole"),
        (AT_ONCE, "1.1", False, "took effect"),
        (replace(AT_ONCE, step="activating"), "1.0", True, "may hold candidate"),
        (replace(AT_ONCE, step="activating"), "1.1", False, "took effect"),
        (SAME_REVISION, "1.0", True, "may hold candidate"),
    ],
)
def test_what_a_drive_runs_says_what_to_do(
    record: FlashRecord, firmware: str | None, in_doubt: bool, words: str
) -> None:
    state = state_of(record, firmware, "gone")
    assert state.in_doubt == in_doubt
    assert words in str(state)
    resume = "leadline flash --rig old.yaml a --resume --allow-flash"
    assert (resume in str(state)) == in_doubt


@pytest.mark.parametrize(
    ("spec", "voids"),
    [
        (FlashSpec(), True),
        (FlashSpec(mode=5), True),
        (FlashSpec(method="hdparm"), True),
        (FlashSpec(mode=14, activates="at-once"), False),
        (FlashSpec(command=("{image}",), runs_on="here", activates="at-once"), False),
    ],
)
def test_who_takes_up_an_image_as_soon_as_it_is_whole(spec: FlashSpec, voids: bool) -> None:
    assert takes_up_at_once(spec, "at-once") == voids
    assert not takes_up_at_once(spec, "power-cycle")


@pytest.fixture
def rig(tmp_path: Path) -> Rig:
    path = tmp_path / "bench.yaml"
    path.write_text(RIG)
    return load_rig(path)


@pytest.fixture
def runs(monkeypatch: pytest.MonkeyPatch) -> Iterator[dict[str, str | None]]:
    """What the drives say, by slot."""
    said: dict[str, str | None] = {"a": "1.0"}

    def bind(host: Host, spec: DriveSpec, **wanted: Any) -> Drive:
        assert wanted == {"any_firmware": True}
        if (firmware := said[spec.slot]) is None:
            raise RigTrouble("is not there\nand more")
        found = drive(spec.slot)
        return replace(found, identity=replace(found.identity, firmware=firmware))

    monkeypatch.setattr(flash_record, "bind", bind)
    yield said


def die_in(directory: str, record: FlashRecord, *steps: Any) -> None:
    """A run that ends in the middle of a flash, and gives nothing back."""
    with open_host(HostSpec(reach="local")) as here:
        under_way = begin(Journal(here, "run-1", directory=directory), record)
        for step in steps:
            under_way.reached(step)


def test_the_step_that_counts_is_the_last(directory: str, next_host: Host, rig: Rig) -> None:
    die_in(directory, replace(RECORD, slot="old"), "activating")
    (left,) = unfinished(next_host, rig, directory=directory)
    assert left.record == replace(RECORD, step="activating", slot="a", rig_file=str(rig.path))
    assert left.dead.run == "run-1"


def test_a_flash_that_came_to_its_end_leaves_nothing(
    directory: str, next_host: Host, rig: Rig
) -> None:
    with (
        open_host(HostSpec(reach="local")) as here,
        Journal(here, "run-1", directory=directory) as journal,
    ):
        under_way = begin(journal, RECORD)
        under_way.reached("activating")
        assert unfinished(next_host, rig, directory=directory) == [], "its run lives"
        under_way.settled()
    assert next_host.list_dir(directory) == []


def test_a_drive_of_another_rig_is_none_of_ours(directory: str, next_host: Host, rig: Rig) -> None:
    die_in(directory, replace(RECORD, serial="ANOTHER"))
    assert unfinished(next_host, rig, directory=directory) == []
    assert len(dead_entries(next_host, "flash", directory=directory)) == 1


def test_a_record_of_another_version_is_not_guessed_at(
    directory: str, next_host: Host, rig: Rig
) -> None:
    with open_host(HostSpec(reach="local")) as here:
        Journal(here, "run-1", directory=directory).open_entry("flash", {"serial": "SERIAL-a"})
    said = r"run-1\.jsonl: run run-1 left a flash of drive SERIAL-a on record that"
    with pytest.raises(RigTrouble, match=said):
        unfinished(next_host, rig, directory=directory)


@pytest.mark.parametrize(
    ("data", "stops"),
    [
        ({"serial": "ANOTHER", "rig": "bench"}, False),
        ({"serial": "SERIAL-a", "rig": "other"}, True),
        ({"serial": 7, "rig": "bench"}, True),
        ({"rig": "other"}, False),
        ({"serial": None}, False),
        (None, False),
        ([], False),
    ],
)
def test_one_that_cannot_be_read_stops_its_own_rig_alone(
    directory: str, next_host: Host, rig: Rig, data: Any, stops: bool
) -> None:
    with open_host(HostSpec(reach="local")) as here:
        Journal(here, "run-1", directory=directory).open_entry("flash", data)
    with pytest.raises(RigTrouble) if stops else nullcontext():
        assert unfinished(next_host, rig, directory=directory) == []
    told_by_itself = bool(data) and any(isinstance(each, str) for each in data.values())
    assert len(of_nobody(next_host, directory=directory)) == (not told_by_itself)


@pytest.mark.parametrize("line", ['{"entry": "1", "kind": "flash"}', '{"entry": "1"}', "7", "null"])
def test_a_damaged_line_of_a_journal_stops_nobody(
    directory: str, next_host: Host, rig: Rig, line: str
) -> None:
    path = Path(directory, "run-1.jsonl")
    path.parent.mkdir(parents=True, mode=0o700)
    path.write_text(f"\n{line}\n")
    assert unfinished(next_host, rig, directory=directory) == []
    assert len(of_nobody(next_host, directory=directory)) == ("flash" in line)


def test_what_is_in_doubt_stays_on_record_with_what_to_do(
    directory: str, next_host: Host, rig: Rig, runs: dict[str, str | None]
) -> None:
    die_in(directory, RECORD, "activating")
    left = unfinished(next_host, rig, directory=directory)
    said, doubts = look_after(next_host, next_host, rig, left)
    assert said == [doubts["a"]]
    assert said[0].startswith(
        "slot a: MODEL SERIAL-a: run run-1 ended when the image had been sent to it, while it was "
        "activated, from firmware 1.0 to candidate; it runs 1.0, and may hold candidate"
    )
    assert f"leadline flash --rig {rig.path} a 1.0 --allow-flash" in said[0]
    assert unfinished(next_host, rig, directory=directory) == left
    settle(next_host, "SERIAL-b", left)
    assert unfinished(next_host, rig, directory=directory) == left
    settle(next_host, "SERIAL-a", left)
    assert next_host.list_dir(directory) == []


@pytest.mark.parametrize("firmware", ["1.1", "2.0"])
def test_what_is_in_no_doubt_is_settled_by_looking(
    directory: str, next_host: Host, rig: Rig, runs: dict[str, str | None], firmware: str
) -> None:
    die_in(directory, RECORD)
    runs["a"] = firmware
    left = unfinished(next_host, rig, directory=directory)
    (said,), doubts = look_after(next_host, next_host, rig, left)
    assert f"it runs {firmware}" in said
    assert "while the image was sent to it" in said
    assert doubts == {}
    assert next_host.list_dir(directory) == []


def test_the_copy_of_the_image_is_removed_from_the_rig(
    directory: str, next_host: Host, rig: Rig, runs: dict[str, str | None], tmp_path: Path
) -> None:
    copy = tmp_path / "0123abcd-1.1.bin"
    copy.write_bytes(b"microcode")
    die_in(directory, replace(RECORD, copy=str(copy)))
    left = unfinished(next_host, rig, directory=directory)
    for _ in range(2):  # the drive is in doubt, so that it stays on record
        _, doubts = look_after(next_host, next_host, rig, left)
        assert "a" in doubts
        assert not copy.exists()


def test_a_drive_that_does_not_answer(
    directory: str, next_host: Host, rig: Rig, runs: dict[str, str | None]
) -> None:
    die_in(directory, AT_ONCE)
    runs["a"] = None
    left = unfinished(next_host, rig, directory=directory)
    _, doubts = look_after(next_host, next_host, rig, left)
    assert "(is not there); it may hold a part of the image" in doubts["a"]
    assert f"leadline power --rig {rig.path} --drive a cycle --yes" in doubts["a"]


def test_the_last_of_two_speaks_for_the_drive(
    directory: str, next_host: Host, rig: Rig, runs: dict[str, str | None]
) -> None:
    die_in(directory, RECORD)
    die_in(directory, replace(RECORD, revision="later", shows="2.0"), "activating")
    left = unfinished(next_host, rig, directory=directory)
    said, doubts = look_after(next_host, next_host, rig, left)
    assert len(said) == 2
    assert "may hold later" in doubts["a"]


def test_a_run_killed_before_the_power_cycle_leaves_in_doubt_what_the_drive_says_early(
    directory: str, next_host: Host, rig: Rig, runs: dict[str, str | None]
) -> None:
    """Its step is on record before the outlet is switched, which may wait for others' turns."""
    die_in(directory, WAITS, "activating")
    runs["a"] = "1.1"
    left = unfinished(next_host, rig, directory=directory)
    _, doubts = look_after(next_host, next_host, rig, left)
    assert "it says 1.1, which waits for a power cycle, so that it may run 1.0 still" in doubts["a"]
    assert unfinished(next_host, rig, directory=directory) == left
