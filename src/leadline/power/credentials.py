"""A PDU's password, fetched where the rig file says it is kept, and only when a device asks.

Nothing here keeps it, and no message shows it.
"""

import os
import stat
import subprocess
from pathlib import Path

from leadline.errors import Misuse, RigTrouble
from leadline.inventory.pdu import PduSpec
from leadline.power.port import where

COMMAND_S = 30.0  # a password manager may ask its own user
LONGEST = 4096
OTHERS = stat.S_IRWXG | stat.S_IRWXO


def password(spec: PduSpec) -> bytes | None:
    """The password without its line's end; None where the rig file names no place.

    Raises Misuse when the place is empty, missing, or a file that others may read;
    RigTrouble when the program that prints it fails.
    """
    if spec.password_env is not None:
        found = os.environb.get(os.fsencode(spec.password_env), b"")
        place = f"environment variable {spec.password_env}"
    elif spec.password_file is not None:
        found, place = _from_file(spec, spec.password_file), f"file {spec.password_file}"
    elif spec.password_command is not None:
        found = _from_command(spec, spec.password_command)
        place = f"output of {spec.password_command[0]}"
    else:
        return None
    secret = found.splitlines()[0] if found.strip() else b""
    if not secret:
        raise Misuse(f"{where(spec)}: password: {place} is empty or not there; put it there")
    if not secret.isascii() or any(byte < 32 or byte == 127 for byte in secret):
        raise Misuse(
            f"{where(spec)}: password: what {place} holds cannot be typed on a serial line; "
            "use printable ASCII"
        )
    return secret


def _from_file(spec: PduSpec, path: Path) -> bytes:
    try:
        with path.open("rb") as file:
            # Of what is open, so that nothing can take its place between.
            if os.fstat(file.fileno()).st_mode & OTHERS:
                raise Misuse(
                    f"{where(spec)}: password: file {path} may be used by others than its owner; "
                    f"chmod 600 {path}"
                )
            return file.read(LONGEST)
    except OSError as error:
        raise Misuse(
            f"{where(spec)}: password: file {path} cannot be read: {error.strerror}"
        ) from error


def _from_command(spec: PduSpec, argv: tuple[str, ...]) -> bytes:
    try:
        done = subprocess.run(
            argv, stdin=subprocess.DEVNULL, capture_output=True, timeout=COMMAND_S, check=True
        )
    except FileNotFoundError:
        raise Misuse(
            f"{where(spec)}: password: there is no program {argv[0]}; correct password_command"
        ) from None
    except subprocess.TimeoutExpired:
        reason = f"took over {COMMAND_S:.0f} s"
    except subprocess.CalledProcessError as failed:
        # What it printed is not shown: it may be the password.
        reason = f"ended with {failed.returncode}"
    except OSError as error:
        reason = f"cannot be run: {error.strerror}"
    else:
        return done.stdout[:LONGEST]
    raise RigTrouble(f"{where(spec)}: password: {argv[0]} {reason}; try it by hand")
