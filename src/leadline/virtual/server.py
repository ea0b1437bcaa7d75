"""The process behind a virtual rig: it holds the PDU's line, and does what its outlets say.

`leadline.virtual.rig` starts it as `python -m leadline.virtual.server OPTIONS`, with one JSON
object for OPTIONS.  It says on stdout how it gets on, one JSON object a line, the last of which
has `ready` or `error`; and it ends, with all that it started, on SIGTERM and when its stdin
closes.  The kernel kills what it started when it dies otherwise.
"""

from __future__ import annotations

import json
import os
import queue
import signal
import sys
import threading
import time
from collections.abc import Callable
from concurrent.futures import Future
from contextlib import ExitStack, suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from leadline.errors import Misuse, RigTrouble
from leadline.inventory.rig import Rig, load_rig
from leadline.virtual import accel, access
from leadline.virtual.image import Image
from leadline.virtual.initrd import compose
from leadline.virtual.machine import Machine, memory_mib
from leadline.virtual.pdus.pty import VirtualPdu
from leadline.virtual.power import Power
from leadline.virtual.state import State

_TICK_S = 0.1
ALREADY_UP = "already up"


@dataclass(frozen=True)
class Options:
    """What the rig is started with.  All paths are absolute."""

    rig: str
    image: str
    release: str
    kernel: str | None
    kernel_arguments: str | None
    profiles: dict[str, str]
    tied: bool
    """Whether it ends when its stdin closes."""


@dataclass(frozen=True)
class _Switch:
    pdu: str
    outlet: int
    on: bool
    done: Future[None]


class Server:
    """One virtual rig, from its power coming on until it is told to end."""

    def __init__(self, rig: Rig, options: Options) -> None:
        self._rig = rig
        self._options = options
        self._state = State(rig.name)
        # A signal's handler puts into it, perhaps while the main thread is in the midst of `get`:
        # of `queue`'s kinds this one alone bears that.
        self._asked: queue.SimpleQueue[_Switch | None] = queue.SimpleQueue()
        self._contacts = {
            (pdu.name, number): True for pdu in rig.pdus for number in range(1, pdu.outlets + 1)
        }
        self._ending = threading.Event()
        self._trouble = ""
        self._power: Power | None = None

    def run(self) -> None:
        """Bring it up, say that it is, serve it until the end."""
        for number in (signal.SIGTERM, signal.SIGINT, signal.SIGHUP):
            signal.signal(number, lambda *_: self._asked.put(None))
        if self._options.tied:
            threading.Thread(target=self._wait_for_owner, daemon=True).start()
        with ExitStack() as stack:
            stack.callback(self._state.tidy)
            os.chdir(self._state.root)
            reservation = stack.enter_context(access.reserve_port())
            self._power = self._make(reservation.getsockname()[1])
            stack.callback(self._power.all_off)
            for pdu in self._rig.pdus:
                link = access.pdu_link(self._rig, pdu)
                on_switch = self._on_switch(pdu.name)
                stack.enter_context(VirtualPdu(pdu.outlets, on_switch, link, family=pdu.family))
            stack.callback(self._ending.set)  # a switching that is not done yet is not waited for
            self._power.all_on()
            if self._until_up():
                say(ready=self._status())
                silence()
                self._serve()

    def _make(self, port: int) -> Power:
        spec, options, state = self._rig.virtual, self._options, self._state
        assert spec is not None
        image = Image(Path(options.image), options.release)
        accelerator = accel.choose(image.kernel)
        if accelerator.notice:
            say(note=accelerator.notice)
        own = Path(options.kernel) if options.kernel else spec.kernel
        keys = access.make_keys(self._rig, state, port)
        advice = compose(image, keys, own, state.root / "initrd")
        if advice:
            say(note=advice)
        arguments = options.kernel_arguments
        machine = Machine(
            accelerator,
            own or image.kernel,
            state.root / "initrd",
            memory_mib(spec.memory_mib, state.root / "initrd"),
            spec.cpus,
            spec.kernel_arguments if arguments is None else arguments,
            own_kernel=own is not None,
        )
        profiles = {slot: Path(path) for slot, path in options.profiles.items()}
        return Power(self._rig, state, machine, port, profiles)

    def _on_switch(self, pdu: str) -> Callable[[int, bool], None]:
        def switch(outlet: int, on: bool) -> None:
            # Processes are to be started by the main thread alone (see `processes.Part`).
            done: Future[None] = Future()
            self._asked.put(_Switch(pdu, outlet, on, done))
            while not self._ending.is_set():
                with suppress(TimeoutError):
                    done.result(_TICK_S)
                    return

        return switch

    def _wait_for_owner(self) -> None:
        while os.read(sys.stdin.fileno(), 1024):
            pass
        self._asked.put(None)

    def _until_up(self) -> bool:
        """Whether the guest came up; False when it is to end instead."""
        assert self._power is not None
        deadline = self._rig.host.boot_deadline_s
        while self._power.phase != "up":
            if not self._turn():
                return False
            if self._power.phase == "halted":
                trouble = self._trouble or "it switched itself off"
                raise RigTrouble(f"the guest did not come up: {trouble}{self._console()}")
            if self._power.booting_for() > deadline:
                raise RigTrouble(
                    f"the guest is not up after {deadline:g} s (host.boot_deadline_s)"
                    f"{self._console()}"
                )
        return True

    def _console(self) -> str:
        assert self._power is not None
        said = self._power.console_tail()
        if not said:
            return "; its console said nothing: has the kernel a driver for the serial port?"
        return f"; its console ({self._power.console}) ends:{said}"

    def _serve(self) -> None:
        while self._turn():
            pass

    def _turn(self) -> bool:
        """Do what was asked, look how things are; False when it is to end."""
        assert self._power is not None
        try:
            asked = self._asked.get(timeout=_TICK_S)
        except queue.Empty:
            pass
        else:
            if asked is None:
                return False
            self._obey(asked)
        before = self._power.phase
        try:
            trouble = self._power.look()
        except RigTrouble as found:
            trouble = str(found)
        if trouble:
            self._note(trouble)
        if trouble or before != self._power.phase:
            self._state.write_status(self._status())
        return True

    def _obey(self, asked: _Switch) -> None:
        self._contacts[asked.pdu, asked.outlet] = asked.on
        try:
            self._apply(asked)
        except (RigTrouble, Misuse, OSError) as trouble:
            self._note(f"outlet {asked.outlet} of {asked.pdu}: {trouble}")
        finally:
            asked.done.set_result(None)
        self._state.write_status(self._status())

    def _apply(self, asked: _Switch) -> None:
        assert self._power is not None
        fed = [o for o in self._rig.outlets if (o.pdu, o.outlet) == (asked.pdu, asked.outlet)]
        for outlet in fed:
            if outlet.feeds == "host":
                alive = any(self._contacts[o.pdu, o.outlet] for o in self._rig.host_outlets())
                (self._power.host_on if alive else self._power.host_off)()
                continue
            for slot in outlet.feeds:
                supplies = self._rig.outlets_of(self._rig.drive(slot))
                alive = any(self._contacts[o.pdu, o.outlet] for o in supplies)
                (self._power.drive_on if alive else self._power.drive_off)(slot)

    def _note(self, trouble: str) -> None:
        self._trouble = trouble
        say(note=trouble)  # for whoever waits for the start; later nobody hears it
        print(f"{time.strftime('%H:%M:%S')} {trouble}", file=sys.stderr, flush=True)

    def _status(self) -> dict[str, Any]:
        power = self._power
        assert power is not None
        return {
            "rig": self._rig.name,
            "file": str(self._rig.path),
            "running": True,
            "server": os.getpid(),
            "host": power.phase,
            "boot_s": round(power.booted_s, 2),
            "accelerator": "kvm" if power.machine.accelerator.kvm else "tcg",
            "kernel": str(power.machine.kernel),
            "port": power.port,
            "ssh_config": str(self._state.ssh_config),
            "address": self._rig.host.address,
            "pdus": {pdu.name: pdu.port for pdu in self._rig.pdus},
            "outlets": {o.name: self._contacts[o.pdu, o.outlet] for o in self._rig.outlets},
            "drives": {
                name: {
                    "bus": slot.place.bus,
                    "powered": slot.powered,
                    "firmware": slot.identity.firmware if slot.identity else "",
                    "profile": str(slot.profile) if slot.profile else "",
                    "profile_sha256": slot.profile_sha256,
                    "power_cycles": max(slot.cycle, 0),
                }
                for name, slot in power.slots.items()
            },
            "log": str(self._state.log),
            "trouble": self._trouble,
        }


def say(**what: object) -> None:
    """One line for whoever started this; nobody minds if that one has gone."""
    try:
        print(json.dumps(what), flush=True)
    except BrokenPipeError:
        silence()


def silence() -> None:
    """Nothing more goes to stdout, which would keep the starter's pipe open."""
    nowhere = os.open(os.devnull, os.O_WRONLY)
    os.dup2(nowhere, sys.stdout.fileno())
    os.close(nowhere)


def main() -> int:
    """The program; 0 when it was told to end, 1 after an `error` line."""
    signal.signal(signal.SIGPIPE, signal.SIG_IGN)
    options = Options(**json.loads(sys.argv[1]))
    try:
        rig = load_rig(Path(options.rig))
        state = State(rig.name)
        if not state.take():
            say(error=ALREADY_UP, owner="")
            return 1
        state.clear()
        state.log.mkdir(parents=True)
        log = os.open(state.log / "server.log", os.O_WRONLY | os.O_CREAT | os.O_APPEND, 0o600)
        os.dup2(log, sys.stderr.fileno())
        Server(rig, options).run()
    except Misuse as wrong:
        say(error=str(wrong), owner="user")
        return 1
    except RigTrouble as trouble:
        say(error=str(trouble), owner="rig")
        return 1
    except OSError as trouble:
        where = f"{trouble.filename}: " if trouble.filename else ""
        say(error=f"virtual rig: {where}{trouble.strerror}", owner="rig")
        return 1
    return 0


if __name__ == "__main__":
    # Not through interpreter shutdown: a PDU's thread may wait for an answer for ever.
    code = main()
    sys.stderr.flush()
    os._exit(code)
