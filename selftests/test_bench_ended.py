"""A benchmark that is ended leaves nothing behind."""

import os
import signal
import sys
import tempfile
from collections.abc import Iterator
from pathlib import Path
from types import SimpleNamespace

import pytest

from bench import __main__ as front


@pytest.fixture
def handler() -> Iterator[None]:
    before = signal.getsignal(signal.SIGTERM)
    yield
    signal.signal(signal.SIGTERM, before)


def test_what_a_benchmark_made_goes_when_it_is_terminated(
    handler: None, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    def measure() -> dict[str, object]:
        with tempfile.TemporaryDirectory(dir=tmp_path):
            os.kill(os.getpid(), signal.SIGTERM)
            signal.pause()
        return {"within_limits": True}

    monkeypatch.setitem(sys.modules, "bench.rates", SimpleNamespace(measure=measure))
    monkeypatch.setattr(sys, "argv", ["bench", "rates"])
    with pytest.raises(SystemExit) as ended:
        front.main()
    assert ended.value.code == 128 + signal.SIGTERM
    assert list(tmp_path.iterdir()) == []
