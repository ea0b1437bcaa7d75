"""Conditions around a batch: each disturbance is seen, and what cannot be known voids nothing."""

from collections.abc import Callable, Sequence
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import Any, cast

import pytest

from leadline.drive.conditions import (
    Conditions,
    IoCounts,
    ProcessorTime,
    Surroundings,
    look,
    parse_link_speed,
    parse_processors,
    parse_stat,
    together,
)
from leadline.drive.disturbances import Asked, compare
from leadline.drive.finding import MEANINGS, Finding, failed
from leadline.host.connection import Host
from leadline.load.slices import SliceSetting
from leadline.load.workload import random_read
from leadline.vetting import asked_of
from selftests.slice_drive import SliceDrive

REQUESTS = 1000
ASKED = Asked(bytes=REQUESTS * 4096, bytes_per_s=100e6)
BEFORE = Conditions(
    io=IoCounts(reads=500, sectors_read=4000),
    commands=700,
    errors=2,
    settings={"queue/scheduler": "none", "queue/nomerges": "2", "cache_type": "write back"},
    temperature_c=40.0,
    temperature_max_c=70.0,
    neighbours={"sdb": IoCounts(reads=90, writes=10, sectors_read=720)},
    link_bytes_per_s=600e6,
    processors=ProcessorTime(elapsed=5000, stolen=70),
)
AFTER = replace(
    BEFORE,
    io=IoCounts(reads=500 + REQUESTS, sectors_read=4000 + 8 * REQUESTS),
    commands=700 + REQUESTS,
    processors=ProcessorTime(elapsed=5600, stolen=130),
)
NAMES = {
    "merged",
    "neighbour",
    "settings-moved",
    "temperature",
    "other-io",
    "other-commands",
    "page-cache",
    "errors",
    "link-limit",
    "steal-time",
}


def found(
    after: Conditions = AFTER,
    before: Conditions = BEFORE,
    pinned: Conditions = BEFORE,
    asked: Asked = ASKED,
) -> tuple[Finding, ...]:
    return compare(pinned, before, after, asked)


def void_names(findings: tuple[Finding, ...]) -> set[str]:
    return {finding.name for finding in failed(findings)}


def io(**more: int) -> Conditions:
    """The conditions afterwards, with so much more counted."""
    assert AFTER.io is not None
    added: dict[str, Any] = {name: getattr(AFTER.io, name) + n for name, n in more.items()}
    return replace(AFTER, io=replace(AFTER.io, **added))


def test_a_quiet_batch_is_sound_by_every_check() -> None:
    findings = found()
    assert {finding.name for finding in findings} == NAMES
    assert {finding.outcome for finding in findings} == {"ok"}
    assert set(MEANINGS) >= NAMES


def beside(**counts: int) -> Conditions:
    """What the disk beside it did."""
    was = BEFORE.neighbours["sdb"]
    added: dict[str, Any] = {name: getattr(was, name) + n for name, n in counts.items()}
    return replace(AFTER, neighbours={"sdb": replace(was, **added)})


def moved(**settings: str) -> Conditions:
    named = {name.replace("_", "/", 1): text for name, text in settings.items()}
    return replace(AFTER, settings={**BEFORE.settings, **named})


@pytest.mark.parametrize(
    ("after", "name", "says"),
    [
        (io(reads_merged=1), "merged", "1 requests merged"),
        (io(writes_merged=3), "merged", "3 requests merged"),
        (beside(reads=51), "neighbour", "sdb did 51 requests"),
        (beside(writes=20, sectors_written=500), "neighbour", "sdb did 20 requests"),
        (moved(queue_scheduler="bfq"), "settings-moved", "'none' and is 'bfq'"),
        (replace(AFTER, settings={}), "settings-moved", "is 'gone'"),
        (replace(AFTER, temperature_c=50.5), "temperature", "40 degrees"),
        (replace(AFTER, temperature_c=29.5), "temperature", "29.5 after"),
        (replace(AFTER, errors=3), "errors", "1 commands failed"),
        (replace(AFTER, commands=1703), "other-commands", "1003 commands, of which 1000"),
        (io(sectors_read=-160), "page-cache", "4.014 MB went"),
        (replace(AFTER, processors=ProcessorTime(5600, 131)), "steal-time", "kept 0.10 of a"),
        (replace(AFTER, processors=ProcessorTime(5600, 970)), "steal-time", "kept 1.50 of a"),
    ],
)
def test_one_disturbance_voids_by_its_own_name_and_says_what_was_seen(
    after: Conditions, name: str, says: str
) -> None:
    findings = found(after)
    assert void_names(findings) == {name}
    assert says in next(each.found for each in findings if each.name == name)


def test_another_program_that_reads_the_drive_is_seen() -> None:
    after = replace(io(reads=17, sectors_read=136), commands=1717)
    assert void_names(found(after)) == {"other-io"}


@pytest.mark.parametrize(
    "after",
    [
        beside(writes=16, sectors_written=128),
        replace(AFTER, temperature_c=49.5),
        replace(AFTER, commands=1702),
        replace(io(reads=16, sectors_read=128), commands=1716),
        replace(io(flushes=5), commands=1705),
        replace(AFTER, processors=ProcessorTime(5010, 75)),
    ],
    ids=["system disk", "warmed", "drivetemp", "udev", "flushes of ours", "a few ticks"],
)
def test_what_any_rig_does_besides_is_allowed(after: Conditions) -> None:
    assert void_names(found(after)) == set()


def test_a_drive_above_its_own_maximum_is_too_hot_however_steady() -> None:
    hot: dict[str, Any] = {"temperature_c": 71.0}
    findings = found(replace(AFTER, **hot), replace(BEFORE, **hot))
    assert void_names(findings) == {"temperature"}


def test_a_setting_that_moved_between_two_batches_is_seen() -> None:
    settings = {**BEFORE.settings, "queue/nomerges": "0"}
    findings = found(replace(AFTER, settings=settings), replace(BEFORE, settings=settings))
    assert void_names(findings) == {"settings-moved"}
    findings = found(before=replace(BEFORE, settings=settings))
    assert void_names(findings) == {"settings-moved"}, "and was set back under load"


def test_a_link_that_is_nearly_full_is_the_limit() -> None:
    assert void_names(found(asked=replace(ASKED, bytes_per_s=541e6))) == {"link-limit"}


def test_streams_are_meant_to_fill_the_link() -> None:
    full = replace(ASKED, bytes_per_s=541e6, sequential=True)
    assert void_names(found(asked=full)) == set()
    assert void_names(found(asked=replace(ASKED, bytes_per_s=539e6))) == set()


def test_the_kernels_command_counter_may_wrap() -> None:
    before = replace(BEFORE, commands=(1 << 32) - 100)
    assert void_names(found(replace(AFTER, commands=REQUESTS - 100), before)) == set()
    more = replace(AFTER, commands=REQUESTS - 90)
    assert void_names(found(more, before)) == {"other-commands"}


def unknown_names(findings: tuple[Finding, ...]) -> set[str]:
    return {finding.name for finding in findings if finding.outcome == "unknown"}


@pytest.mark.parametrize(
    ("without", "names"),
    [
        (Conditions, NAMES),
        (partial(replace, AFTER, temperature_c=None), {"temperature"}),
        (partial(replace, AFTER, commands=None), {"other-commands"}),
        (partial(replace, AFTER, errors=None), {"errors"}),
        (partial(replace, AFTER, link_bytes_per_s=None), {"link-limit"}),
        (partial(replace, AFTER, neighbours={}), {"neighbour"}),
        (partial(replace, AFTER, processors=None), {"steal-time"}),
        (partial(replace, AFTER, processors=BEFORE.processors), {"steal-time"}),
    ],
    ids=["all", "temperature", "commands", "errors", "link", "neighbour gone", "old", "no tick"],
)
def test_what_cannot_be_known_is_said_and_voids_nothing(
    without: Callable[[], Conditions], names: set[str]
) -> None:
    after = without()
    nothing = after == Conditions()
    findings = found(after, pinned=after if nothing else BEFORE)
    assert unknown_names(findings) == names
    assert void_names(findings) == set()


def test_counters_of_a_node_that_came_anew_are_not_compared() -> None:
    findings = found(replace(AFTER, io=IoCounts(reads=3)))
    assert {"merged", "other-io", "page-cache", "neighbour"} <= unknown_names(findings)
    assert void_names(findings) == set()


def test_a_disk_without_neighbours_is_sound() -> None:
    alone: dict[str, Any] = {"neighbours": {}}
    findings = found(replace(AFTER, **alone), replace(BEFORE, **alone))
    assert void_names(findings) | unknown_names(findings) == set()


def test_counters_of_a_disk_by_the_kernels_columns() -> None:
    new = " 8  1  64  2  9  3  72  4  0  5  6  7  0  56  1  11  12\n"
    counts = parse_stat(new)
    assert counts is not None
    assert (counts.reads, counts.writes, counts.discards, counts.flushes) == (8, 9, 7, 11)
    assert (counts.merges, counts.sectors, counts.requests) == (4, 136, 35)
    old = parse_stat(" ".join(new.split()[:11]))
    assert old is not None
    assert (old.reads, old.discards, old.flushes) == (8, 0, 0)
    assert parse_stat("") is None


STAT = """\
cpu  900 10 300 2000 50 1 9 30 400 0
cpu0 500 5 100 1000 30 1 5 10 200 0
cpu1 400 5 200 1000 20 0 4 20 200 0
intr 33 0 0
ctxt 1
"""


def test_what_a_guest_had_is_in_the_time_of_the_processors_already() -> None:
    assert parse_processors(STAT) == ProcessorTime(elapsed=1650, stolen=30)


@pytest.mark.parametrize(
    "text",
    ["", "cpu  900 10 300 2000 50 1 9\ncpu0 900 10 300 2000 50 1 9", "cpu  1 2 3 4 5 6 7 8", "cpu"],
    ids=["none", "before Linux 2.6.11", "no processors", "cut off"],
)
def test_a_kernel_that_tells_no_steal_time_is_not_guessed_at(text: str) -> None:
    assert parse_processors(text) is None


class Rig:
    """Its processors have had as much as STAT says."""

    def read_files(self, paths: Sequence[str]) -> dict[str, bytes | None]:
        return {path: STAT.encode() if path == "/proc/stat" else None for path in paths}


@pytest.mark.parametrize("before", [True, False])
def test_of_a_virtual_rig_the_processors_of_this_machine_count(before: bool) -> None:
    around = Surroundings("/sys/block/sda", {}, None, (), None)
    of_rig = look(cast("Host", Rig()), around, before=before).processors
    assert of_rig == ProcessorTime(elapsed=1650, stolen=30)
    was = parse_processors(Path("/proc/stat").read_text())
    of_here = look(cast("Host", Rig()), replace(around, emulated=True), before=before).processors
    assert was is not None
    assert of_here is not None
    assert 0 <= of_here.elapsed - was.elapsed < 6000
    assert of_here.stolen >= was.stolen


@pytest.mark.parametrize(
    ("text", "speed"), [("6.0 Gbps\n", 600e6), ("1.5 Gbps", 150e6), ("<unknown>", None), ("", None)]
)
def test_a_links_speed_is_what_its_coding_leaves(text: str, speed: float | None) -> None:
    assert parse_link_speed(text) == speed


def test_what_a_batch_asked_for_is_counted_by_the_size_of_each_slice() -> None:
    drive = SliceDrive({8: 1000.0}, noise=0.0)
    settings = [SliceSetting(8, 16), SliceSetting(8, 16, block_bytes=1 << 20)]
    slices = [replace(each, requests=100) for each in drive.measure(random_read(), settings)]
    asked = asked_of(random_read(), slices)
    assert asked.bytes == 100 * (4096 + (1 << 20))
    assert asked.sectors == asked.bytes // 512
    assert asked.bytes_per_s == pytest.approx(1000 * (1 << 20))


SECOND = replace(
    BEFORE,
    io=IoCounts(writes=7, sectors_written=56),
    commands=7,
    errors=0,
    temperature_c=45.0,
    temperature_max_c=65.0,
    neighbours={"sda": IoCounts(reads=500), "sdc": IoCounts(reads=3)},
)


def test_drives_under_one_load_are_looked_at_as_one() -> None:
    both = together({"sda": BEFORE, "sdb": SECOND})
    assert both.io == IoCounts(reads=500, sectors_read=4000, writes=7, sectors_written=56)
    assert (both.commands, both.errors) == (707, 2)
    assert (both.temperature_c, both.temperature_max_c) == (45.0, 65.0)
    assert both.link_bytes_per_s == 1200e6
    assert both.settings["sdb queue/scheduler"] == "none"
    assert both.processors == BEFORE.processors, "those of one rig"
    assert set(both.neighbours) == {"sdc"}, "they are no neighbours of one another"


def test_a_disturbance_of_either_drive_is_seen() -> None:
    before = together({"sda": BEFORE, "sdb": SECOND})
    quiet = together({"sda": AFTER, "sdb": SECOND})
    assert void_names(found(quiet, before, before)) == set()
    moved = replace(SECOND, settings={**SECOND.settings, "queue/scheduler": "bfq"})
    polled = replace(SECOND, commands=20, errors=1)
    for second, expected in ((moved, {"settings-moved"}), (polled, {"other-commands", "errors"})):
        after = together({"sda": AFTER, "sdb": second})
        assert void_names(found(after, before, before)) == expected


@pytest.mark.parametrize("name", ["io", "commands", "errors", "temperature_c", "link_bytes_per_s"])
def test_what_is_not_known_of_one_drive_is_not_known_of_all(name: str) -> None:
    unknown: Any = {name: None}
    assert getattr(together({"sda": BEFORE, "sdb": replace(SECOND, **unknown)}), name) is None


def test_a_layer_above_may_move_more_and_less_than_was_asked_and_no_more_than_that() -> None:
    unsure = replace(ASKED, unsure=0.05)
    for share, expected in ((1.055, set()), (1.07, {"other-io"}), (0.93, {"page-cache"})):
        io = IoCounts(reads=500 + REQUESTS, sectors_read=4000 + round(8 * REQUESTS * share))
        assert void_names(found(replace(AFTER, io=io), asked=unsure)) == expected
    io = IoCounts(reads=500 + REQUESTS, sectors_read=4000 + round(8 * REQUESTS * 1.055))
    assert void_names(found(replace(AFTER, io=io))) == {"other-io"}, "of a drive by itself"
