"""A BayTech RPC3-NC on a pty: what Leadline, powermand or a person can talk to.

The dialogue is that of a real RPC3-NC (the unit that powerman's description
`baytech-rpc3-nc` was written against): a prompt `RPC3-NC>`, `on N`, `off N`,
`reboot N` with 0 for all, `status`, `Input error` for anything else.  Its traps
are kept: commands are case sensitive, `on 2-4` switches outlet 2 alone and
reports success, `reboot` leaves an outlet that was off off, and the banner ends
in two prompts.
"""

import os
import random
import re
import select
import threading
import time
import tty
from collections.abc import Callable, Iterable, Iterator, Mapping
from concurrent.futures import Future, ThreadPoolExecutor, wait
from dataclasses import dataclass, field
from pathlib import Path

from leadline.errors import RigTrouble

PROMPT = b"RPC3-NC>"
BANNER = (
    b"\r\n\r\nRPC3-NC Series\r\n(C) 2002 by BayTech\r\nF4.00\r\n\r\nOption(s) Installed:\r\n"
    b"True RMS Current\r\nInternal Temperature\r\nTrue RMS Voltage\r\n\r\n" + PROMPT
)
STATUS_HEAD = (
    b"\r\n\r\n   Average Power:     338 Watts\r\nTrue RMS Voltage:   120.9 Volts\r\n"
    b"True RMS Current:     2.9 Amps\r\nMaximum Detected:     4.3 Amps\r\n"
    b" Circuit Breaker:       Good\r\n\r\nInternal Temperature:  40.0 C\r\n\r\n\r\n"
)
STATUS_TAIL = b'\r\nType "Help" for a list of commands\r\n\r\n' + PROMPT
PAGER = b"Press <ENTER> to continue..."
ERASE = b"\x08\x7f"
QUESTION = b"Turn Off Outlet 1 (Y/N)?"
# A pager and a question that Enter leaves; a question that only N leaves; `off 1` without Enter.
LEFT_AT = ("prompt", "pager", "confirm", "insist", "half-typed")
NAME_WIDTH = 16

# A piece of an answer: seconds to wait before it, and its bytes.
Piece = tuple[float, bytes]


@dataclass
class Faults:
    """How the PDU misbehaves.  Tests change the fields while it runs.

    `lines` limits the faults of the line (silent, mute, garbage, half, stale,
    noise) to that many Enters, after which the PDU is well again; None is for ever.
    """

    silent: bool = False  # hears nothing, says nothing
    mute: bool = False  # obeys, and says nothing
    garbage: bool = False  # the wrong baud rate: understands nothing, answers with noise
    half: bool = False  # obeys, and stops in the middle of its answer
    stale: bool = False  # obeys, and gives the answer to the command before
    noise: int = 0  # obeys, with so many bytes of noise before the answer
    slow_s: float = 0.0  # seconds before each answer
    lines: int | None = None
    stuck: set[int] = field(default_factory=set)  # relay does not move, and status says so
    welded: set[int] = field(default_factory=set)  # contacts do not move; status says they did
    rewired: dict[int, int] = field(default_factory=dict)  # a command for N switches another
    names: dict[int, str] = field(default_factory=dict)  # what the user called the outlets
    left_at: str = "prompt"  # where the last user left: see LEFT_AT
    page_lines: int = 0  # `status` stops at a pager after so many lines
    leftover: bytes = b""  # text that lies on the line when a session begins

    def on_the_line(self) -> bool:
        """Whether this Enter is one that is misheard or misanswered; counts it."""
        if self.lines is None:
            return True
        misheard = self.lines > 0
        self.lines -= misheard
        return misheard


class Dialogue:
    """The RPC3-NC's side of a conversation, without a port and without a clock.

    `hear` takes what was typed and yields what is said; `contacts` is what the
    outlets really do, `shown` what `status` says.
    """

    def __init__(
        self,
        outlets: int,
        on_switch: Callable[[int, bool], None],
        *,
        on: Iterable[int],
        faults: Faults | None = None,
        reboot_s: int = 10,
    ) -> None:
        self.faults = faults if faults is not None else Faults()
        self.contacts = dict.fromkeys(range(1, outlets + 1), False)
        self.contacts.update(dict.fromkeys(on, True))
        self.shown = dict(self.contacts)
        self._on_switch = on_switch
        self._reboot_s = reboot_s
        self._noise = random.Random(5)
        self._previous: list[Piece] = []
        self.begin()

    def begin(self) -> None:
        """A fresh session, or the one that somebody left (`faults.left_at`)."""
        self._greeted = False
        self._after_cr = False
        self._state = self.faults.left_at
        self._typed = bytearray(b"off 1" if self._state == "half-typed" else b"")
        self._rest = PROMPT  # what a pager holds back

    def hear(self, data: bytes) -> Iterator[Piece]:
        """Characters typed; the pieces of what the PDU says to them."""
        for byte in data:
            char = bytes([byte])
            newline_of_pair = char == b"\n" and self._after_cr
            self._after_cr = char == b"\r"
            if newline_of_pair:
                continue  # CR+LF is one Enter
            if char in b"\r\n":
                line = self._typed.decode("latin-1")
                self._typed.clear()
                yield from self._misbehave(line)
            elif char in ERASE:
                if self._typed:
                    del self._typed[-1]
                    yield from self._echo(b"\x08 \x08")
            else:
                self._typed += char
                yield from self._echo(char)

    def _echo(self, char: bytes) -> Iterator[Piece]:
        faults = self.faults
        deaf = faults.silent or faults.mute or faults.garbage or faults.stale
        if not (deaf and faults.lines != 0):
            yield 0.0, char

    def _misbehave(self, line: str) -> Iterator[Piece]:
        faults = self.faults
        if not faults.on_the_line():
            yield from self._answer(line)
        elif faults.silent:
            return
        elif faults.garbage:
            yield 0.0, bytes(self._noise.randrange(128, 256) for _ in range(12))
        elif faults.mute:
            self._finish(line)
        elif faults.stale:
            previous, self._previous = self._previous, [(0.0, line.encode()), *self._finish(line)]
            yield from previous
        elif faults.half:
            said = b"".join(text for _, text in self._finish(line))
            yield faults.slow_s, said[: len(said) // 2]
        else:
            if faults.slow_s:
                yield faults.slow_s, b""
            if faults.noise:
                yield 0.0, bytes(self._noise.randrange(1, 256) for _ in range(faults.noise))
            yield from self._answer(line)

    def _finish(self, line: str) -> list[Piece]:
        return list(self._answer(line))

    def _answer(self, line: str) -> Iterator[Piece]:
        if self._state in {"pager", "confirm", "insist"}:
            yield from self._leave(line)
            return
        if not self._greeted:
            self._greeted = True
            if not line:
                yield 0.0, BANNER + PROMPT
                return
        yield 0.0, b"\r\n"
        yield from self._obey(line)

    def _leave(self, line: str) -> Iterator[Piece]:
        if self._state == "insist" and not line.strip():
            yield 0.0, b"\r\n" + QUESTION
            return
        confirmed = self._state != "pager" and line.strip().upper() in {"Y", "YES"}
        rest, self._rest = self._rest, PROMPT
        self._state = "prompt"
        self._greeted = True
        if confirmed:
            self._switch(1, on=False)
        yield 0.0, b"\r\n" + rest

    def _obey(self, line: str) -> Iterator[Piece]:
        command = re.match(r"(on|off|reboot) +(\d+)", line)
        if not line.strip():
            yield 0.0, PROMPT
        elif line.strip() == "status":
            yield 0.0, self._page(self._status())
        elif line.strip() == "exit":
            self.begin()
        elif command and int(command[2]) <= len(self.contacts):
            # Like the real unit's, this parser stops at the number: `on 2-4` is `on 2`.
            number = int(command[2])
            chosen = list(self.contacts) if number == 0 else [number]
            if command[1] == "reboot":
                yield from self._reboot(chosen)
            else:
                for outlet in chosen:
                    self._switch(outlet, on=command[1] == "on")
            yield 0.0, PROMPT
        else:
            yield 0.0, b"Input error\r\n\r\n" + PROMPT

    def _status(self) -> bytes:
        rows = bytearray()
        for outlet, on in self.shown.items():
            name = self.faults.names.get(outlet, f"Outlet {outlet:2d}")[: NAME_WIDTH - 1]
            state = "On" if on else "Off"
            rows += f"{outlet:2d})...{name:<{NAME_WIDTH}}: {state:<13}\r\n".encode("latin-1")
        return STATUS_HEAD + bytes(rows) + STATUS_TAIL

    def _page(self, text: bytes) -> bytes:
        lines = text.splitlines(keepends=True)
        first = self.faults.page_lines
        if not 0 < first < len(lines):
            return text
        self._state = "pager"
        self._rest = b"".join(lines[first:])
        return b"".join(lines[:first]) + PAGER

    def _reboot(self, chosen: list[int]) -> Iterator[Piece]:
        were_on = [outlet for outlet in chosen if self.shown[outlet]]
        for outlet in were_on:
            self._switch(outlet, on=False)
        yield 0.0, b"\r\nRebooting...  "
        for left in reversed(range(self._reboot_s)):
            yield 0.0, b"\x08%d" % (left % 10)
            yield 1.0, b""
        for outlet in were_on:
            self._switch(outlet, on=True)
        yield 0.0, b"\r\n"

    def _switch(self, outlet: int, *, on: bool) -> None:
        outlet = self.faults.rewired.get(outlet, outlet)
        if outlet in self.faults.stuck:
            return
        self.shown[outlet] = on
        if outlet not in self.faults.welded and self.contacts[outlet] != on:
            self.contacts[outlet] = on
            self._on_switch(outlet, on)


class VirtualPdu:
    """An RPC3-NC on a raw pty, found at the symbolic link `link`.

    `on_switch(outlet, on)` is called when an outlet's contacts move, in order, on a
    thread of its own: a real PDU answers at once, however long a machine takes to
    start.  `settle` waits for those calls.  `on` names the outlets that are on at
    the start; by default all.
    """

    def __init__(
        self,
        outlets: int,
        on_switch: Callable[[int, bool], None],
        link: Path,
        *,
        on: Iterable[int] | None = None,
        faults: Faults | None = None,
        reboot_s: int = 10,
    ) -> None:
        first = range(1, outlets + 1) if on is None else on
        self.link = link
        self.dialogue = Dialogue(outlets, self._enqueue, on=first, faults=faults, reboot_s=reboot_s)
        self._on_switch = on_switch
        self._switching = ThreadPoolExecutor(1, thread_name_prefix="pdu-switch")
        self._pending: list[Future[None]] = []
        self._port: _Pty | None = None

    @property
    def faults(self) -> Faults:
        return self.dialogue.faults

    @property
    def contacts(self) -> Mapping[int, bool]:
        """What each outlet really does, whatever `status` says."""
        return dict(self.dialogue.contacts)

    def start(self) -> None:
        """Make the pty and the link, and begin to answer."""
        self.plug_in()

    def stop(self) -> None:
        """Unplug, drop switchings that have not begun, wait for the one that has."""
        self.unplug()
        self._switching.shutdown(wait=True, cancel_futures=True)

    def __enter__(self) -> "VirtualPdu":
        self.start()
        return self

    def __exit__(self, *_: object) -> None:
        self.stop()

    def plug_in(self) -> None:
        """The serial adapter appears (again): a new pty under the old link."""
        if self._port is None:
            self.dialogue.begin()
            self._port = _Pty(self.dialogue, self.link)

    def unplug(self) -> None:
        """The serial adapter goes away: whoever holds it open gets EIO."""
        if self._port is not None:
            self._port.close()
            self._port = None

    def settle(self, timeout: float) -> None:
        """Wait until every switching so far has had its effect.

        Raises RigTrouble when that takes longer than `timeout` seconds, and
        whatever `on_switch` raised.
        """
        pending, self._pending = self._pending, []
        done, late = wait(pending, timeout)
        if late:
            self._pending = list(late)
            raise RigTrouble(f"virtual PDU {self.link}: switching took over {timeout:g} s")
        for future in done:
            future.result()

    def _enqueue(self, outlet: int, on: bool) -> None:
        # Kept until somebody settles only if it may still have something to say.
        self._pending = [f for f in self._pending if not f.done() or f.exception() is not None]
        self._pending.append(self._switching.submit(self._on_switch, outlet, on))


class _Pty:
    """One plugging-in of the adapter: a pty, its link, and the thread that answers."""

    def __init__(self, dialogue: Dialogue, link: Path) -> None:
        self._dialogue = dialogue
        self._link = link
        # The slave end stays open here: else the first client to leave would hang up the line.
        self._master, self._slave = os.openpty()
        tty.setraw(self._slave)
        os.set_blocking(self._master, False)
        self._unplugged, self._unplug = os.pipe()
        self._place_link(os.ttyname(self._slave))
        self._thread = threading.Thread(target=self._serve, name="virtual-pdu", daemon=True)
        self._thread.start()

    def _place_link(self, device: str) -> None:
        # Renamed into place, so that a stale link of a dead rig is replaced in one step.
        fresh = self._link.with_name(f"{self._link.name}.{os.getpid()}")
        fresh.unlink(missing_ok=True)
        fresh.symlink_to(device)
        fresh.replace(self._link)

    def close(self) -> None:
        self._link.unlink(missing_ok=True)
        os.write(self._unplug, b"!")
        self._thread.join()
        for descriptor in (self._master, self._slave, self._unplugged, self._unplug):
            os.close(descriptor)

    def _serve(self) -> None:
        self._say(self._dialogue.faults.leftover)
        while not self._gone_before_typing():
            for pause, text in self._dialogue.hear(os.read(self._master, 1024)):
                if pause and self._gone_during(pause):
                    return
                self._say(text)

    def _gone_before_typing(self) -> bool:
        """Wait until something is typed; True when the adapter is unplugged instead."""
        ready, _, _ = select.select([self._master, self._unplugged], [], [])
        return self._unplugged in ready

    def _gone_during(self, seconds: float) -> bool:
        ready, _, _ = select.select([self._unplugged], [], [], seconds)
        return bool(ready)

    def _say(self, text: bytes) -> None:
        """Write it all, unless nobody reads: a full line loses what does not fit."""
        deadline = time.monotonic() + 1.0
        while text and (left := deadline - time.monotonic()) > 0:
            _, ready, _ = select.select([], [self._master], [], left)
            if ready:
                text = text[_write_some(self._master, text) :]


def _write_some(descriptor: int, text: bytes) -> int:
    try:
        return os.write(descriptor, text)
    except BlockingIOError:
        return 0
