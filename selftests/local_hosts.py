"""Two connections to this machine: what one run holds there, another finds."""

from collections.abc import Iterator
from pathlib import Path

import pytest

from leadline.host.connection import Host, open_host
from leadline.inventory.rig import HostSpec

AWAIT_S = 15.0
"""For what must happen soon, on a machine however busy."""


@pytest.fixture
def host() -> Iterator[Host]:
    """The connection of the run under test."""
    with open_host(HostSpec(reach="local")) as opened:
        yield opened


@pytest.fixture
def next_host() -> Iterator[Host]:
    """That of another run, beside it or after it."""
    with open_host(HostSpec(reach="local")) as opened:
        yield opened


@pytest.fixture
def directory(tmp_path: Path) -> str:
    """Where leases or journals are kept; neither it nor its parent has been made."""
    return str(tmp_path / "state" / "kept")
