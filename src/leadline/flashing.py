"""Put a visit's firmware on its drive, activate it, and have the drive say that it runs it.

Two keys are needed, `flash` of the drive in the rig file and `--allow-flash`; the image's model
in the matrix must be the drive's; and the write guard must admit to it.  Before the first byte
is sent the flash is on record (`flash_record`), until the drive has said what it runs.
"""

import os
import secrets
import shutil
import sys
import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING

from leadline import away
from leadline.builds import Build, keep, path_of
from leadline.cuts_home import afford_flash
from leadline.cycling import POWER_LOSS, cycle
from leadline.drive import microcode
from leadline.drive.bind import Drive, another, bind
from leadline.drive.guard import is_own_machine
from leadline.drive.microcode import Image, was_refused
from leadline.errors import DriveFault, Misuse, RigTrouble
from leadline.flash_record import (
    FlashRecord,
    OnRecord,
    begin,
    settle,
    state_of,
    takes_up_at_once,
)
from leadline.host.connection import Host, HostLost
from leadline.host.programs import require
from leadline.host.trouble import ProgramFailed, ProgramMissing
from leadline.inventory.flash import Activation, FlashSpec
from leadline.inventory.matrix import FirmwareSpec
from leadline.results.schema import Phase

if TYPE_CHECKING:
    from leadline.power.cycle import PowerCycle
    from leadline.visiting import OpenVisit

COPY_S = 60.0
LOOK_S = 0.25


@dataclass(frozen=True)
class _Order:
    """What is to be done, every reason not to having been looked into."""

    spec: FlashSpec
    image: Image
    before: Drive
    shows: str
    activates: Activation


def runs(visit: "OpenVisit", firmware: FirmwareSpec) -> bool:
    """Whether the drive runs this; of two that it says alike, what was put on it last decides."""
    shown = visit.drive.identity.firmware
    if shown != firmware.shows or visit.station.has_another_image(visit.visit.cell, shown):
        return False
    return len(visit.model.showing(firmware.shows)) == 1 or _last(visit) == firmware.revision


def _last(visit: "OpenVisit") -> str:
    """The name of what was put on the drive last; empty where nobody knows."""
    home = visit.station.run.home(visit.visit)
    return visit.station.build_on(home, visit.drive.identity.firmware)


def flash(visit: "OpenVisit") -> "PowerCycle | None":
    """Flash the visit's image and activate it; the power cycle that did, if one was needed.

    Raises Misuse when a key is missing, the image is not the matrix's or not for this drive;
    what `microcode.explained` makes of a refusal; RigTrouble when a program fails; DriveFault
    when another firmware than the flashed one answers afterwards.  Each has a note that says
    what the drive runs now, and what to do where that may yet change.
    """
    order = _ordered(visit)
    station, cell = visit.station, visit.visit.cell
    back = _name_of(visit, order.before.identity.firmware)
    station.live.show(
        f"  {cell.id}: flashing {Path(order.image.path).name} over firmware "
        f"{order.before.identity.firmware}"
    )
    with visit.kernel_faults.expected(*POWER_LOSS):  # some drop their link to start anew
        on_record = _sent(visit, order, back)
        with _accounted(visit, on_record):
            done = _activated(visit, order, on_record)
    keep(visit.spec, Build(order.shows, order.image.sha256, station.run.id))
    on_record.settled()
    settle(station.here, visit.spec.serial, station.unfinished)
    for earlier in station.interrupted.pop(visit.spec.slot, []):
        earlier.settled()
    station.in_doubt.pop(visit.spec.slot, None)
    station.put_on[visit.spec.slot] = cell.firmware
    away.arrived(visit)
    return done


def _ordered(visit: "OpenVisit") -> _Order:
    """The flash that is to be, if nothing speaks against it; else Misuse, or RigTrouble where a
    power budget is spent."""
    spec, cell, drive = visit.spec, visit.visit.cell, visit.drive
    firmware = visit.station.run.matrix.firmware(cell.model, cell.firmware)
    reasons = list(_reasons_against(visit, firmware))
    if reasons or spec.flash is None or firmware.image is None:
        raise Misuse(
            f"slot {spec.slot}: the drive has firmware {_had(visit)}, {cell.firmware} is wanted, "
            f"and {'; '.join(reasons)}. Nothing was sent to the drive"
        )
    image = _read(firmware.image, firmware.sha256)
    microcode.refuse_hopeless(spec.flash, drive, image)
    activates = firmware.activation or spec.flash.activates
    afford_flash(visit, activates)
    return _Order(spec.flash, image, drive, firmware.shows, activates)


def _had(visit: "OpenVisit") -> str:
    """What the drive shows, and of several builds that show it the one that was put on it."""
    shown, home = visit.drive.identity.firmware, visit.station.run.home(visit.visit)
    last = _last(visit)
    if visit.station.has_another_image(visit.visit.cell, shown):
        return (
            f"{shown} (of another image than the matrix has, by {path_of(visit.spec)}: remove that "
            "if it is wrong)"
        )
    if len(visit.model.showing(shown)) < 2 or last == home.cell.firmware:
        return shown
    return f"{shown} ({last or 'no build of the matrix'}, by {path_of(visit.spec)})"


def _reasons_against(visit: "OpenVisit", firmware: FirmwareSpec) -> Iterator[str]:
    spec, rig, run, found = visit.spec, visit.station.rig, visit.station.run, visit.drive.identity
    host = visit.station.host
    if spec.flash is None:
        yield "the rig file does not allow it (`flash: allowed`)"
    if not run.may_flash(rig):
        yield (
            f"--allow-flash was not given (as in: leadline flash --rig {rig.path} {spec.slot} "
            f"{firmware.revision} --allow-flash)"
        )
    if firmware.image is None:
        yield "the matrix has no image of it"
    if not _is_for(visit):
        yield f"its image is for {visit.model.model} ({run.matrix.path}), and this is {found.model}"
    if any(not visit.model.takes(each, firmware) for each in _on_it(visit, found.firmware)):
        yield f"the matrix has it that {found.firmware} refuses downgrades"
    activates = firmware.activation or (spec.flash and spec.flash.activates)
    outlets = rig.outlets_of(spec)
    if activates == "power-cycle" and not outlets:
        yield "it is activated by a power cycle, and no outlet feeds the drive"
    elif activates == "power-cycle" and outlets[0].feeds == "host" and is_own_machine(host):
        yield "it is activated by a power cycle, which would be that of this machine"


def _on_it(visit: "OpenVisit", shown: str) -> Sequence[FirmwareSpec]:
    """What the drive runs, by what it says; of builds that it says alike each, if nobody knows."""
    alike, last = visit.model.showing(shown), _last(visit)
    return [each for each in alike if each.revision == last] or alike


def _is_for(visit: "OpenVisit") -> bool:
    """Whether the matrix has this image for a model such as the drive says that it is."""
    matrix, said = visit.station.run.matrix, visit.drive.identity.model
    names = [said]
    if visit.spec.protocol != "sata":
        names.append(said.partition(" ")[2])  # a SCSI product may be written without its vendor
    return any(matrix.entry(name) == visit.model for name in names)


def _read(path: Path, sha256: str | None) -> Image:
    """The image, as it is now: hours may have passed since the plan looked at it."""
    try:
        image = Image(str(path), path.read_bytes())
    except OSError as error:
        raise Misuse(f"{path}: the image cannot be read: {error.strerror}") from error
    if image.sha256 != sha256:
        raise Misuse(
            f"{path}: found sha256 {image.sha256}, expected {sha256} as in the matrix; nothing "
            "was sent to the drive: bring back the image"
        )
    return image


def _name_of(visit: "OpenVisit", shown: str) -> str:
    """The name in the matrix of what the drive runs; empty where it has none."""
    likely = (_last(visit), visit.station.run.home(visit.visit).cell.firmware)
    names = [each.revision for each in visit.model.showing(shown)]
    return next((each for each in (*likely, *names) if each in names), "")


def _sent(visit: "OpenVisit", order: _Order, back: str) -> OnRecord:
    """Send the image to the drive, and say how it stands."""
    station, spec = visit.station, order.spec
    place = _as_it_is if spec.method == "program" and spec.runs_on == "here" else _copied
    with place(station.host, order.image) as there:
        if spec.method != "program":
            require(station.host, "hdparm" if spec.method == "hdparm" else "sg_write_buffer")
        visit.admitted("flash")
        away.leaving(visit, order.shows, order.image.sha256)
        station.put_on[visit.spec.slot] = ""  # nobody knows, until it has said what it runs
        copy = there if place is _copied else ""
        on_record = begin(station.here_journal, _record(visit, order, back, copy))
        with _accounted(visit, on_record):
            seconds = _download(visit, order, there)
    station.record.add(Phase(cell=visit.visit.cell.id, name="flash", seconds=seconds))
    return on_record


def _record(visit: "OpenVisit", order: _Order, back: str, copy: str) -> FlashRecord:
    spec, rig, method = visit.spec, visit.station.rig, order.spec.method
    return FlashRecord(
        rig=rig.name,
        rig_file=str(rig.path),
        slot=spec.slot,
        model=order.before.identity.model,
        serial=spec.serial,
        wwn=spec.wwn,
        before=order.before.identity.firmware,
        revision=visit.visit.cell.firmware,
        shows=order.shows,
        image=order.image.path,
        sha256=order.image.sha256,
        method=f"{method} mode {order.spec.mode:X}h" if method == "write-buffer" else method,
        voids_unless_whole=takes_up_at_once(order.spec, order.activates),
        awaits_power=order.activates == "power-cycle",
        back=back,
        copy=copy,
    )


def _download(visit: "OpenVisit", order: _Order, there: str) -> float:
    """Seconds that it took."""
    station, spec = visit.station, order.spec
    if spec.method != "program":
        return microcode.download(station.host, order.before, spec, order.image, there)
    argv = spec.argv(
        rig=station.rig.name, slot=visit.spec.slot, device=order.before.node, image=there
    )
    deadline_s = microcode.download_deadline_s(spec, len(order.image.data))
    if spec.runs_on == "rig":
        return station.host.run(argv, deadline=deadline_s).seconds
    return station.here.run([_beside_us(argv[0]), *argv[1:]], deadline=deadline_s).seconds


@contextmanager
def _as_it_is(host: Host, image: Image) -> Iterator[str]:
    yield image.path


@contextmanager
def _copied(host: Host, image: Image) -> Iterator[str]:
    """A copy on the rig, its hash taken there; its path, for as long as it is needed."""
    folder = f"{host.state_directory()}/images"
    # Of its own: another drive's flash of the same image removes its copy when it is done.
    path = f"{folder}/{secrets.token_hex(4)}-{Path(image.path).name}"
    host.run(["mkdir", "-p", folder], deadline=COPY_S)
    host.write_file(path, image.data)
    try:
        found = host.run(["sha256sum", path], deadline=COPY_S).stdout.decode("ascii", "replace")
        # A name with a backslash makes it escape the line, and begin it with one.
        if found.lstrip("\\").split(" ")[0] != image.sha256:
            raise RigTrouble(
                f"{host.name}: {path} is not what was copied there ({image.path}): its sha256 "
                "differs; nothing was sent to the drive. Is the rig's disk full or failing?"
            )
        yield path
    finally:
        with suppress(RigTrouble):  # the rig may be down now, and its memory gone
            host.remove_file(path)


@contextmanager
def _accounted(visit: "OpenVisit", on_record: OnRecord) -> Iterator[None]:
    """What goes wrong in here has a note of what the drive runs now, and what to do.

    The record is closed where nothing can change that any more.
    """
    try:
        yield
    except KeyboardInterrupt as interrupt:
        visit.station.interrupted.setdefault(visit.spec.slot, []).append(on_record)
        interrupt.add_note(
            "a flash was under way: it is on record, and the next run says what the drive runs"
        )
        raise
    except (DriveFault, RigTrouble, Misuse) as error:
        record = on_record.record
        if isinstance(error, ProgramMissing):
            _runs_what_it_ran(visit, on_record)
            raise
        if record.step == "downloading" and _refused(visit, error.__cause__):
            record = replace(record, voids_unless_whole=True)  # and not cut short
        if record.awaits_power and isinstance(error, RigTrouble):
            record = replace(record, step="downloading")  # its power may not have been cut
        runs_now: str | None = None
        try:
            runs_now = bind(visit.station.host, visit.spec, any_firmware=True).identity.firmware
        except (DriveFault, RigTrouble, Misuse) as trouble:
            state = state_of(record, None, str(trouble).splitlines()[0])
        else:
            state = state_of(record, runs_now)
        error.add_note(f"the drive: {state}")
        if state.in_doubt:
            visit.station.in_doubt[visit.spec.slot] = f"slot {visit.spec.slot}: {state}"
        elif runs_now == record.before:
            _runs_what_it_ran(visit, on_record)
        else:
            on_record.settled()
        raise


def _runs_what_it_ran(visit: "OpenVisit", on_record: OnRecord) -> None:
    """Nothing of the image is in the drive, so that there is nothing to put back either."""
    on_record.settled()
    visit.station.put_on[visit.spec.slot] = on_record.record.back
    away.arrived(visit)


def _refused(visit: "OpenVisit", cause: BaseException | None) -> bool:
    """Whether nothing of the image is in the drive, by how the program ended that sent it."""
    spec = visit.spec.flash
    return spec is not None and isinstance(cause, ProgramFailed) and was_refused(spec, cause)


def _activated(visit: "OpenVisit", order: _Order, on_record: OnRecord) -> "PowerCycle | None":
    """Activate what has been sent, as the rig file says, and read back what the drive runs."""
    on_record.reached("activating")
    if order.activates == "power-cycle":
        _look_again(visit)
        return cycle(visit, expected_firmware=order.shows)
    if order.spec.defers:
        microcode.activate(visit.station.host, order.before, order.spec)
    after = _answering(visit)
    changed = another(order.before.identity, after.identity)
    if after.identity.firmware != order.shows:
        changed.append(
            f"it runs {after.identity.firmware}, though it took the image of {order.shows} without "
            "an error; if it wants a power cycle, say `activates: power-cycle` in the rig file"
        )
    if changed:
        identity = order.before.identity
        raise DriveFault(
            f"slot {visit.spec.slot}: {identity.model} {identity.serial}: after the flash: "
            + "; ".join(changed)
        )
    visit.rebound(after)
    return None


def _look_again(visit: "OpenVisit") -> None:
    """Some drives say their new revision before it is activated: the guard must know it."""
    with suppress(RigTrouble, DriveFault):  # of one that is silent, the guard says so
        now = bind(visit.station.host, visit.spec, any_firmware=True)
        if now.identity != visit.drive.identity:
            visit.rebound(now)


def _answering(visit: "OpenVisit") -> Drive:
    """The drive, which may need its time to answer again: what the rig file gives it."""
    limit = time.monotonic() + visit.spec.ready_s
    while True:
        try:
            return bind(visit.station.host, visit.spec, any_firmware=True)
        except HostLost:
            raise
        except (RigTrouble, DriveFault):
            if time.monotonic() >= limit:
                raise
        time.sleep(LOOK_S)


def _beside_us(program: str) -> str:
    """A program of this machine; those of our own environment are found without being in PATH."""
    path = os.pathsep.join([str(Path(sys.executable).parent), os.environ.get("PATH", "")])
    return shutil.which(program, path=path) or program
