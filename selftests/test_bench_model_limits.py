"""What the benchmark of the virtual drive's model makes of its figures, without a drive."""

from dataclasses import replace
from typing import Any

import pytest

from bench.model import OPERATIONS, Measured, figures_of

RIGHT = Measured(
    transport_ms=0.3,
    alone=1e3 / 10.3,
    skewed_ms=6.93,
    full=800.0,
    in_flight=32,
    processor_us={"ssd": 200.0, "disk": 480.0},
    operations=OPERATIONS,
    wrong=0,
    verified_s=300.0,
)


def missed(measured: Measured) -> list[str]:
    found: Any = figures_of(measured)
    names = [name for name, each in found["figures"].items() if not each["within_limits"]]
    assert found["within_limits"] == (not names)
    return names


def test_each_figure_has_its_limit() -> None:
    found: Any = figures_of(RIGHT)
    assert missed(RIGHT) == []
    assert {name: each["limit"] for name, each in found["figures"].items()} == {
        "depth_1_rate": "within 3%",
        "skewed_median_ms": "within 20%",
        "saturated_rate": "within 3%",
        "in_flight": "at least 32",
        "verified_operations": "at least 1000000",
        "wrong_operations": "at most 0",
        "processor_us_per_request_of_ssd": "at most 625",
        "processor_us_per_request_of_disk": "at most 625",
    }


@pytest.mark.parametrize("share", [0.96, 1.04])
def test_depth_1_is_held_against_the_service_time_and_what_the_way_takes(share: float) -> None:
    assert missed(replace(RIGHT, alone=share * RIGHT.alone)) == ["depth_1_rate"]
    assert missed(replace(RIGHT, alone=(1 + (share - 1) / 2) * RIGHT.alone)) == []
    slow: Any = figures_of(replace(RIGHT, transport_ms=1.0))
    assert slow["figures"]["depth_1_rate"]["expected"] == pytest.approx(1e3 / 11, abs=0.01)


@pytest.mark.parametrize(
    ("changed", "name"),
    [
        (replace(RIGHT, skewed_ms=10.0), "skewed_median_ms"),
        (replace(RIGHT, full=775.0), "saturated_rate"),
        (replace(RIGHT, full=825.0), "saturated_rate"),
        (replace(RIGHT, in_flight=31), "in_flight"),
        (replace(RIGHT, operations=OPERATIONS - 1), "verified_operations"),
        (replace(RIGHT, wrong=1), "wrong_operations"),
        (
            replace(RIGHT, processor_us={"ssd": 200.0, "disk": 626.0}),
            "processor_us_per_request_of_disk",
        ),
    ],
)
def test_a_figure_that_misses_its_limit_is_told_by_name(changed: Measured, name: str) -> None:
    assert missed(changed) == [name]
