"""The suite's tests of a drive on its controller: what fails each of them, and with what words."""

from collections.abc import Callable
from dataclasses import replace
from importlib import import_module
from typing import Any

import pytest

from leadline.drive.quirks import Quirk
from leadline.errors import Inconclusive
from leadline.inventory.must import Must
from selftests.drive_specimens import LINK, sata_drive
from selftests.test_ladder import BOOT, NOT_USED, UNQUEUED, facts, ladder
from selftests.test_ladder import history as boot_log
from selftests.test_pair import GEN_1_TO_3, pair

REQUIRED = Must("required")
NONE = Must("none", source="bug 203475")


def suites(name: str) -> Callable[..., Any]:
    found: Callable[..., Any] = getattr(import_module("leadline.suite.test_controller"), name)
    return found


def test_a_link_slower_than_both_ends_fails_and_says_what_they_can() -> None:
    full_speed = suites("test_link_runs_at_full_speed")
    full_speed(pair(), REQUIRED)
    slow = sata_drive(words={76: GEN_1_TO_3}, link=replace(LINK, speed="3.0 Gbps"))
    with pytest.raises(AssertionError, match=r"now 3 Gb/s, drive 6 Gb/s, controller 6 Gb/s"):
        full_speed(pair(slow), REQUIRED)
    full_speed(pair(slow, caps="c7248f1f"), REQUIRED)
    full_speed(pair(slow, caps=""), Must("required", link_gbps=3.0))


def test_a_drive_that_does_not_tell_its_speeds_is_skipped() -> None:
    with pytest.raises(pytest.skip.Exception, match="does not report its link speeds"):
        suites("test_link_runs_at_full_speed")(pair(sata_drive(words={76: 0x0100})), REQUIRED)


def test_a_port_that_is_slower_than_its_kind_must_be_fails() -> None:
    port = suites("test_the_port_is_as_fast_as_its_controller_must_be")
    six = Must("required", link_gbps=6.0)
    port(pair(), six)
    with pytest.raises(AssertionError, match=r"limited to 1\.5 Gb/s"):
        port(pair(limit="1.5 Gbps"), six)
    with pytest.raises(pytest.skip.Exception, match="does not report the speed of its ports"):
        port(pair(caps=""), six)


def test_a_pair_that_must_not_queue_and_does_fails_with_the_source() -> None:
    kept = suites("test_a_pair_that_must_not_queue_is_kept_from_it")
    with pytest.raises(AssertionError, match=r"must be off here: bug 203475\n") as told:
        kept(ladder(facts()), NONE)
    assert "overlap: holds" in str(told.value)
    off = replace(facts(), history=boot_log(*BOOT[:3], NOT_USED), queue_depth=1, overlap=UNQUEUED)
    kept(ladder(off), NONE)


def test_a_queue_deeper_than_the_controller_bears_fails() -> None:
    bears = suites("test_the_queue_is_no_deeper_than_the_controller_bears")
    bears(31, Must("required", 31))
    with pytest.raises(AssertionError):
        bears(32, Must("required", 31))


def test_quirks_that_are_missing_or_not_expected_fail() -> None:
    every = suites("test_the_kernel_minds_every_quirk_that_is_known")
    no_other = suites("test_the_kernel_minds_no_other_quirk")
    expected = Must("required", quirks=("bridge-limits",))
    every(pair(), expected)
    no_other(pair(), expected)
    with pytest.raises(AssertionError):
        every(pair(), Must("required", quirks=("noncqtrim",)))
    with pytest.raises(AssertionError):
        no_other(pair(), Must("required", quirks=()))
    with pytest.raises(Inconclusive):
        every(pair(), Must("required", quirks=("zeroaftertrim",)))


def test_quirks_of_which_the_log_is_gone_are_skipped_and_those_that_are_seen_fail() -> None:
    every = suites("test_the_kernel_minds_every_quirk_that_is_known")
    no_other = suites("test_the_kernel_minds_no_other_quirk")
    lost = replace(pair(None, "something"), whole_log=False)
    for test in (every, no_other):
        with pytest.raises(pytest.skip.Exception, match="log is gone"):
            test(lost, Must("required", quirks=("noncqtrim",)))
    trim = replace(lost, quirks=(Quirk("noncqtrim", "trim"),))
    every(trim, Must("required", quirks=("noncqtrim",)))
    with pytest.raises(AssertionError):
        no_other(trim, Must("required", quirks=()))
