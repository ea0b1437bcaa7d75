"""Where the time of requests went, by traces whose requests are known."""

import random
from collections.abc import Sequence
from dataclasses import dataclass

import pytest
from hypothesis import given
from hypothesis import strategies as st

from leadline.drive.layers import Layers, read_layers

DISK, PORT = (8, 16), (2, 0)
LOG = """\
# tracer: nop
#
# entries-in-buffer/entries-written: 12/12   #P:2
#
#           TASK-PID     CPU#  |||||  TIMESTAMP  FUNCTION
             fio-812     [001] .....    95.100000: block_getrq: 8,16 R 32368 + 8 [fio]
             fio-812     [001] .....    95.100100: block_getrq: 8,16 R 500 + 8 [fio]
    kworker/1:1H-60      [001] .....    95.101000: block_rq_issue: 8,16 R 4096 () 32368 + 8 [fio]
    kworker/1:1H-60      [001] d..1.    95.101200: ata_qc_issue: ata_port=2 ata_dev=0 tag=7 \
proto=ATA_PROT_NCQ cmd=READ FPDMA QUEUED  tf=(60/08:38:70:7e:00/00:00:00:00:00/40)
         <idle>-0    [000] d.h1.    95.105200: ata_qc_complete_done: ata_port=2 ata_dev=0 tag=7 \
flags=b{ ACTIVE DMAMAP IO } status={ DRDY }  res=(40/00:00:00:00:00/00:00:00:00:00/00)
          <idle>-0       [000] ..s1.    95.105500: block_rq_complete: 8,16 R () 32368 + 8 [0]
    kworker/1:1H-60      [001] .....    95.106000: block_rq_issue: 8,16 R 4096 () 500 + 8 [fio]
    kworker/1:1H-60      [001] d..1.    95.106100: ata_qc_issue: ata_port=2 ata_dev=0 tag=7 \
proto=ATA_PROT_DMA cmd=READ DMA  tf=(c8/00:08:f4:01:00/00:00:00:00:00/e0)
         <idle>-0    [000] d.h1.    95.108100: ata_qc_complete_done: ata_port=2 ata_dev=0 tag=7 \
flags=b{ ACTIVE DMAMAP IO } status={ DRDY }  res=(50/00:00:00:00:00/00:00:00:00:00/00)
          <idle>-0       [000] ..s1.    95.108200: block_rq_complete: 8,16 R () 500 + 8 [0]
"""


def means(found: Layers) -> dict[str, float]:
    """Milliseconds by layer."""
    return {layer.name: 1e3 * layer.mean_s for layer in found.layers}


def test_each_layer_of_two_requests_that_took_turns() -> None:
    found = read_layers(LOG, DISK, PORT)
    assert (found.matched, found.seen) == (2, 2)
    assert means(found) == {
        "block layer": pytest.approx((1.0 + 5.9) / 2),
        "driver": pytest.approx((0.2 + 0.1) / 2),
        "device": pytest.approx((4.0 + 2.0) / 2),
        "completion": pytest.approx((0.3 + 0.1) / 2),
    }
    assert found.held == pytest.approx(1.0)


def test_behind_another_adapter_driver_and_device_are_one_layer() -> None:
    found = read_layers(LOG, DISK, None)
    assert found.matched == 2
    assert means(found) == {
        "block layer": pytest.approx((1.0 + 5.9) / 2),
        "driver and device": pytest.approx((4.5 + 2.2) / 2),
    }


@pytest.mark.parametrize(("device", "place"), [((8, 0), PORT), (DISK, (1, 0)), (DISK, (2, 1))])
def test_another_drives_events_are_not_this_ones(
    device: tuple[int, int], place: tuple[int, int]
) -> None:
    assert read_layers(LOG, device, place).matched == 0


def test_newer_kernels_print_a_priority_too() -> None:
    newer = LOG.replace("+ 8 [", "+ 8 none,0,0 [")
    assert read_layers(newer, DISK, PORT) == read_layers(LOG, DISK, PORT)


@pytest.mark.parametrize("lost", range(5, 15))
def test_a_request_of_which_an_event_is_lost_does_not_count(lost: int) -> None:
    lines = LOG.splitlines()
    assert read_layers("\n".join([*lines[:lost], *lines[lost + 1 :]]), DISK, PORT).matched == 1


def test_a_request_that_failed_does_not_count() -> None:
    failed = LOG.replace("32368 + 8 [0]", "32368 + 8 [-5]")
    assert read_layers(failed, DISK, PORT).matched == 1
    failed = LOG.replace("ata_qc_complete_done", "ata_qc_complete_failed")
    assert read_layers(failed, DISK, PORT).matched == 0


def test_two_requests_at_one_sector_at_once_count_for_nothing() -> None:
    found = read_layers(LOG.replace(" 500 + 8", " 32368 + 8"), DISK, PORT)
    assert (found.matched, found.seen) == (0, 2)


def test_what_the_driver_turned_away_has_waited_until_it_was_issued_again() -> None:
    again = LOG.splitlines()
    again.insert(7, again[7].replace("95.101000", "95.100500"))
    again.insert(8, again[7].replace("rq_issue", "rq_insert").replace("95.100500", "95.100700"))
    assert read_layers("\n".join(again), DISK, PORT) == read_layers(LOG, DISK, PORT)


def test_a_kernel_that_tells_only_of_the_insertion() -> None:
    inserted = LOG.replace("block_getrq: 8,16 R ", "block_rq_insert: 8,16 R 4096 () ")
    assert read_layers(inserted, DISK, PORT) == read_layers(LOG, DISK, PORT)


def test_an_lba_is_in_units_of_the_drives_own_blocks() -> None:
    large = LOG.replace(" 500 + 8", " 4000 + 8").replace(" 32368 + 8", " 258944 + 8")
    assert read_layers(large, DISK, PORT, logical_bytes=4096).matched == 2
    assert read_layers(large, DISK, PORT).matched == 0


def test_it_says_how_many_were_matched() -> None:
    said = str(read_layers(LOG, DISK, PORT))
    assert "device 3 ms (median 3 ms), completion 0.2 ms (median 0.2 ms); " in said
    assert said.endswith("1 on the device at once, 2 of 2 requests matched")
    assert str(read_layers("", DISK, PORT)) == "0 of 0 requests matched"


@given(st.text())
def test_whatever_stands_there_it_is_read(text: str) -> None:
    shown = LOG[: len(text)] + text + LOG[len(text) :]
    assert read_layers(shown, DISK, PORT).matched <= 2


@dataclass(frozen=True)
class Known:
    """A request: its LBA, its tag, and microseconds at which it came to each of five steps."""

    lba: int
    tag: int
    at: tuple[int, ...]

    def lines(self, queued: bool) -> list[tuple[int, str]]:
        lba = self.lba.to_bytes(6, "little").hex(":")
        low, high = lba[:8], lba[9:]
        tf = f"25/00:08:{low}/00:00:{high}/40"
        if queued:
            tf = f"60/08:{self.tag << 3:02x}:{low}/00:00:{high}/40"
        elif self.lba < 1 << 28:
            tf = f"c8/00:08:{low}/00:00:00:00:00/{0xE0 | self.lba >> 24:02x}"
        where = f"ata_port=2 ata_dev=0 tag={self.tag}"
        texts = (
            f"block_getrq: 8,16 R {self.lba} + 8 [fio]",
            f"block_rq_issue: 8,16 R 4096 () {self.lba} + 8 [kworker/0:1H]",
            f"ata_qc_issue: {where} proto=ATA_PROT_NCQ cmd=ANY  tf=({tf})",
            f"ata_qc_complete_done: {where} flags=b{{ IO }} status={{ DRDY }}  res=(40/00)",
            f"block_rq_complete: 8,16 R () {self.lba} + 8 [0]",
        )
        return list(zip(self.at, texts, strict=True))


def trace_of(requests: Sequence[Known], queued: bool) -> str:
    lines = sorted(line for request in requests for line in request.lines(queued))
    head = "          <idle>-0       [000] d.h1."
    return "\n".join(f"{head} {at // 10**6:5}.{at % 10**6:06}: {text}" for at, text in lines)


@given(st.integers(1, 40), st.integers(1, 32), st.booleans(), st.integers(0, 1 << 32))
def test_requests_that_overlap_are_told_apart(
    count: int, depth: int, queued: bool, seed: int
) -> None:
    """As a drive of this depth has them: a tag is used again when its command is done."""
    chance = random.Random(seed)
    lbas = chance.sample(
        [first + n for first in (0, 0x0BCDEF00, 1 << 28) for n in range(64)], count
    )
    free, requests = [0] * depth, []
    for lba in lbas:
        tag = min(range(depth), key=lambda each: free[each])
        got = chance.randrange(50)
        steps = [max(got + 1, free[tag] + 1)]
        for _ in range(3):
            steps.append(steps[-1] + chance.randint(1, 10_000))
        free[tag] = steps[2]
        requests.append(Known(lba, tag, (got, steps[0], *steps[1:])))
    found = read_layers(trace_of(requests, queued), DISK, PORT)
    assert (found.matched, found.seen) == (count, count)
    for number, layer in enumerate(found.layers):
        took = [each.at[number + 1] - each.at[number] for each in requests]
        assert layer.mean_s * 1e6 == pytest.approx(sum(took) / count, abs=1e-3)
    assert 1 - 1e-9 <= found.held <= depth + 1e-9


def test_what_the_device_held_is_an_average_over_its_busy_time() -> None:
    """4 ms of one command, 2 ms of two, then nothing, then 1 ms of one."""
    requests = [
        Known(1, 1, (0, 1, 1000, 7000, 7001)),
        Known(2, 2, (0, 2, 5000, 7000, 7002)),
        Known(3, 3, (0, 3, 9000, 10000, 10001)),
    ]
    found = read_layers(trace_of(requests, queued=True), DISK, PORT)
    assert found.held == pytest.approx((4 + 2 * 2 + 1) / 7)
