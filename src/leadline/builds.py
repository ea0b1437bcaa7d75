"""Which image Leadline put on a drive last: of two builds of one revision no drive can say it.

One JSON file a drive in the user's state directory, replaced after each flash that succeeded.
A run that was killed, or `leadline flash`, leaves the drive with a build that the next run would
else take for the one that the rig file says it came with.
"""

import os
from dataclasses import dataclass
from pathlib import Path
from urllib.parse import quote

from pydantic import TypeAdapter, ValidationError

from leadline.errors import RigTrouble
from leadline.inventory.fields import user_state
from leadline.inventory.rig import DriveSpec


@dataclass(frozen=True)
class Build:
    """What was put on a drive last: the revision that it shows since, and the image's SHA-256."""

    shows: str
    sha256: str
    run: str


_FILE = TypeAdapter(Build)


def path_of(spec: DriveSpec) -> Path:
    """Where the last build of a drive is kept, whatever rig it is on."""
    name = quote(f"{spec.model} {spec.serial}", safe=" ")
    return user_state() / "leadline" / "firmware" / f"{name}.json"


def last_build(spec: DriveSpec) -> Build | None:
    """What was put on this drive last; None when nothing was.  RigTrouble on a file in pieces."""
    path = path_of(spec)
    try:
        return _FILE.validate_json(path.read_bytes())
    except FileNotFoundError:
        return None
    except (OSError, ValidationError) as error:
        why = error.strerror if isinstance(error, OSError) else error.errors()[0]["msg"]
        raise RigTrouble(
            f"{path}: which firmware was put on the drive last cannot be read ({why}); remove it, "
            "if you know that the drive has the one that the rig file names"
        ) from error


def keep(spec: DriveSpec, build: Build) -> None:
    """Put on record what a drive runs from now on; on the medium when this returns.

    Raises RigTrouble when it cannot be.
    """
    path = path_of(spec)
    fresh = path.with_suffix(".new")
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        with fresh.open("wb") as file:
            file.write(_FILE.dump_json(build) + b"\n")
            file.flush()
            os.fsync(file.fileno())
        fresh.replace(path)
    except OSError as error:
        raise RigTrouble(
            f"{path}: which firmware was put on the drive cannot be kept there ({error.strerror}); "
            "make the directory writable, or set XDG_STATE_HOME"
        ) from error
