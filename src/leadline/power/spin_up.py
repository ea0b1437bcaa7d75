"""Disks spin up one outlet after the other, for what one supply must bear.

A disk draws its peak (2 to 3 A at 12 V) while it spins up.  So outlets that start disks of one
rig take turns, whatever PDU they are on and whichever process switches them: the moment until
which the last one spins up is kept in a file among the locks, and the file is locked
meanwhile.
"""

import fcntl
import os
import time
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from typing import Self

from leadline.errors import RigTrouble
from leadline.inventory.rig import OutletSpec, Rig
from leadline.power.port import open_lock_file

LONGEST_GAP_S = 600.0  # what a rig file may say; a moment further off is of an earlier boot
TURN_S = 1800.0  # a rack full of disks; nobody else's turns take longer
LOOK_S = 0.05


@dataclass(frozen=True)
class SpinUp:
    """What an outlet starts: disks of one rig, by their slots, and the longest of their gaps."""

    rig: str
    slots: tuple[str, ...]
    gap_s: float

    @classmethod
    def by(cls, rig: Rig, outlet: OutletSpec) -> Self | None:
        """What this outlet of the rig starts; None where that is no disk."""
        disks = rig.spun_up_by(outlet)
        if not disks:
            return None
        slots = tuple(disk.slot for disk in disks)
        return cls(rig.name, slots, max(disk.spin_up_gap_s for disk in disks))


@contextmanager
def turn(spin_up: SpinUp) -> Iterator[None]:
    """Wait until no disk of the rig spins up; from the end of this, these do.

    Raises RigTrouble when others take turns for longer than any rack of disks needs.
    """
    lock = open_lock_file(f"spin-up-{spin_up.rig}")
    try:
        _wait_for(lock, spin_up.rig)
        left = _spinning_until(lock) - time.monotonic()
        if 0 < left <= LONGEST_GAP_S:
            time.sleep(left)
        try:
            yield
        finally:
            # Even if it failed: perhaps the relay has closed.
            os.ftruncate(lock, 0)
            os.pwrite(lock, f"{time.monotonic() + spin_up.gap_s}\n".encode(), 0)
    finally:
        os.close(lock)


def _wait_for(lock: int, rig: str) -> None:
    limit = time.monotonic() + TURN_S
    while True:
        with suppress(BlockingIOError):
            fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
            return
        if time.monotonic() >= limit:
            raise RigTrouble(
                f"rig {rig}: another Leadline has been switching its disks on for "
                f"{TURN_S / 60:.0f} minutes, one after the other; does it hang?"
            )
        time.sleep(LOOK_S)


def _spinning_until(lock: int) -> float:
    """By this machine's monotonic clock, which all processes share."""
    try:
        return float(os.pread(lock, 64, 0))
    except ValueError:
        return 0.0
