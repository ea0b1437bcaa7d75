"""The benchmark of traces, with few requests: it measures what it says."""

from pathlib import Path

import pytest

from bench.traces import PARTS, carry_out


def test_what_is_read_is_what_was_generated_and_each_part_has_its_share(tmp_path: Path) -> None:
    found = carry_out(tmp_path, 50_000)
    assert found["requests"] == 50_000
    assert found["equal"] is True
    shares = [found[f"{part}_share"] for part in PARTS]
    assert sum(map(float, map(str, shares))) == pytest.approx(1.0, abs=0.01)
    assert int(str(found["resident_bytes"])) > 10 << 20
    assert int(str(found["file_bytes"])) > 100_000
