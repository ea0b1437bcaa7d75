"""The benchmarks of verdicts on virtual drives, without a rig: what they take for the truth."""

import json
from pathlib import Path
from typing import Any

import pytest

from bench.virtual_drive import UnderTest

NO_RIG: Any = None
SERVICE_NS = 10_000_000


def logged(depth: int, begin_s: int) -> list[str]:
    """A second of the drive's log, so many requests in flight all the while."""
    begins = range(begin_s * 10**9, (begin_s + 1) * 10**9, SERVICE_NS)
    lines = [json.dumps([at, at + SERVICE_NS, "read", 0, 8, depth, 0]) for at in begins]
    return [line for line in lines for _ in range(depth)]


def test_a_log_from_which_requests_are_missing_tells_no_truth(tmp_path: Path) -> None:
    log = tmp_path / "requests.jsonl"
    drive = UnderTest(NO_RIG, NO_RIG, log)
    whole = ['{"serial": "S"}', *logged(8, 0), *logged(1, 2)]
    log.write_text("\n".join(whole) + "\n")
    assert drive.true_ratio(8, 1) == pytest.approx(8.0)
    log.write_text("\n".join([*whole, '{"lost": 3}']) + "\n")
    with pytest.raises(RuntimeError, match="3 requests are missing"):
        drive.true_ratio(8, 1)
