"""What Leadline's own tests share."""

import os
import signal
import sys
from pathlib import Path

import pytest
from hypothesis import settings

pytest_plugins = ("pytester",)

# A shell's background job ignores Ctrl-C, and so would every program that a test starts.
signal.signal(signal.SIGINT, signal.default_int_handler)

# How long an example takes is the machine's affair.  Hypothesis has a profile of its own for CI.
if "CI" not in os.environ:
    settings.register_profile("leadline", deadline=None)
    settings.load_profile("leadline")

# The benchmarks are not installed.  Last: what is installed comes before our fixtures/.
sys.path.append(str(Path(__file__).parent.parent))


@pytest.fixture(autouse=True)
def _quick_children(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> None:
    """A pytest that a test starts goes without Hypothesis' plugin, which imports all of Hypothesis
    to end: two thirds of what a small run takes."""
    if "pytester" in request.fixturenames:
        request.getfixturevalue("pytester")  # it clears the variable
    monkeypatch.setenv("PYTEST_ADDOPTS", "-p no:hypothesispytest")


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Slow files first, or one worker has the last of them when the others have nothing left."""
    items.sort(key=_place)
    for item in items:
        if item.get_closest_marker("long") and not os.environ.get("LEADLINE_LONG"):
            item.add_marker(pytest.mark.skip(reason="takes long: give LEADLINE_LONG=1"))


def _place(item: pytest.Item) -> int:
    if item.get_closest_marker("slow"):
        return 0
    return 1 if item.path.parent.name == "virtual" else 2
