"""Which recorded runs are void: by Little's law, the page cache, a throttle, too few requests."""

import pytest

from selftests.recorded_files import changed, fio2, fio3, run_of


@pytest.mark.parametrize(
    ("in_flight", "fio_s", "voids"),
    [
        (8, 0.0, ()),
        (8, 14e-6, ()),  # fio's own work between two requests
        (8, 100e-6, ("littles-law",)),
        (6, 0.0, ("littles-law",)),
        (9, 0.0, ("littles-law",)),
        (1, 0.0, ("littles-law",)),
    ],
)
def test_littles_law_voids_a_run_whose_queue_was_not_kept_full(
    in_flight: int, fio_s: float, voids: tuple[str, ...]
) -> None:
    run = run_of(fio3(50_000, 8, in_flight=in_flight, fio_s=fio_s))
    assert run.voids == voids
    assert run.little_ratio == pytest.approx((in_flight - 50_000 * fio_s) / 8)


def test_old_fios_microseconds_are_no_breach_of_littles_law() -> None:
    document = fio2(20_000, 1)
    for name, mean in (("lat", 53.0), ("clat", 52.0)):
        document["jobs"][0]["read"][name]["mean"] = mean
    assert run_of(document).little_ratio == pytest.approx(1.06)
    assert run_of(document).voids == ("littles-law",)
    document["jobs"][0]["read"]["lat"]["mean"] = 52.0  # 4 %: a clock of 1 us at 50 us
    assert run_of(document).voids == ()


def test_without_latencies_fios_own_count_of_the_depth_serves() -> None:
    bare = fio3(5000, 8)
    for name in ("lat_ns", "clat_ns", "slat_ns"):
        bare["jobs"][0]["read"][name] = {"mean": 0.0, "max": 0}
    run = run_of(bare)
    assert (run.little_ratio, run.figures.latency, run.voids) == (None, None, ())
    assert "kept no latencies" in run.notes[0]
    shallow = changed(bare, iodepth_level={"1": 95.0, "8": 5.0})
    assert run_of(shallow).voids == ("littles-law",)


def test_completion_and_submission_serve_where_the_whole_was_not_kept() -> None:
    document = fio3(5000, 8)
    del document["jobs"][0]["read"]["lat_ns"]
    assert run_of(document).little_ratio == pytest.approx(1, abs=0.002)


@pytest.mark.parametrize(
    ("options", "voids"),
    [
        ({"direct": "0"}, ("page-cache",)),
        ({"direct": ""}, ("page-cache",)),
        ({"direct": "", "buffered": "0"}, ()),
        ({"direct": "", "ioengine": "sg"}, ()),
        ({"rate_iops": "5000"}, ("throttled",)),
        ({"thinktime": "0"}, ()),
    ],
)
def test_a_run_that_did_not_measure_the_drive_is_void(
    options: dict[str, str], voids: tuple[str, ...]
) -> None:
    assert run_of(fio3(5000, 8, asked=options)).voids == voids


def test_a_handful_of_requests_is_no_rate() -> None:
    assert run_of(fio3(2, 32, seconds=60)).voids == ("too-short",)
