"""Whether verified writes were queued: what is seen of it at the drive, and what comes of it."""

from dataclasses import replace

import pytest

from leadline import queued_writes
from leadline.drive.ladder import Rung
from leadline.drive.overlap import Overlap
from leadline.errors import DriveFault, Inconclusive
from leadline.queued_writes import AtDrive
from selftests.test_verified_writes import QUEUED, STRETCHES, World, first_lba, world, writes
from selftests.visit_world import Bench, bench, kept

__all__ = ["bench", "world"]  # fixtures

ONE_BY_ONE = Overlap("libata", 40, {"READ DMA EXT": 10, "WRITE DMA EXT": 30}, 0, 0, 0.0)
HARDLY = Overlap("libata", 1, {"WRITE FPDMA QUEUED": 1}, 1, 1, 1.0)
TAKEN_AWAY = Rung("kernel", False, "libata.force=1:noncq takes NCQ away")
METHODS = ["read_back_at_once", "outlast_a_power_cycle", "outlast_a_power_cut"]


@pytest.mark.parametrize("method", METHODS)
def test_what_reached_the_drive_is_on_record(world: World, bench: Bench, method: str) -> None:
    """Seen in the middle of the load, and before any power is cut."""
    world.meanwhile = lambda: world.moments.append(-1)
    intact = getattr(writes(world), method)()
    assert intact.at_drive.queued is True
    before, after, *cuts = world.moments
    assert STRETCHES * 512 // 64 <= before <= after
    assert cuts == [-1] * len(world.cuts)
    said = [r["value"] for r in kept(bench.folder, "environment") if "verified" in r["name"]]
    assert all("30 WRITE FPDMA QUEUED; at most 31 outstanding at once" in each for each in said)
    assert "climb" not in bench.did, "nobody asks why it does"


def test_a_moment_is_of_requests_that_were_answered_in_it(world: World) -> None:
    writes(world).outlast_a_power_cut()
    before, after = world.moments
    assert after > before


@pytest.mark.parametrize("method", METHODS)
def test_writes_that_came_one_by_one_are_no_evidence_of_a_queue(
    world: World, bench: Bench, method: str
) -> None:
    world.seen, bench.rungs = ONE_BY_ONE, (TAKEN_AWAY,)
    with pytest.raises(Inconclusive) as caught:
        getattr(writes(world), method)()
    said = str(caught.value)
    assert said.startswith(
        "slot a: MODEL SERIAL-a: nothing is wrong with its data, but the writes "
    )
    assert "30 WRITE DMA EXT; none of them queued; the kernel takes queueing away: " in said
    assert "climb" in bench.did


def test_a_moment_in_which_next_to_nothing_was_seen_is_followed_by_another(
    world: World, bench: Bench
) -> None:
    world.before = [HARDLY, HARDLY]
    assert writes(world).outlast_a_power_cut().at_drive.seen == QUEUED
    assert len(world.moments) == 6
    assert "climb" not in bench.did


def test_too_little_seen_for_ever_is_no_evidence(
    world: World, monkeypatch: pytest.MonkeyPatch
) -> None:
    # A file takes requests faster than a busy machine takes in what is said of them.
    monkeypatch.setattr(queued_writes, "MOST_MOMENTS", 2)
    world.seen = HARDLY
    with pytest.raises(Inconclusive, match=r"were not queued.* 1 WRITE FPDMA QUEUED"):
        writes(world).outlast_a_power_cut()
    assert len(world.moments) == 2 * 2


def test_what_came_one_by_one_for_long_enough_is_watched_once(world: World) -> None:
    world.seen = ONE_BY_ONE
    with pytest.raises(Inconclusive):
        writes(world).outlast_a_power_cut()
    assert len(world.moments) == 2


def test_wrong_data_outrank_a_missing_queue(world: World) -> None:
    world.seen = ONE_BY_ONE
    world.meanwhile = lambda: world.spoil(first_lba() + 7)
    with pytest.raises(DriveFault, match="after a graceful power cycle, 1 of 2048 sectors"):
        writes(world).outlast_a_power_cycle()


@pytest.mark.parametrize("promised", [1, 32])
def test_where_no_queue_is_promised_none_is_missed(world: World, promised: int) -> None:
    world.seen = ONE_BY_ONE
    world.visit.model = world.visit.model.model_copy(update={"queue_depth": promised})
    if promised > 1:
        with pytest.raises(Inconclusive, match="were not queued, as they must be"):
            writes(world).read_back_at_once()
        return
    assert writes(world).read_back_at_once().at_drive.queued is False


@pytest.mark.parametrize(("rungs", "queued"), [((), None), ((TAKEN_AWAY,), False)])
def test_without_tracing_the_ladder_tells_what_it_can(
    world: World, bench: Bench, rungs: tuple[Rung, ...], queued: bool | None
) -> None:
    """And what nobody can know is said, and held against nobody."""
    world.seen, bench.rungs = None, rungs
    if queued is None:
        intact = writes(world).read_back_at_once()
        assert intact.at_drive.queued is None
        assert "(what reached the drive was not seen: no tracing here)" in str(intact)
        return
    with pytest.raises(Inconclusive, match="no tracing here; the kernel takes queueing away"):
        writes(world).read_back_at_once()


@pytest.mark.parametrize(
    ("seen", "translated", "cause", "queued"),
    [
        (QUEUED, False, "", True),
        (QUEUED, True, "", None),
        (QUEUED, True, "the drive offers no queue: no NCQ", False),
        (replace(QUEUED, most=1), False, "", False),
        (replace(QUEUED, opcodes={"READ FPDMA QUEUED": 40}), False, "", False),
        (ONE_BY_ONE, True, "", False),
        (Overlap("scsi", 40, {"WRITE_10": 30, "READ_10": 10}, 40, 31, 20.0), False, "", True),
        (Overlap("scsi", 40, {"WRITE_10": 30, "READ_10": 10}, 40, 1, 1.0), False, "", False),
        (Overlap("scsi", 40, {"WRITE_BUFFER": 1, "READ_10": 39}, 40, 8, 4.0), False, "", False),
        (Overlap("libata", 0, {}, 0, 0, 0.0), False, "", None),
        (None, False, "", None),
    ],
)
def test_whether_writes_were_queued_is_seen_at_the_drive(
    seen: Overlap | None, translated: bool, cause: str, queued: bool | None
) -> None:
    assert AtDrive(seen, "", translated, cause).queued is queued
