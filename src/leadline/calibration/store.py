"""Calibrations on disk: one JSON file a rig and drive, in the user's state directory."""

import re
from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime
from pathlib import Path

from pydantic import AwareDatetime, TypeAdapter, ValidationError

from leadline.errors import RigTrouble
from leadline.inventory.fields import user_state
from leadline.verdict.calibration import DEEP, DRIFT_CAP, DRIFT_FLOOR, Block, RigNoise, Session

SESSIONS_KEPT = 10
_AGAIN = "remove it, or run leadline calibrate again, which replaces it"


class BrokenCalibration(RigTrouble):
    """The file of a calibration cannot be read; the message names it and the remedy."""


@dataclass(frozen=True)
class Conditions:
    """What a calibration holds for, besides rig and drive: with another, it is stale.

    `deep` is the depth that was held against depth 1.  A file of before has none, and counts as
    what it nearly always was.
    """

    firmware: str
    kernel: str
    fio: str
    deep: int = DEEP


@dataclass(frozen=True)
class KeptSession:
    """One session as it was measured; times are seconds of the rig's clock (Unix)."""

    run: str
    date: AwareDatetime
    conditions: Conditions
    block_seconds: float
    starts: tuple[float, ...]
    blocks: tuple[Block, ...]

    @property
    def measured(self) -> Session:
        """What the statistics are made of."""
        return Session(self.blocks, self.starts, self.block_seconds)


@dataclass(frozen=True)
class Calibration:
    """The noise of one rig with one drive, and the sessions that it was computed from."""

    rig: str
    slot: str
    model: str
    serial: str
    noise: RigNoise
    sessions: tuple[KeptSession, ...]

    @property
    def newest(self) -> KeptSession:
        """The last session: its date and conditions are the calibration's."""
        return self.sessions[-1]

    @property
    def date(self) -> datetime:
        """When it was last measured."""
        return self.newest.date


_FILE = TypeAdapter(Calibration)


def path_of(rig: str, serial: str) -> Path:
    """Where the calibration of a rig with the drive of this serial number is kept."""
    return user_state() / "leadline" / "calibrations" / _plain(rig) / f"{_plain(serial)}.json"


def _plain(name: str) -> str:
    """A file's name, of a text that a drive may have chosen."""
    return re.sub(r"[^A-Za-z0-9+-]+", "_", name) or "_"


def load(rig: str, serial: str) -> Calibration | None:
    """The calibration of a rig with the drive of this serial number; None when there is none.

    Raises BrokenCalibration on a file that cannot be read, or is no calibration of them.
    """
    path = path_of(rig, serial)
    try:
        found = _FILE.validate_json(path.read_bytes())
    except FileNotFoundError:
        return None
    except OSError as error:
        raise BrokenCalibration(f"{path}: {error.strerror}; {_AGAIN}") from error
    except ValidationError as error:
        first = error.errors()[0]
        where = ".".join(map(str, first["loc"]))
        said = f"{where}: {first['msg']}" if where else first["msg"]
        raise BrokenCalibration(f"{path} is not a calibration ({said}); {_AGAIN}") from error
    wrong = _wrong(found, rig, serial)
    if wrong:
        raise BrokenCalibration(f"{path} is not a calibration that can be used: {wrong}; {_AGAIN}")
    return found


def _wrong(found: Calibration, rig: str, serial: str) -> str:
    noise = found.noise
    if (found.rig, found.serial) != (rig, serial):
        return f"found rig {found.rig!r}, serial {found.serial!r}, expected {rig!r}, {serial!r}"
    if not found.sessions:
        return "it has no session"
    if not DRIFT_FLOOR <= noise.sigma_d <= DRIFT_CAP:
        return f"sigma_d is {noise.sigma_d}, expected {DRIFT_FLOOR} to {DRIFT_CAP}"
    if not 0.0 <= noise.pair_sd < float("inf"):
        return f"pair_sd is {noise.pair_sd}, expected a number from 0"
    for name in ("sigma_session", "sigma_session_deep"):
        spread = getattr(noise, name)
        if spread is not None and not 0.0 < spread < float("inf"):
            return f"{name} is {spread}, expected null or a number above 0"
    return ""


def comparable(before: Calibration | None, conditions: Conditions) -> Sequence[KeptSession]:
    """The sessions of `before` that a new one under `conditions` can be computed with."""
    sessions = before.sessions if before else ()
    return [each for each in sessions if each.conditions == conditions][-(SESSIONS_KEPT - 1) :]


def save(calibration: Calibration) -> Path:
    """Keep a calibration, in one step; it replaces the one before.  RigTrouble when it cannot."""
    path = path_of(calibration.rig, calibration.serial)
    fresh = path.with_suffix(".new")
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        fresh.write_bytes(_FILE.dump_json(calibration, indent=1) + b"\n")
        fresh.replace(path)
    except OSError as error:
        raise RigTrouble(
            f"{path}: the calibration cannot be kept there ({error.strerror}); "
            "make the directory writable, or set XDG_STATE_HOME"
        ) from error
    return path
