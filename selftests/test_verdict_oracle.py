"""The always-valid interval and p-value against a foreign implementation, savvi.

savvi (https://pypi.org/project/savvi) has the same closed form for a coefficient of a linear
regression; a mean is the coefficient of a constant.  It is in the extra `oracle`, which tox
installs: in a test's own environment made on the fly it would need a network and a minute
each time.  It takes one degree of freedom too few: with p regressors it counts
nu = n - p - 1, where its own standard error, and Lindon et al. with one of them under test,
have n - p.  So nu is set right here; everything else is savvi's.
"""

import random
from typing import Any

import numpy as np
import pytest

from leadline.verdict.interval import (
    ALPHA,
    PHI,
    interval_of,
    log_e_value,
    p_value,
    width_factor,
)

savvi = pytest.importorskip(
    "savvi.linear_regression", reason="savvi is not installed: pip install 'leadline[oracle]'"
)


def values_of(count: int, seed: int, mean: float = 0.1, spread: float = 0.05) -> list[float]:
    """Normal values, low and high in turn: their correlation is negative, and no guard acts."""
    chance = random.Random(seed)
    ordered = sorted(chance.gauss(mean, spread) for _ in range(count))
    turned = [*ordered]
    turned[0::2], turned[1::2] = ordered[: (count + 1) // 2], ordered[(count + 1) // 2 :]
    return turned


def fitted(values: list[float]) -> Any:
    model = savvi.LinearRegression(ALPHA, p=1, phi=PHI)
    model.nu = lambda: model.n - model.p
    for value in values:
        model.update(np.array([value, 1.0]))
    return model


@pytest.mark.parametrize("seed", range(5))
@pytest.mark.parametrize("count", [4, 5, 8, 20, 130, 2000])
def test_interval_is_that_of_savvi(count: int, seed: int) -> None:
    values = values_of(count, seed)
    ours = interval_of(values, value_seconds=1.0, sigma_d=0.0)
    assert ours.correlation == 0.0
    ((low, high),) = fitted(values).calculate_conf_int()
    # Its least squares start from a prior of weight 1e-6.
    near = 1e-4 * ours.half_width
    assert ours.mean - ours.half_width == pytest.approx(low, abs=near)
    assert ours.mean + ours.half_width == pytest.approx(high, abs=near)


@pytest.mark.parametrize("count", [2, 3])
def test_both_say_nothing_of_three_values(count: int) -> None:
    with np.errstate(divide="ignore"):
        ((low, high),) = fitted(values_of(count, 1)).calculate_conf_int()
    assert (low, high) == (-np.inf, np.inf)
    assert width_factor(count) == np.inf


@pytest.mark.parametrize("away", [0.0, 0.01, 0.05, 0.1])
@pytest.mark.parametrize("count", [2, 4, 8, 60])
def test_p_value_is_that_of_savvi(count: int, away: float) -> None:
    values = values_of(count, 3)
    ours = interval_of(values, value_seconds=1.0, sigma_d=0.0)
    shifted = [value - ours.mean + away for value in values]
    (theirs,) = fitted(shifted).calculate_p_value()
    assert p_value(ours, ours.mean - away) == pytest.approx(min(1.0, theirs), rel=1e-4)
    errors = away / ours.error
    assert np.exp(-log_e_value(errors, count)) == pytest.approx(theirs, rel=1e-4)
