"""What has power in a virtual rig: the machine, and the drives on outlets of their own.

Cutting power is SIGKILL, to QEMU and to the models of the drives that go dark: what they had
not flushed is lost.  Switching on starts them afresh, each drive on the firmware that it was
last flashed with.
"""

from __future__ import annotations

import re
import time
from collections.abc import Iterable
from dataclasses import dataclass, field
from pathlib import Path
from typing import Literal

from leadline.errors import RigTrouble
from leadline.host.trouble import last_lines, printable
from leadline.inventory.rig import Rig
from leadline.virtual import mount, qmp
from leadline.virtual.machine import (
    Attachment,
    Identity,
    Machine,
    attachments,
    let_in,
    profile_identity,
    spec_identity,
)
from leadline.virtual.processes import Part, start_medium, wait_ready
from leadline.virtual.profile import digest, load_profile
from leadline.virtual.state import State

QMP_NAME = "qmp.sock"
_READY_LINE = b"leadline: ready"
_SILENT_S = 30.0
"""A boot whose console says nothing for so long hangs; on a busy machine 5 s have been seen."""
_BOOTS = 3
_PANIC = re.compile(rb"Kernel panic - not syncing[^\r\n]*")

Phase = Literal["off", "booting", "up", "halted"]


@dataclass
class Slot:
    """One drive, powered or not."""

    place: Attachment
    profile: Path | None
    """What it runs on: its firmware.  None for an NBD export."""
    export: str | None
    has_own_outlet: bool
    powered: bool = False
    cycle: int = -1
    """How many times it was switched on before this time."""
    model: Part | None = None
    identity: Identity | None = None
    profile_sha256: str = ""
    """Of the profile that it was last switched on with."""


@dataclass
class Power:
    """The rig's machine and drives.  Not thread-safe: the server's main thread alone calls it."""

    rig: Rig
    state: State
    machine: Machine
    port: int
    profiles: dict[str, Path] = field(default_factory=dict)
    """For slots that are to start on another profile than the rig file's."""
    phase: Phase = "off"
    qemu: Part | None = None
    slots: dict[str, Slot] = field(default_factory=dict)
    booted_s: float = 0.0
    """How long the last boot took, from power to logins."""
    _switched_on: float = 0.0
    _console_read: int = 0
    _heard: tuple[int, float] = (0, 0.0)
    """How much this boot has said, and when it last said something."""
    _boots: int = 0
    """How many were begun since the power came on."""

    def __post_init__(self) -> None:
        assert self.rig.virtual is not None
        for place, drive in zip(attachments(self.rig), self.rig.virtual.drives, strict=True):
            outlets = self.rig.outlets_of(self.rig.drive(drive.slot))
            own = any(outlet.feeds != "host" for outlet in outlets)
            profile = self.profiles.get(drive.slot, drive.profile)
            export = drive.medium if profile is drive.profile else None
            self.slots[drive.slot] = Slot(place, profile, export, own)

    @property
    def _qmp(self) -> Path:
        return Path(QMP_NAME)  # the server works in the state directory: sockets have short names

    @property
    def console(self) -> Path:
        """What the guest's kernel and init say."""
        return self.state.log / "console.log"

    def all_on(self) -> None:
        """The beginning: every outlet is on."""
        self._drives_on(self.slots.values())
        self.host_on()

    def host_on(self) -> None:
        """Power for the machine, and for the drives that live on its supply."""
        if self.phase != "off":
            return
        self._switched_on = time.monotonic()
        self._boots = 0
        self._drives_on(slot for slot in self.slots.values() if not slot.has_own_outlet)
        self._boot()

    def _boot(self) -> None:
        self._boots += 1
        self._qmp.unlink(missing_ok=True)
        self._heard = (0, time.monotonic())
        self._console_read = self.console.stat().st_size if self.console.exists() else 0
        powered = [slot for slot in self.slots.values() if slot.powered]
        arguments = self.machine.arguments(
            [(self._node(slot), self._device(slot)) for slot in powered],
            ide=any(slot.place.bus == "ide" for slot in self.slots.values()),
            console=self.console,
            qmp=QMP_NAME,
            adapters=1 + max(slot.place.controller for slot in self.slots.values()),
        )
        self.qemu = Part(arguments, self.state.log / "qemu.log", self.state.root)
        self.phase = "booting"

    def host_off(self) -> None:
        """Cut it, at whatever moment."""
        self._cut(slot for slot in self.slots.values() if not slot.has_own_outlet)

    def drive_on(self, name: str) -> None:
        """Power for one drive that has an outlet of its own."""
        slot = self.slots[name]
        if slot.powered:
            return  # by another of its outlets
        self._drives_on([slot])
        if self.qemu is not None:
            qmp.plug(self._qmp, self._node(slot), self._device(slot))

    def drive_off(self, name: str) -> None:
        """Cut one drive's power."""
        slot = self.slots[name]
        if not slot.powered:
            return
        # The model first: taken out of a living machine, the drive would be flushed.
        self._drives_off([slot])
        if self.qemu is not None:
            qmp.unplug(self._qmp, slot.place.name, slot.place.node)

    def look(self) -> str:
        """See how the machine is doing; a sentence when something is wrong, else "".

        A guest that has come up is let in here.
        """
        if self.qemu is None:
            return self._dead_models()
        code = self.qemu.ended
        if code is not None:
            self.qemu.reap()
            said, self.qemu, self.phase = self.qemu.said(), None, "halted"
            return f"QEMU ended with {code}{said}" if code else ""
        if self.phase == "booting":
            heard = self._console_since()
            if _READY_LINE in heard:
                qmp.monitor(self._qmp, let_in(self.port))
                self.booted_s = self.booting_for()
                self.phase = "up"
            elif panic := _PANIC.search(heard):
                self.phase = "halted"
                return printable(panic[0])
            elif self._hangs(len(heard)) and self._boots < _BOOTS:
                self.qemu.kill()
                self._boot()
                return f"the guest hung in its boot, and is booted anew ({self._boots} of {_BOOTS})"
        return self._dead_models()

    def _hangs(self, heard: int) -> bool:
        """Whether our own guest has stopped in the middle of its boot, which is QEMU's doing.

        Emulated, one boot in some hundred ends in a storm of timer interrupts.  A kernel of
        the user's own is left hanging, for that may be what he looks for.
        """
        before, since = self._heard
        if heard != before:
            self._heard = (heard, time.monotonic())
            return False
        ours = not (self.machine.accelerator.kvm or self.machine.own_kernel)
        return ours and time.monotonic() - since > _SILENT_S

    def booting_for(self) -> float:
        """Seconds since the power came on."""
        return time.monotonic() - self._switched_on

    def console_tail(self) -> str:
        """The guest's last words, to stand below a message; "" when it said none."""
        return last_lines(self._console_since()[-4096:])

    def all_off(self) -> None:
        """The end: whatever runs is killed."""
        self._cut(self.slots.values())

    def _cut(self, dark: Iterable[Slot]) -> None:
        """The machine's power, and that of these drives.

        Linux lets a killed process not go while a FUSE file system owes it an answer: a drive that
        hangs is killed before QEMU is waited for.
        """
        qemu, self.qemu, self.phase = self.qemu, None, "off"
        if qemu is not None:
            qemu.process.kill()
        try:
            self._drives_off(dark)
        finally:
            if qemu is not None:
                qemu.reap()

    def _console_since(self) -> bytes:
        """What the console has said since the power came on."""
        try:
            return self.console.read_bytes()[self._console_read :]
        except FileNotFoundError:
            return b""

    def _dead_models(self) -> str:
        for name, slot in self.slots.items():
            if slot.model is not None and slot.model.ended is not None:
                dead, slot.model = slot.model, None
                return f"the model of {name} ended with {dead.ended}{dead.said()}"
        return ""

    def _drives_on(self, slots: Iterable[Slot]) -> None:
        """All models at once, for starting one is mostly waiting for Python."""
        starting = {}
        for slot in (slot for slot in slots if not slot.powered):
            name = slot.place.slot
            slot.powered = True
            slot.cycle += 1
            staged = self.state.staged(name)
            if staged.exists():
                slot.profile, slot.export = staged, None
            if slot.profile is None:
                slot.identity = spec_identity(self.rig, name)
                continue
            slot.identity = profile_identity(load_profile(slot.profile).at_cycle(slot.cycle))
            slot.profile_sha256 = digest(slot.profile)
            folder = self.state.medium(name)
            folder.mkdir(parents=True, exist_ok=True)
            slot.model = start_medium(
                slot.profile, folder, slot.cycle, self.state.log / f"{name}.log"
            )
            starting[name] = slot.model
        wait_ready(starting)

    def _drives_off(self, slots: Iterable[Slot]) -> None:
        dying = [slot for slot in slots if slot.powered]
        for slot in dying:
            slot.powered = False
            if slot.model is not None:
                slot.model.process.kill()
        for slot in dying:
            if slot.model is not None:
                slot.model.reap()
                slot.model = None
                mount.prepare(self.state.medium(slot.place.slot) / "mnt")

    def _node(self, slot: Slot) -> dict[str, object]:
        if slot.export is not None:
            return slot.place.block(slot.export)
        return slot.place.block(self.state.medium(slot.place.slot) / "mnt" / "medium")

    def _device(self, slot: Slot) -> dict[str, object]:
        if slot.identity is None:
            raise RigTrouble(f"slot {slot.place.slot} has never been switched on")
        return slot.place.device(slot.identity)
