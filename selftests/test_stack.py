"""Stacks as far as words and numbers go: their marks, their order, their sizes, what is left.

They are built above drives that are real to Linux in `virtual/test_layers_live.py`.
"""

import json
import re
import uuid
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from leadline.drive.bind import Seen
from leadline.errors import Misuse, RigTrouble
from leadline.host import lease
from leadline.host.connection import Host
from leadline.host.journal import Journal, close_dead_entry, dead_entries
from leadline.host.lease import take
from leadline.inventory.rig import Rig
from leadline.stack import leftover
from leadline.stack.build import Layer, check, drives_of, sizes_of
from leadline.stack.dismantle import Found, parse_found
from leadline.stack.leftover import ENTRY, put_on_record, take_down_left
from leadline.stack.mark import PREFIX, Mark, mark_in
from selftests.local_hosts import directory, host, next_host
from selftests.visit_world import WWN, make_run

__all__ = ["directory", "host", "next_host"]  # fixtures

MIB = 1 << 20
marks = st.from_regex(re.compile(PREFIX + "[0-9a-f]{24}"), fullmatch=True).map(Mark)


def test_two_stacks_have_two_marks_that_each_format_takes() -> None:
    one, other = Mark.new(), Mark.new()
    assert one != other
    assert one.name != other.name
    assert len(one.name) <= 32, "md has room for so many characters"
    assert uuid.UUID(one.uuid).hex == one.digits
    assert re.fullmatch(r"\w{8}(:\w{8}){3}", one.md_uuid)
    assert re.fullmatch(r"\w{6}(-\w{4}){5}-\w{6}", one.lvm_uuid)
    assert one.volume == f"{one.name}-data"
    assert "-" not in one.name, "the device mapper would double it"


@given(marks)
def test_a_mark_is_known_however_it_is_written(mark: Mark) -> None:
    assert {mark_in(text) for text in (mark.uuid, mark.md_uuid, mark.lvm_uuid)} == {mark}


@pytest.mark.parametrize(
    "foreign",
    [
        "",
        str(uuid.uuid5(uuid.NAMESPACE_DNS, "example.org")),
        "d1b7c9a2:1eadc0de:00000000:00000000",
        f"{PREFIX}-1234",
        PREFIX + "X" * 24,
        "qM2pYd-3Fbc-Tk0x-aaaa-bbbb-cccc-dddddd",
    ],
)
def test_a_foreign_uuid_is_no_mark(foreign: str) -> None:
    assert mark_in(foreign) is None


@pytest.mark.parametrize(
    "layers", [("ext4",), ("lvm", "ext4"), ("raid10", "lvm", "ext4"), ("raid0",), ("raid10", "lvm")]
)
def test_layers_that_can_stand_above_one_another(layers: tuple[str, ...]) -> None:
    check(layers)


@pytest.mark.parametrize(
    "layers",
    [(), ("zfs",), ("ext4", "lvm"), ("lvm", "raid10"), ("raid0", "raid10"), ("lvm", "lvm")],
)
def test_layers_that_cannot_are_refused_and_say_what_can(layers: tuple[str, ...]) -> None:
    with pytest.raises(Misuse, match="expected"):
        check(layers)


def test_the_lowest_layer_says_how_many_drives_there_are() -> None:
    assert [drives_of((each,)) for each in ("ext4", "lvm", "raid10", "raid0")] == [1, 1, 2, None]
    assert drives_of(("raid10", "lvm", "ext4")) == 2


@given(
    st.sampled_from([("ext4",), ("lvm", "ext4"), ("raid10", "lvm", "ext4"), ("raid10", "ext4")]),
    st.integers(1, 1 << 45),
)
def test_each_layer_leaves_the_one_above_what_it_needs(
    layers: tuple[Layer, ...], size: int
) -> None:
    sizes = sizes_of(layers, size)
    assert len(sizes) == len(layers)
    assert sizes[-1] == size
    for below, above, layer in zip(sizes, sizes[1:], layers[1:], strict=False):
        assert below is not None
        assert above is not None
        # ext4 has inodes of 256 bytes for each 16 KiB, and a journal of at most 1 GiB.
        needed = {"ext4": above // 64 + min(1 << 30, above // 32), "lvm": 5 * MIB}[layer]
        assert below >= above + needed
        assert below % MIB == 0


def test_an_array_may_be_as_large_as_there_is_room_and_what_is_above_may_not() -> None:
    assert sizes_of(["raid0"], None) == [None]
    with pytest.raises(Misuse, match="expected the size"):
        sizes_of(["raid0", "ext4"], None)


def test_signatures_are_read_with_their_uuids() -> None:
    mark = Mark.new()
    rows = [
        {"device": "sda", "offset": "0x1000", "type": "linux_raid_member", "uuid": mark.uuid},
        {"device": "sda", "offset": "0x1fe", "type": "dos", "uuid": None},
    ]
    found = parse_found("bench", json.dumps({"signatures": rows}).encode())
    assert found == [Found("linux_raid_member", mark.uuid), Found("dos", "")]
    assert parse_found("bench", b"") == [], "as wipefs prints nothing at all"
    with pytest.raises(RigTrouble, match="util-linux"):
        parse_found("bench", b"DEVICE OFFSET TYPE\n")


# What a dead run left.


SEEN = (
    Seen("sdp", "SERIAL-a", WWN, "MODEL", "1.0", "0:0:0:0", "sata", 1 << 30),
    Seen("sdq", "SERIAL-b", "", "MODEL", "1.0", "1:0:0:0", "sata", 1 << 30),
)


@pytest.fixture
def rig(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Rig:
    monkeypatch.setattr(lease, "DIRECTORY", str(tmp_path / "leases"))
    return make_run(tmp_path).rigs["bench"]


def die_with(host: Host, directory: str, rig: Rig, *slots: str) -> Mark:
    """A run that has put a stack above these slots on record, and is gone."""
    mark = Mark.new()
    journal = Journal(host, "dead-run", directory=directory)
    put_on_record(journal, mark, [rig.drive(slot) for slot in slots])
    host.close()
    return mark


def test_a_stack_on_drives_that_another_run_has_by_now_is_left_to_it(
    host: Host, next_host: Host, directory: str, rig: Rig
) -> None:
    die_with(host, directory, rig, "a", "b")
    with take(next_host, WWN, "a living run"):
        (said,) = take_down_left(next_host, rig, "next", directory=directory)
    assert "what run dead-run left above its drives is still there" in said
    assert "in use by a living run" in said
    assert len(dead_entries(next_host, ENTRY, directory=directory)) == 1


def test_a_stack_on_a_drive_that_the_rig_file_lacks_is_told_and_stays_on_record(
    host: Host, next_host: Host, directory: str, rig: Rig
) -> None:
    die_with(host, directory, rig, "a", "b")
    smaller = rig.model_copy(update={"drives": (rig.drive("a"),)})
    (said,) = take_down_left(next_host, smaller, "next", directory=directory)
    assert "it is on SERIAL-b, which the rig file does not have" in said
    (dead,) = dead_entries(next_host, ENTRY, directory=directory)
    close_dead_entry(next_host, dead)


def test_the_drives_of_a_dead_run_are_found_by_who_they_are_and_its_entry_closed(
    host: Host,
    next_host: Host,
    directory: str,
    rig: Rig,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    mark = die_with(host, directory, rig, "b")
    asked: list[tuple[Mark, list[str]]] = []

    def dismantle(_: Host, mark: Mark, drives: list[str]) -> list[str]:
        asked.append((mark, drives))
        return ["what is not ours is left alone"]

    monkeypatch.setattr(leftover, "scan", lambda _: SEEN)
    monkeypatch.setattr(leftover, "dismantle", dismantle)
    said = take_down_left(next_host, rig, "next", directory=directory)
    assert asked == [(mark, ["sdq"])]
    assert said[0].endswith("what run dead-run left above b was taken down")
    assert said[1:] == ["what is not ours is left alone"]
    assert dead_entries(next_host, ENTRY, directory=directory) == []
