"""Predicted request sizes: the story's figures, and a kernel's splitting written out by itself."""

import dataclasses
import random
from collections.abc import Sequence

import pytest
from hypothesis import given
from hypothesis import strategies as st

from leadline.drive.request_limits import (
    BIO_STRINGS,
    KIB,
    MIB,
    RequestLimits,
    in_binary,
)
from leadline.errors import Misuse, RigTrouble

# The SATA SSD of the story, its max_sectors_kb raised as there; and the drives of the virtual rig.
STORY = RequestLimits(1024, 32767, 128, 64 * KIB)
AHCI = RequestLimits(128, 128, 168, 64 * KIB)
VIRTIO = RequestLimits(1280, 32767, 126, 64 * KIB)

PAGE = 4 * KIB
LIMITS = st.builds(
    RequestLimits,
    max_sectors_kb=st.integers(4, 5000),
    max_hw_sectors_kb=st.integers(4, 5000),
    max_segments=st.integers(1, 300),
    max_segment_size=st.integers(1, 64).map(lambda pages: pages * PAGE),
    page_bytes=st.just(PAGE),
    huge_page_bytes=st.sampled_from((64 * KIB, 2 * MIB)),
)
SIZES = st.integers(1, 1100).map(lambda pages: pages * PAGE)


def first_request(limits: RequestLimits, frames: Sequence[int]) -> int:
    """The size of the first request of a read into the page frames, as Linux 6.1 comes to it.

    One bio takes strings of neighbours until it has BIO_MAX_VECS of them; a request takes its
    segments, page by page, until one more would be too many, and ends with a sector of 4 KiB.
    """
    strings = size = segments = length = 0
    for place, frame in enumerate(frames):
        follows = place > 0 and frames[place - 1] + 1 == frame
        strings += not follows
        if follows and length + PAGE <= limits.max_segment_size:
            length += PAGE
        else:
            segments, length = segments + 1, PAGE
        if strings > BIO_STRINGS or segments > limits.max_segments:
            break
        size += PAGE
    return min(size, limits.max_sectors_kb * KIB // PAGE * PAGE)


def test_the_storys_drive_gets_512_kib_of_the_megabyte_and_all_of_it_from_hugepages() -> None:
    """128 segments of a page of 4 KiB; its update: "up to 1MB", by where the pages lie."""
    promise = STORY.promise(MIB)
    assert (promise.guaranteed, promise.possible) == (512 * KIB, MIB)
    assert promise.binding == "max_segments is 128, one for each page of 4 KiB"
    assert STORY.promise(MIB, hugepages=True).guaranteed == MIB
    assert "whole" in str(STORY.promise(MIB, hugepages=True))


def test_before_max_sectors_was_raised_two_limits_of_the_story_bound_at_once() -> None:
    """So that raising the first changed nothing, as the story found."""
    promise = dataclasses.replace(STORY, max_sectors_kb=512).promise(MIB)
    assert promise.guaranteed == 512 * KIB
    assert "max_sectors_kb is 512, which can be raised" in promise.binding
    assert "and max_segments is 128" in promise.binding
    assert promise.possible == 512 * KIB
    assert "max_segments" not in promise.ceiling


@pytest.mark.parametrize(
    ("limits", "hugepages", "guaranteed", "possible", "binding"),
    [
        (AHCI, False, 128 * KIB, 128 * KIB, "max_hw_sectors_kb is 128"),
        (AHCI, True, 128 * KIB, 128 * KIB, "max_hw_sectors_kb is 128"),
        (VIRTIO, False, 504 * KIB, MIB, "max_segments is 126"),
        (VIRTIO, True, MIB, MIB, ""),
    ],
)
def test_the_drives_of_the_virtual_rig(
    limits: RequestLimits, hugepages: bool, guaranteed: int, possible: int, binding: str
) -> None:
    promise = limits.promise(MIB, hugepages=hugepages)
    assert (promise.guaranteed, promise.possible) == (guaranteed, possible)
    assert binding in promise.binding
    assert bool(binding) == bool(promise.binding)


def test_with_segments_enough_the_kernels_own_256_pages_bind() -> None:
    promise = RequestLimits(4096, 4096, 512, 64 * KIB).promise(4 * MIB)
    assert promise.guaranteed == MIB
    assert "BIO_MAX_VECS" in promise.binding
    assert promise.possible == 4 * MIB


@given(LIMITS, SIZES, st.randoms(use_true_random=False))
def test_pages_of_which_no_two_are_neighbours_give_what_is_guaranteed(
    limits: RequestLimits, asked: int, chance: random.Random
) -> None:
    frames = [2 * frame for frame in range(asked // PAGE)]
    chance.shuffle(frames)
    assert first_request(limits, frames) == limits.promise(asked).guaranteed


@given(LIMITS, SIZES)
def test_pages_all_in_a_row_give_what_is_possible(limits: RequestLimits, asked: int) -> None:
    assert first_request(limits, range(asked // PAGE)) == limits.promise(asked).possible


@given(LIMITS, SIZES)
def test_hugepages_apart_from_one_another_give_what_is_guaranteed_of_them(
    limits: RequestLimits, asked: int
) -> None:
    each = limits.huge_page_bytes // PAGE
    frames = [page // each * 2 * each + page % each for page in range(asked // PAGE)]
    promise = limits.promise(asked, hugepages=True)
    assert first_request(limits, frames) == promise.guaranteed


@given(LIMITS, SIZES, st.lists(st.integers(1, 40), min_size=1))
def test_whatever_strings_memory_is_made_of_the_first_request_lies_between_the_two(
    limits: RequestLimits, asked: int, strings: list[int]
) -> None:
    frames: list[int] = []
    for place in range(asked // PAGE):
        frames += range(100 * place, 100 * place + strings[place % len(strings)])
    promise = limits.promise(asked)
    assert promise.guaranteed <= first_request(limits, frames[: asked // PAGE]) <= promise.possible


@given(LIMITS, SIZES, st.booleans())
def test_a_limit_is_named_exactly_where_a_request_is_split(
    limits: RequestLimits, asked: int, hugepages: bool
) -> None:
    promise = limits.promise(asked, hugepages=hugepages)
    assert 0 < promise.guaranteed <= promise.possible <= asked
    assert bool(promise.binding) == (promise.guaranteed < asked)
    assert bool(promise.ceiling) == (promise.possible < asked)
    assert in_binary(asked) in str(promise)
    assert in_binary(promise.guaranteed) in str(promise)
    assert promise.binding in str(promise)


def test_what_cannot_be_asked_is_refused() -> None:
    with pytest.raises(Misuse, match="a multiple of 512"):
        STORY.promise(1000)
    with pytest.raises(RigTrouble, match="no hugepages"):
        dataclasses.replace(STORY, huge_page_bytes=0).promise(MIB, hugepages=True)
    with pytest.raises(ValueError, match="nothing can be asked"):
        RequestLimits(128, 128, 0, 4096)


@pytest.mark.parametrize(
    ("size", "said"),
    [
        (512, "512 bytes"),
        (4096, "4 KiB"),
        (1536, "1.5 KiB"),
        (MIB, "1 MiB"),
        (1280 * KIB, "1280 KiB"),
    ],
)
def test_sizes_are_said_as_those_who_set_limits_say_them(size: int, said: str) -> None:
    assert in_binary(size) == said
