"""The virtual drive against its profile, as `./run bench model` does at full size."""

from math import log
from pathlib import Path
from typing import Any

import pytest

from bench import model
from leadline.errors import RigTrouble
from leadline.virtual import mount
from leadline.virtual.request_log import read_request_log


def _fuse_trouble() -> str:
    try:
        mount.load_fuse()
    except RigTrouble as trouble:
        return str(trouble)
    return ""


pytestmark = [
    pytest.mark.measures,
    pytest.mark.skipif(bool(_fuse_trouble()), reason=_fuse_trouble() or "FUSE works"),
]


def test_every_byte_is_right_under_32_threads_and_after_a_power_cut(tmp_path: Path) -> None:
    assert model.wrong_operations(tmp_path, 20_000) == 0


def test_every_byte_of_a_disk_is_right_in_whatever_order_it_is_served(tmp_path: Path) -> None:
    assert model.wrong_operations(tmp_path, 1_280, model.DISK) == 0


@pytest.mark.parametrize(
    "fault", ["faults: {wrong_data: {one_in: 100}}\n", "faults: {ignore_flush: true}\n"]
)
def test_a_wrong_byte_is_counted(tmp_path: Path, fault: str) -> None:
    assert model.wrong_operations(tmp_path, 3_200, model.NO_SERVICE + fault) > 0


def test_a_lone_request_takes_the_service_time_of_the_profile(tmp_path: Path) -> None:
    model.rate(tmp_path, model.SSD + "jitter: 0\n", 1, 2.0)
    took_ms = sorted(
        (r.end_ns - r.start_ns) / 1e6 for r in read_request_log(tmp_path / "state/requests.jsonl")
    )
    # A busy machine makes answers late, and nothing makes them early.
    assert model.READ_MS <= took_ms[0] <= model.READ_MS * (1 + model.TOLERANCE)


@pytest.mark.parametrize("channels", [8, 2])
def test_a_full_queue_gets_what_the_channels_give(tmp_path: Path, channels: int) -> None:
    profile = model.SSD.replace(f"channels: {model.CHANNELS}", f"channels: {channels}")
    rate = model.rate(tmp_path, profile, model.THREADS, 4.0)
    assert rate == pytest.approx(channels / model.READ_MS * 1e3, rel=model.TOLERANCE)
    assert model.most_in_flight(tmp_path) == model.THREADS


def test_the_median_of_lone_requests_tells_the_distribution(tmp_path: Path) -> None:
    """Of the same mean: 10 ms is the median of the one, 6.9 ms that of the other."""
    alike = model.SKEWED.replace("exponential", "normal")
    skewed, normal = (model.lone_ms(tmp_path, each, 4.0) for each in (model.SKEWED, alike))
    assert skewed == pytest.approx(model.READ_MS * log(2), rel=0.3)
    assert normal == pytest.approx(model.READ_MS, rel=0.1)


def test_the_bench_measures_all_of_it() -> None:
    figures: Any = model.measure(operations=640, seconds=0.5)["figures"]
    assert figures["wrong_operations"]["value"] == 0
    assert figures["verified_operations"]["value"] == 640
    assert isinstance(figures["skewed_median_ms"]["off"], float)
    for kind in ("ssd", "disk"):
        assert 0 < figures[f"processor_us_per_request_of_{kind}"]["value"] < 10_000
