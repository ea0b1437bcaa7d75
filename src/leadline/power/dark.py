"""What goes dark with an outlet: one drive that is plugged hot, or a whole host.

Each knows how it is told beforehand, how it is proven to be off, and how it comes back.
"""

import time
from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from typing import Protocol

from leadline.drive.ask import Identity
from leadline.drive.bind import Drive, Seen
from leadline.errors import RigTrouble
from leadline.host.connection import Finished, HostLost
from leadline.inventory.rig import HostSpec
from leadline.power.sight import Look

POLL_S = 0.1
NOTICE_S = 30.0  # for the kernel to see by itself that a drive is gone; SAS HBAs take longest
HOLD_UP_S = 20.0  # beyond the drive's `off_s`, for a supply that holds its voltage longest
RETRY_S = 1.0
SHUTDOWN_S = 120.0  # systemd stops what does not end by itself after 90 s
UNREACHABLE_S = 30.0  # a host without power; ssh notices after 15 s of silence


class Eyes(Protocol):
    """What `sight.Sight` tells of one drive."""

    @property
    def drive(self) -> Drive: ...

    @property
    def key(self) -> str: ...

    @property
    def scan_path(self) -> str: ...

    @property
    def known(self) -> Mapping[str, str]: ...

    @property
    def rotates(self) -> bool: ...

    def delete(self) -> None: ...

    def noticed(self) -> bool: ...

    def rescan(self) -> None: ...

    def look(self) -> Look: ...

    def identity(self, seen: Seen) -> Identity: ...

    def read(self, seen: Seen) -> None: ...

    def link_is_up(self) -> bool | None: ...

    def link_up_at(self, not_before: float) -> float | None: ...

    def point_out(self) -> str: ...


class Machine(Protocol):
    """What is asked of the rig's host when its own power is cut."""

    name: str

    def run(self, argv: Sequence[str], *, deadline: float, check: bool = True) -> Finished: ...

    def alive(self) -> bool: ...

    def boot_id(self) -> str: ...

    def reconnect(self, deadline: float) -> None: ...


class Subject(Protocol):
    """What goes dark.  Everything may raise RigTrouble."""

    def prepare(self, *, abrupt: bool) -> None:
        """Tell it that its power will go, so that what it holds is on the medium.

        Abrupt: it is not told; only what is not under test is made safe.
        """

    def prove_gone(self, *, abrupt: bool, off: str, discharged_at: float) -> None:
        """Return only when it is proven to have no power.

        Before `discharged_at` (of the machine's clock) it may live on a little.  `off` says
        for messages which outlets are off, and how that is known.
        """

    def come_back(self) -> None:
        """Wait for what must be there before the drive can be."""

    def put_back(self) -> None:
        """After a cycle that was broken off, its outlet on again: what else it takes."""


class HotPlug:
    """A drive with outlets of its own, perhaps with others on the same ones."""

    def __init__(self, eyes: Eyes, sharing: Sequence[Eyes] = ()) -> None:
        self._eyes = eyes
        self._all = [eyes, *sharing]

    def prepare(self, *, abrupt: bool) -> None:
        for eyes in () if abrupt else self._all:
            eyes.delete()

    def prove_gone(self, *, abrupt: bool, off: str, discharged_at: float) -> None:
        """The kernel has lost it, or is made to; and then a rescan finds no such drive.

        A drive may live on what its supply has stored, so the rescan waits for that, and
        a drive that it finds all the same is deleted and looked for again for a while.
        """
        if abrupt:
            _wait(lambda: all(eyes.noticed() for eyes in self._all), NOTICE_S)
        time.sleep(max(0.0, discharged_at - time.monotonic()))
        limit = time.monotonic() + HOLD_UP_S
        while True:
            for eyes in self._all:
                eyes.delete()
            self._rescan()
            looks = [(eyes, eyes.look()) for eyes in self._all]
            if not any(look.drive for _, look in looks) or time.monotonic() >= limit:
                break
            time.sleep(RETRY_S)
        for eyes, look in looks:
            self._gone(eyes, look, off)

    def _rescan(self) -> None:
        for eyes in {eyes.scan_path: eyes for eyes in self._all}.values():
            eyes.rescan()

    def _gone(self, eyes: Eyes, look: Look, off: str) -> None:
        ours = {one.key for one in self._all}
        left = [name for key, name in eyes.known.items() if key not in ours | look.others.keys()]
        who = f"slot {eyes.drive.spec.slot}: {_name(eyes.drive)}"
        if look.drive:
            instead = f"; {', '.join(left)} went dark instead" if left else ""
            raise RigTrouble(
                f"{who} is still there (as {look.drive.name}), though {off}{instead}; is the drive "
                f"fed by that outlet alone, and does its relay move?{eyes.point_out()}"
            )
        if left:
            raise RigTrouble(
                f"{who} went dark when {off}, and so did {', '.join(left)}, which the rig file "
                "does not say; correct what the outlet feeds"
            )

    def come_back(self) -> None:
        """Nothing stands between the outlet and the drive."""

    def put_back(self) -> None:
        self._rescan()


class WholeHost:
    """A host, with every drive in it.

    `at_risk` are its own file systems, mounted for writing: they are written out before
    an abrupt cut.
    """

    def __init__(
        self, host: Machine, spec: HostSpec, drives: Sequence[Eyes], at_risk: Sequence[str] = ()
    ) -> None:
        self._host = host
        self._spec = spec
        self._drives = drives
        self._at_risk = at_risk
        self._boot_id = host.boot_id()

    def prepare(self, *, abrupt: bool) -> None:
        """Delete the drives, so that they are safe whatever the shutdown leaves undone; then it."""
        if abrupt:
            if self._at_risk:
                self._host.run(["sync", "-f", *self._at_risk], deadline=SHUTDOWN_S)
            return
        for eyes in self._drives:
            eyes.delete()
        with suppress(HostLost):  # it is going down, and may be quicker than its answer
            self._host.run(self._spec.shutdown, deadline=SHUTDOWN_S)
        if not _wait(lambda: not self._host.alive(), SHUTDOWN_S):
            raise RigTrouble(
                f"{self._host.name}: still answers {SHUTDOWN_S:.0f} s after "
                f"`{' '.join(self._spec.shutdown)}`; is that how it is shut down (`shutdown` in "
                "the rig file)?"
            )
        # Unmounting and the drives' standby come after the network: that is not seen from here.
        time.sleep(self._spec.shutdown_s)

    def prove_gone(self, *, abrupt: bool, off: str, discharged_at: float) -> None:
        """It answers no more; that it was off is proven when it comes back with another boot."""
        if not _wait(lambda: not self._host.alive(), UNREACHABLE_S):
            raise RigTrouble(
                f"{self._host.name}: still answers, though {off}; does "
                "the outlet feed this host, does it have another supply, does the relay move?"
            )

    def come_back(self) -> None:
        self._host.reconnect(self._spec.boot_deadline_s)
        if self._host.boot_id() == self._boot_id:
            raise RigTrouble(
                f"{self._host.name}: answers again with the boot it had before its power was cut, "
                "so it never lost power; does the outlet feed this host?"
            )

    def put_back(self) -> None:
        """Its outlet is on: it boots, and a boot finds every drive."""


def _wait(done: Callable[[], bool], seconds: float) -> bool:
    limit = time.monotonic() + seconds
    while not done():
        if time.monotonic() >= limit:
            return False
        time.sleep(POLL_S)
    return True


def _name(drive: Drive) -> str:
    return f"{drive.identity.model} {drive.identity.serial}"
