"""The benchmark of the matrix, at a size that takes a second: that it sees what it counts."""

import sys
import time
from pathlib import Path

import pytest

from bench import matrix as bench

SMALL = bench.Size(models=10, firmware=3, controllers=2, issues=20, drives=4, tests=3)


def test_every_cell_is_wanted_and_every_firmware_visited(tmp_path: Path) -> None:
    bench.write_matrix(tmp_path, SMALL)
    rigs = bench.write_rigs(tmp_path / "rigs", SMALL, SMALL.models, flash=True)
    planned = bench.plan(tmp_path, rigs)
    assert (planned.wanted, planned.visits) == (60, 30)
    assert planned.seconds >= 0.9 * planned.cpu_s > 0, "of two clocks that tick apart"
    assert planned.peak_mb > 10


def test_the_known_issues_are_as_many_as_is_said(tmp_path: Path) -> None:
    bench.write_matrix(tmp_path, SMALL)
    text = (tmp_path / "firmware_matrix.yaml").read_text()
    assert text.count("summary: ") == SMALL.issues


def test_what_each_worker_collects_is_counted_and_nothing_is_run(tmp_path: Path) -> None:
    bench.write_matrix(tmp_path, SMALL)
    rigs = bench.write_rigs(tmp_path / "rigs", SMALL, SMALL.drives, flash=False)
    bench.write_tests(tmp_path, SMALL)
    seconds, count = bench.collect(tmp_path, rigs)
    assert count == 12
    assert seconds > 0
    workers = bench.worker_ids(tmp_path, rigs)
    assert [each for each, _ in workers] == [12] * bench.WORKERS
    assert len({digest for _, digest in workers}) == 1


@pytest.mark.parametrize("what", ["leadline plan", "pytest"])
def test_a_process_that_hangs_is_killed_and_said(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, what: str
) -> None:
    """Its child holds the pipe, as a worker of xdist does: waiting for that would be no end."""
    hangs = tmp_path / "hangs"
    hangs.write_text("#!/bin/sh\nsleep 60 &\nsleep 60\n")
    hangs.chmod(0o755)
    monkeypatch.setattr(sys, "executable", str(hangs))
    monkeypatch.setattr(bench, "DEADLINE_S", 0.3)
    begun = time.monotonic()
    with pytest.raises(RuntimeError, match=rf"^{what} was not done in 0\.3 s$"):
        bench.plan(tmp_path, []) if what == "leadline plan" else bench.collect(tmp_path, [])
    assert time.monotonic() - begun < 30
