"""Start, stop and look at a virtual rig: a process of its own, see `server.py`.

A rig's name is its identity: one name, one state directory, at most one server.
"""

from __future__ import annotations

import contextlib
import json
import os
import selectors
import shutil
import signal
import subprocess
import sys
import time
from collections.abc import Iterator, Mapping
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

from leadline.errors import Misuse, RigTrouble
from leadline.host.programs import install_hint
from leadline.host.trouble import last_lines
from leadline.inventory.rig import Rig
from leadline.virtual import accel, access, kernel
from leadline.virtual.image import Say, ensure_image, to_stderr
from leadline.virtual.machine import attachments, nbd
from leadline.virtual.profile import Profile, digest, load_profile
from leadline.virtual.server import ALREADY_UP, Options
from leadline.virtual.state import State

_MARGIN_S = 120.0  # beside the boot: keys, models, a probe of /dev/kvm
_LOGIN_S = 60.0
_DOWN_S = 30.0
_PROGRESS_S = 5.0
_POLL_S = 0.05


@dataclass(frozen=True)
class Changes:
    """What is to be other than the rig file says."""

    kernel: Path | None = None
    kernel_arguments: str | None = None
    profiles: Mapping[str, Path] | None = None
    """By slot."""

    @property
    def wanted(self) -> bool:
        """Whether anything is."""
        return bool(self.kernel or self.kernel_arguments is not None or self.profiles)


@contextlib.contextmanager
def running(
    rig: Rig, changes: Changes | None = None, say: Say = to_stderr
) -> Iterator[dict[str, Any]]:
    """Bring `rig` up for as long as the block lasts; gives what `up` gives.

    It goes down by itself should this process die.  A rig that is up already is used, and left
    up.  Raises Misuse and RigTrouble as `up` does.
    """
    reader, writer = os.pipe()  # the server sees its end close when this process does, however
    with os.fdopen(writer, "wb"):
        try:
            found, server = _start(rig, changes or Changes(), say, owner=reader)
        finally:
            os.close(reader)
        try:
            yield found
        finally:
            if server is not None:
                down(rig.name)
                server.wait(_DOWN_S)


def up(rig: Rig, changes: Changes | None = None, say: Say = to_stderr) -> dict[str, Any]:
    """Bring `rig` up and leave it so; what `status` gives, and `already`: it was up before.

    Returns once its guest lets us in.  Raises Misuse for a rig file that describes no virtual
    rig; RigTrouble when a program is missing, the disk is full, or the guest does not come up,
    with the last lines of its console; and for a rig that is up with its host off.
    """
    found, server = _start(rig, changes or Changes(), say, owner=None)
    if server is not None:
        server.returncode = 0  # it stays, and is not ours to wait for
    elif found["host"] != "up":
        said = f" ({found['trouble']})" if found.get("trouble") else ""
        raise RigTrouble(
            f"virtual rig {rig.name} is up already, and its host is {found['host']}{said}: switch "
            f"its outlet off and on, or `leadline virtual down --rig {rig.path}` first"
        )
    return found


def down(name: str) -> bool:
    """Take the rig down, with all that it started; False when it was not up."""
    state = State(name)
    server = state.server()
    if server is None:
        state.tidy()  # a killed server may have left something
        return False
    for number, patience in ((signal.SIGTERM, _DOWN_S), (signal.SIGKILL, _DOWN_S)):
        with contextlib.suppress(ProcessLookupError):
            os.kill(server, number)
        deadline = time.monotonic() + patience
        while state.server() == server:
            if time.monotonic() > deadline:
                break
            time.sleep(_POLL_S)
        else:
            if number == signal.SIGKILL:
                state.tidy()
            return True
    raise RigTrouble(f"virtual rig {name}: process {server} cannot be ended; see `ps {server}`")


def status(name: str) -> dict[str, Any]:
    """How the rig is; `running` is there always, the rest while it is."""
    state = State(name)
    if state.server() is None:
        return {"rig": name, "running": False}
    found = state.read_status() or {"rig": name, "running": True, "host": "starting"}
    staged = {slot: state.staged(slot) for slot in found.get("drives", {})}
    for slot, path in staged.items():
        drive = found["drives"][slot]
        waits = path.exists() and digest(path) != drive.get("profile_sha256")
        drive["staged"] = load_profile(path).firmware if waits else ""
    return found


def flash(name: str, slot: str, profile: Path) -> str:
    """Stage a profile as the firmware of a slot's drive; the firmware's revision.

    It takes effect when the drive is next switched on.  Raises Misuse for a file that is no
    profile, or one of another kind of drive, and for a slot that is not there, or a path for a
    name; RigTrouble when the rig is not up.
    """
    if "/" in name:
        raise Misuse(
            f"found {name!r}, expected the name of a virtual rig, which its file has as `rig`"
        )
    found = status(name)
    if "drives" not in found:
        raise RigTrouble(
            f"virtual rig {name} is not up, so there is nothing to flash: `leadline virtual up`"
        )
    if slot not in found["drives"]:
        slots = ", ".join(found["drives"])
        raise Misuse(f"virtual rig {name}: found no slot {slot!r}, expected one of: {slots}")
    _fitting(profile, found["drives"][slot]["bus"])
    staged = State(name).staged(slot)
    staged.parent.mkdir(exist_ok=True)
    fresh = staged.with_suffix(".new")
    shutil.copyfile(profile, fresh)
    fresh.replace(staged)
    return load_profile(staged).firmware


def _start(
    rig: Rig, changes: Changes, say: Say, owner: int | None
) -> tuple[dict[str, Any], subprocess.Popen[bytes] | None]:
    """Bring it up; its status and its server, or None for one that was up."""
    _check(rig, changes)
    if State(rig.name).server() is not None:
        return _already(rig, changes, say), None
    _require_programs()
    image = ensure_image(say)
    options = Options(
        rig=str(rig.path.absolute()),
        image=str(image.folder),
        release=image.release,
        kernel=str(changes.kernel.absolute()) if changes.kernel else None,
        kernel_arguments=changes.kernel_arguments,
        profiles={slot: str(path.absolute()) for slot, path in (changes.profiles or {}).items()},
        tied=owner is not None,
    )
    server = subprocess.Popen(
        [sys.executable, "-m", "leadline.virtual.server", json.dumps(asdict(options))],
        stdin=subprocess.DEVNULL if owner is None else owner,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        start_new_session=True,  # Ctrl-C is for us to act on
    )
    try:
        ready = _hear(server, rig, say)
        if ready is not None:
            _log_in(rig)
    except BaseException:
        _end(server)
        raise
    finally:
        for pipe in (server.stdout, server.stderr):
            if pipe is not None:
                pipe.close()
    if ready is None:  # another one was quicker
        server.wait(_DOWN_S)
        return _already(rig, changes, say), None
    return {**ready, "already": False}, server


def _check(rig: Rig, changes: Changes) -> None:
    if rig.virtual is None:
        raise Misuse(
            f"{rig.path}: found no `virtual`, expected one: this rig is real, and is not started"
        )
    access.check_host(rig)
    for index, pdu in enumerate(rig.pdus):
        access.pdu_link(rig, pdu)
        access.check_unit(rig, index)
    buses = {place.slot: place.bus for place in attachments(rig)}
    own = {drive.slot: drive.profile for drive in rig.virtual.drives if drive.profile}
    for slot, path in {**own, **(changes.profiles or {})}.items():
        if slot not in buses:
            raise Misuse(f"{rig.path}: found no slot {slot!r}, expected one of: {', '.join(buses)}")
        _fitting(path, buses[slot])
    _check_exports(rig)
    for image in filter(None, (rig.virtual.kernel, changes.kernel)):
        kernel.version(image)


def _check_exports(rig: Rig) -> None:
    """Misuse with its line for a medium that QEMU could not be told of."""
    assert rig.virtual is not None
    for index, drive in enumerate(rig.virtual.drives):
        try:
            if drive.medium is not None:
                nbd(drive.medium)
        except Misuse as wrong:
            line = rig.where("virtual", "drives", index, "medium")
            raise Misuse(f"{line}: virtual.drives[{drive.slot}].medium: {wrong}") from None


def _fitting(profile: Path, bus: str) -> Profile:
    """The profile; Misuse when a drive on this bus cannot be like that."""
    found = load_profile(profile)
    if found.is_scsi != (bus == "virtio-scsi"):
        kind, other = ("SCSI", "an ATA") if found.is_scsi else ("ATA", "a SCSI")
        raise Misuse(
            f"{profile}: found the profile of a {kind} drive, expected {other} drive's: "
            f"the slot is on bus {bus}"
        )
    return found


def _require_programs() -> None:
    missing = accel.missing_programs()
    if missing:
        hints = "; ".join(f"{program}: {install_hint(program)}" for program in missing)
        raise RigTrouble(f"the virtual rig needs programs that are not installed: {hints}")


def _already(rig: Rig, changes: Changes, say: Say) -> dict[str, Any]:
    """The status of a rig that has a server, once its machine has come up.

    Misuse when it would have to be started anew for what is wanted.
    """
    if changes.wanted:
        raise Misuse(
            f"virtual rig {rig.name} is up already, and takes a kernel, kernel arguments and "
            f"profiles only when it is started: `leadline virtual down --rig {rig.path}` first"
        )
    say(f"virtual rig {rig.name} is up already")
    return {**await_boot(rig), "already": True}


def await_boot(rig: Rig) -> dict[str, Any]:
    """The status of a rig that has a server, once its machine does not boot any more.

    RigTrouble when that takes too long, or the rig goes down meanwhile.
    """
    deadline = time.monotonic() + rig.host.boot_deadline_s
    while (found := status(rig.name))["running"]:
        if found["host"] not in ("starting", "booting"):
            return found
        if time.monotonic() > deadline:
            raise RigTrouble(
                f"virtual rig {rig.name} is still {found['host']} after "
                f"{rig.host.boot_deadline_s:g} s: see {State(rig.name).log}"
            )
        time.sleep(_POLL_S)
    raise RigTrouble(f"virtual rig {rig.name} went down just now; try again")


def _hear(server: subprocess.Popen[bytes], rig: Rig, say: Say) -> dict[str, Any] | None:
    """What the server says until it is ready: its status.  None: the rig has a server already."""
    assert server.stdout is not None
    begun = time.monotonic()
    heard = b""
    with selectors.DefaultSelector() as selector:
        selector.register(server.stdout, selectors.EVENT_READ)
        while time.monotonic() - begun < rig.host.boot_deadline_s + _MARGIN_S:
            if not selector.select(_PROGRESS_S):
                say(f"virtual rig {rig.name}: starting ({time.monotonic() - begun:.0f} s)")
                continue
            data = os.read(server.stdout.fileno(), 65536)
            if not data:
                break
            *lines, heard = (heard + data).split(b"\n")
            for line in lines:
                word = json.loads(line)
                if "note" in word:
                    say(f"virtual rig {rig.name}: {word['note']}")
                elif "ready" in word:
                    return dict(word["ready"])
                elif word["error"] == ALREADY_UP:
                    return None
                else:
                    raise (Misuse if word["owner"] == "user" else RigTrouble)(word["error"])
    raise RigTrouble(f"virtual rig {rig.name}: its server does not start{_last_words(server, rig)}")


def _end(server: subprocess.Popen[bytes]) -> None:
    """Have it end; one that does not hear is killed, and what it leaves the next start clears."""
    server.terminate()
    try:
        server.wait(_DOWN_S)
    except subprocess.TimeoutExpired:
        server.kill()
        server.wait(_DOWN_S)


def _last_words(server: subprocess.Popen[bytes], rig: Rig) -> str:
    _end(server)
    assert server.stderr is not None
    said = server.stderr.read()
    with contextlib.suppress(OSError):
        said += (State(rig.name).log / "server.log").read_bytes()
    return last_lines(said)


def _log_in(rig: Rig) -> None:
    """The proof that it is up: a login, with the keys and the host key that everybody will use."""
    words = ["ssh", "-F", str(State(rig.name).ssh_config), "-o", "BatchMode=yes"]
    words += [rig.host.address, "true"]
    try:
        subprocess.run(
            words,
            check=True,
            stdin=subprocess.DEVNULL,
            capture_output=True,
            text=True,
            timeout=_LOGIN_S,
        )
    except subprocess.CalledProcessError as failed:
        raise RigTrouble(
            f"virtual rig {rig.name}: its guest is up and lets nobody in{last_lines(failed.stderr)}"
        ) from failed
    except subprocess.TimeoutExpired as late:
        raise RigTrouble(
            f"virtual rig {rig.name}: its guest is up and no login succeeded in {_LOGIN_S:.0f} s; "
            f"see {State(rig.name).log}"
        ) from late
