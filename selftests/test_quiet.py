"""A drive that udev still looks at is waited for before anything is measured beside it."""

import errno
import time
from collections.abc import Iterator, Sequence
from itertools import chain, repeat
from types import SimpleNamespace
from typing import cast

import pytest

from leadline.drive.quiet import CALM, LOOK_S, await_quiet
from leadline.errors import RigTrouble
from leadline.host.connection import DeadlinePassed, FileTrouble, Host, HostLost
from leadline.station import Station

COMMANDS, REQUESTS = "device/iodone_cnt", "stat"
KINDS = pytest.mark.parametrize("kind", [COMMANDS, REQUESTS])


class Machine:
    """Its disks' counters by look, since boot, of a `kind`; None for a disk without counters.

    `held` are the disks that are held open, `were_held` those that were at the last look.
    """

    name = "bench"

    def __init__(self, kind: str = COMMANDS, **disks: Sequence[int | None]) -> None:
        self._nodes = {f"/dev/{name}" for name in disks}
        self._looks: dict[str, Iterator[int | None]] = {
            f"/sys/block/{name}/{kind}": chain(each, repeat(each[-1]))
            for name, each in disks.items()
        }
        self.held: dict[int, str] = {}
        self.were_held: set[str] = set()

    def read_files(self, paths: Sequence[str]) -> dict[str, bytes | None]:
        self.were_held = set(self.held.values())
        found = {path: next(self._looks.get(path, repeat(None))) for path in paths}
        return {
            path: None if count is None else self._as_shown(path, count)
            for path, count in found.items()
        }

    def _as_shown(self, path: str, count: int) -> bytes:
        shown = f"{count:#x}" if path.endswith(COMMANDS) else f"{count} {' 0' * 10}"
        return f"{shown}\n".encode()

    def hold_device(self, node: str, *, exclusive: bool) -> int:
        assert not exclusive  # another run may want it
        if node not in self._nodes:
            raise FileTrouble(self.name, node, errno.ENOENT, "not there")
        handle = max(self.held, default=0) + 1
        self.held[handle] = node
        return handle

    def release_device(self, handle: int) -> None:
        del self.held[handle]


@pytest.fixture
def slept(monkeypatch: pytest.MonkeyPatch) -> list[float]:
    """The time that was waited; a clock that goes by it."""
    slept: list[float] = []
    monkeypatch.setattr(time, "sleep", slept.append)
    monkeypatch.setattr(time, "monotonic", lambda: sum(slept))
    return slept


def waited_for(machine: Machine, *names: str) -> tuple[bool, list[str]]:
    said: list[str] = []
    return await_quiet(cast("Host", machine), names, said.append, patience_s=60.0), said


def test_quiet_drives_cost_one_look(slept: list[float]) -> None:
    machine = Machine(sda=[100], sdb=[7], sdc=[None])
    assert waited_for(machine, "sda", "sdb", "sdc", "gone") == (True, [])
    assert slept == [LOOK_S]


@KINDS
def test_one_that_is_looked_at_again_and_again_is_waited_for(slept: list[float], kind: str) -> None:
    """Between two of udev's looks there is a moment of nothing; one of them is two commands."""
    counts = [10, 11, 12, 12, 14, 16]
    assert waited_for(Machine(kind, sda=counts, sdb=[5]), "sda", "sdb") == (
        True,
        ["bench: sda is being looked at, by udev as it seems: waiting"],
    )
    assert len(slept) == len(counts) - 1 + CALM


def test_disks_are_held_open_for_as_long_as_they_are_waited_for(slept: list[float]) -> None:
    machine = Machine(sda=[0, 70, 140], sdb=[3])
    assert waited_for(machine, "sda", "sdb", "gone")[0]
    assert (machine.were_held, machine.held) == ({"/dev/sda", "/dev/sdb"}, {})


def test_a_disk_that_cannot_be_opened_is_waited_for_all_the_same(slept: list[float]) -> None:
    """As one that the kernel still tries to bring back."""
    machine = Machine(sda=[0, 70, 140])

    def late(node: str, *, exclusive: bool) -> int:
        raise DeadlinePassed(f"bench: {node} did not answer within 30 s")

    machine.hold_device = late  # type: ignore[method-assign]
    quiet_, said = waited_for(machine, "sda")
    assert (quiet_, len(said), len(slept)) == (True, 1, 2 + CALM)


def test_a_disk_that_goes_meanwhile_is_waited_for_no_longer(slept: list[float]) -> None:
    machine = Machine(sda=[0, 70, None])

    def gone(handle: int) -> None:
        raise HostLost("bench", "gone")

    machine.release_device = gone  # type: ignore[method-assign]
    assert waited_for(machine, "sda")[0]


def test_one_that_is_never_quiet_is_waited_for_within_limits(slept: list[float]) -> None:
    quiet_, said = waited_for(Machine(sda=range(0, 10**6, 100)), "sda")
    assert (quiet_, len(said)) == (False, 1)
    assert sum(slept) == pytest.approx(60.0, abs=LOOK_S)


@pytest.mark.parametrize("lost", [None, HostLost("bench", "gone")])
def test_a_run_ends_when_udev_has_looked_at_what_it_wrote(
    slept: list[float], lost: RigTrouble | None
) -> None:
    """Or the next run would measure beside it."""
    said: list[str] = []
    station = SimpleNamespace(
        written={"sda"},
        lost=lost,
        host=Machine(sda=[0, 70, 140, 140]),
        live=SimpleNamespace(say=said.append),
    )
    Station.leave_quiet(cast("Station", station))
    looks = 0 if lost else 3 + CALM - 1
    assert (len(said), len(slept)) == (bool(lost is None), looks)


def test_a_run_that_wrote_nothing_waits_for_nothing(slept: list[float]) -> None:
    station = SimpleNamespace(written=set(), lost=None, host=Machine(sda=[0, 70]))
    Station.leave_quiet(cast("Station", station))
    assert slept == []
