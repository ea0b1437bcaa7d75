"""Virtual rigs for the integration tests, each of its own name: a user's stays alone."""

from collections.abc import Callable, Generator, Iterator
from pathlib import Path

import pytest

import leadline
from leadline.inventory.rig import Rig, load_rig
from leadline.virtual import rig as virtual
from leadline.virtual.state import State, made_up

RIGS = Path(leadline.__file__).parent / "rigs"

MakeRig = Callable[..., Path]

_LAST_WORDS = 3000
_MADE: list[str] = []


@pytest.hookimpl(wrapper=True)
def pytest_runtest_makereport() -> Generator[None, pytest.TestReport, pytest.TestReport]:
    """A test that fails shows the last that the newest rig said: its logs go with the session."""
    report = yield
    if report.failed:
        for log in (log for name in _MADE[-1:] for log in sorted(State(name).log.glob("*.log"))):
            text = log.read_bytes()[-_LAST_WORDS:].decode(errors="replace")
            report.sections.append((f"end of {log}", text))
    return report


@pytest.fixture(scope="session")
def make_rig(tmp_path_factory: pytest.TempPathFactory) -> Iterator[MakeRig]:
    """A function that writes a rig file like the packaged one, under a name of its own.

    `make_rig(name, (old, new), ...)` replaces texts; the file's profiles stay the packaged ones.
    """
    folder = tmp_path_factory.mktemp("rigs")

    def make(name: str, *changes: tuple[str, str]) -> Path:
        unique = made_up(name)
        _MADE.append(unique)
        text = (RIGS / "virtual.yaml").read_text()
        for old, new in (
            ("rig: virtual", f"rig: {unique}"),
            ("leadline/virtual/virtual/", f"leadline/virtual/{unique}/"),
            ("profile: profiles/", f"profile: {RIGS}/profiles/"),
            *changes,
        ):
            assert old in text, f"{old!r} is not in the packaged rig file"
            text = text.replace(old, new)
        path = folder / f"{unique}.yaml"
        path.write_text(text)
        return path

    yield make
    for name in _MADE:
        State(name).forget()


@pytest.fixture(scope="session")
def shared_rig(make_rig: MakeRig) -> Iterator[Rig]:
    """A rig that is up, for tests that leave it as they found it."""
    rig = load_rig(make_rig("shared"))
    with virtual.running(rig):
        yield rig
