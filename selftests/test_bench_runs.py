"""The benchmarks that run the whole, without running it: what they start, and on which rig."""

import subprocess
import sys
from typing import Any

import pytest

from bench import cold


def test_what_the_suite_prints_is_not_among_the_figures(monkeypatch: pytest.MonkeyPatch) -> None:
    given: list[dict[str, Any]] = []

    def run(words: Any, **options: Any) -> "subprocess.CompletedProcess[bytes]":
        given.append(options)
        return subprocess.CompletedProcess(words, 0)

    monkeypatch.setattr(subprocess, "run", run)
    assert cold.measure()["within_limits"] is True
    assert given[-1]["stdout"] is sys.stderr
