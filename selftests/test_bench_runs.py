"""The benchmarks that run the whole, without running it: what they start, and on which rig."""

import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from types import SimpleNamespace
from typing import Any

import pytest

from bench import cold, rates


def test_what_the_suite_prints_is_not_among_the_figures(monkeypatch: pytest.MonkeyPatch) -> None:
    given: list[dict[str, Any]] = []

    def run(words: Any, **options: Any) -> "subprocess.CompletedProcess[bytes]":
        given.append(options)
        return subprocess.CompletedProcess(words, 0)

    monkeypatch.setattr(subprocess, "run", run)
    assert cold.measure()["within_limits"] is True
    assert given[-1]["stdout"] is sys.stderr


@pytest.mark.parametrize(("ratio", "within"), [(0.985, True), (0.975, False)])
def test_rates_are_compared_on_a_rig_of_the_benchs_own(
    monkeypatch: pytest.MonkeyPatch, ratio: float, within: bool
) -> None:
    """A user's that is up keeps its queue depth and its scheduler, and is not loaded."""
    up: list[object] = []

    @contextmanager
    def under_test(folder: object, profile: object) -> Iterator[SimpleNamespace]:
        up.append(profile)
        yield SimpleNamespace(host="h", drive="d")

    monkeypatch.setattr(rates, "under_test", under_test)
    monkeypatch.setattr(rates, "_compare", lambda host, drive, depth: {"ratio": ratio})
    figures = rates.measure()
    assert figures["requests_per_second"] == {key: {"ratio": ratio} for key in rates.DEPTHS}
    assert figures["within_limits"] is within
    assert up == [rates.PROFILE]
