"""What cutting power costs a drive: every cut is counted, over all runs, and may be bounded.

An abrupt cut of a disk is an emergency unload of its heads, of which it bears some 20,000
by its rating, against 600,000 ordinary ones.  One file a drive in the user's state
directory has a line for each cut, on the medium before the outlet is switched: a run that
is killed is counted, too.  `power_budget` in the rig file bounds the counts.
"""

import errno
import json
import os
from collections.abc import Sequence
from contextlib import suppress
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path
from urllib.parse import quote

from leadline.errors import RigTrouble
from leadline.inventory.fields import user_state
from leadline.inventory.rig import DriveSpec


@dataclass(frozen=True)
class Wear:
    """How often Leadline has cut a drive's power from this machine, in all."""

    power_cycles: int = 0
    emergency_unloads: int = 0


@dataclass(frozen=True)
class Cut:
    """One drive that is about to go dark; `kept` of its power cycles are to be left after that."""

    spec: DriveSpec
    emergency_unload: bool  # a disk that is not told
    kept: int = 0


@dataclass(frozen=True)
class Toll:
    """Everything that goes dark with one cut, made by run `run`."""

    cuts: Sequence[Cut]
    run: str

    def afford(self) -> None:
        """Raise RigTrouble where the rig file's budget of a drive does not bear one more cut.

        And where a cut could not be counted, before anything is done to the drive.
        """
        for cut in self.cuts:
            _append(path_of(cut.spec), b"")
            _afford(cut)

    def count(self) -> None:
        """Put the cut on record; to be called right before it.  RigTrouble when it cannot be."""
        for cut in self.cuts:
            record = {
                "time": datetime.now(UTC).isoformat(timespec="milliseconds"),
                "run": self.run,
                "slot": cut.spec.slot,
                "emergency_unload": cut.emergency_unload,
            }
            # The newline in front ends a line that a killed writer or a full disk cut short.
            _append(path_of(cut.spec), b"\n" + json.dumps(record).encode() + b"\n")


def path_of(spec: DriveSpec) -> Path:
    """Where the cuts of a drive are kept, whatever rig it is on."""
    name = quote(f"{spec.model} {spec.serial}", safe=" ")
    return user_state() / "leadline" / "power" / f"{name}.jsonl"


def wear_of(spec: DriveSpec) -> Wear:
    """The counts of a drive; RigTrouble when its file cannot be read."""
    path = path_of(spec)
    try:
        lines = path.read_bytes().split(b"\n")
    except FileNotFoundError:
        return Wear()
    except OSError as error:
        raise _unkept(path, error) from error
    unloads: list[bool] = []
    for line in lines:
        # A line that is cut short is of a run that was killed before it cut anything.
        with suppress(ValueError, TypeError, KeyError):
            unloads.append(bool(json.loads(line)["emergency_unload"]))
    return Wear(len(unloads), sum(unloads))


def _afford(cut: Cut) -> None:
    budget, wear = cut.spec.power_budget, wear_of(cut.spec)
    if budget is None:
        return
    cycles = wear.power_cycles + cut.kept
    asked = [("power_cycles", "power cycles", cycles, budget.power_cycles)]
    if cut.emergency_unload:
        unloads = wear.emergency_unloads
        asked.append(("emergency_unloads", "emergency unloads", unloads, budget.emergency_unloads))
    for field, words, had, allowed in asked:
        if allowed is not None and had >= allowed:
            home = cut.kept if field == "power_cycles" else 0
            kept = f", of which {home} are kept to put firmware back" if home else ""
            raise RigTrouble(
                f"slot {cut.spec.slot}: {cut.spec.model} {cut.spec.serial}: its power is not cut: "
                f"it has had {had - home} {words}, and `power_budget` in the rig file allows "
                f"{allowed}{kept}; raise its `{field}`, or put another drive there (each cut is a "
                f"line of {path_of(cut.spec)})"
            )


def _append(path: Path, line: bytes) -> None:
    """In one write, to a file opened for appending: lines of several runs do not mix."""
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        descriptor = os.open(path, os.O_WRONLY | os.O_APPEND | os.O_CREAT | os.O_CLOEXEC, 0o644)
        try:
            if os.write(descriptor, line) < len(line):
                raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))
            os.fsync(descriptor)
        finally:
            os.close(descriptor)
    except OSError as error:
        raise _unkept(path, error) from error


def _unkept(path: Path, error: OSError) -> RigTrouble:
    return RigTrouble(
        f"{path}: the power cycles of a drive are counted there, and cannot be "
        f"({error.strerror}), so nothing was cut; make it readable and writable, or set "
        "XDG_STATE_HOME"
    )
