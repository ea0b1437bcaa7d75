"""A virtual PDU's side of a serial line: how it hears, and how the line misbehaves.

There is no port here and no clock: bytes go in, and what is said comes out, with the
pauses before it.
"""

import random
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from typing import ClassVar, Protocol

from leadline.virtual.pdus.faults import Faults
from leadline.virtual.pdus.outlets import Outlets

# A piece of an answer: seconds to wait before it, and its bytes.
Piece = tuple[float, bytes]
ERASE = b"\x08\x7f"


@dataclass(frozen=True)
class Terminal:
    """A unit that is typed to: lines ended by Enter (CR, LF, or CR+LF as one).

    `keys` act at once, without Enter, and end the line that they are part of.  `ready` is
    what it says when its line's DTR was dropped and is up again.
    """

    echo: bool = True
    keys: bytes = b""
    ready: bytes = b""


@dataclass(frozen=True)
class Frames:
    """A unit that takes binary frames, with no Enter and no echo.

    `length` gives the bytes that the first frame of those that came takes; 0 while it
    is not whole.  Bytes that begin no frame are frames of their own, for the unit to ignore.
    """

    length: Callable[[bytes], int]


class Unit(Protocol):
    """One family's device: its outlets and its dialogue, well-behaved.

    `LEFT_AT` are the places where somebody may have left its session, and what it had said
    there last.  `SPEC` is what a rig file says of it beyond family, port and outlets.
    """

    LEFT_AT: ClassVar[Mapping[str, bytes]]
    SPEC: ClassVar[Mapping[str, object]]
    outlets: Outlets

    def __init__(self, outlets: Outlets) -> None: ...

    @property
    def FRAMING(self) -> Terminal | Frames:
        """How it hears where it is now: a pager may take keys that a prompt does not."""

    @property
    def hides(self) -> bool:
        """Whether a password is being typed, which is not echoed."""

    def begin(self, left_at: str) -> bytes:
        """A fresh session, or that which was left there; what was typed and not sent yet."""

    def answer(self, line: bytes) -> Iterator[Piece]:
        """Obey one line (without its Enter) or frame; the pieces of what it says to it."""


class Dialogue:
    """A unit on a line with faults.

    `hear` takes what was typed and yields what is said.  Faults can be put in place of
    each other at any time.
    """

    def __init__(self, unit: Unit) -> None:
        self.unit = unit
        self.outlets = unit.outlets
        self._noise = random.Random(5)
        self._previous: list[Piece] = []
        self.begin()

    @property
    def faults(self) -> Faults:
        return self.outlets.faults

    @faults.setter
    def faults(self, faults: Faults) -> None:
        self.outlets.faults = faults

    @property
    def contacts(self) -> dict[int, bool]:
        return self.outlets.contacts

    def begin(self) -> None:
        """A fresh session, or the one that somebody left (`faults.left_at`)."""
        self._after_cr = False
        self._typed = bytearray(self.unit.begin(self.faults.left_at))

    def hear(self, data: bytes) -> Iterator[Piece]:
        """Characters typed; the pieces of what the PDU says to them."""
        framing = self.unit.FRAMING
        if isinstance(framing, Frames):
            self._typed += data
            while length := framing.length(bytes(self._typed)):
                frame = bytes(self._typed[:length])
                del self._typed[:length]
                yield from self._misbehave(frame)
            return
        for byte in data:
            if isinstance(terminal := self.unit.FRAMING, Terminal):
                yield from self._key(bytes([byte]), terminal)

    def _key(self, char: bytes, terminal: Terminal) -> Iterator[Piece]:
        newline_of_pair = char == b"\n" and self._after_cr
        self._after_cr = char == b"\r"
        if newline_of_pair:
            return
        if char in b"\r\n" or char in terminal.keys:
            line = bytes(self._typed) + (char if char in terminal.keys else b"")
            self._typed.clear()
            yield from self._misbehave(line)
        elif char in ERASE:
            if self._typed:
                del self._typed[-1]
                yield from self._echo(b"\x08 \x08", terminal)
        else:
            self._typed += char
            yield from self._echo(char, terminal)

    def _echo(self, char: bytes, terminal: Terminal) -> Iterator[Piece]:
        faults = self.faults
        deaf = faults.silent or faults.mute or faults.garbage or faults.stale
        hidden = self.unit.hides and not faults.password_echoed
        if terminal.echo and not hidden and not (deaf and faults.lines != 0):
            yield 0.0, char

    def _misbehave(self, line: bytes) -> Iterator[Piece]:
        faults = self.faults
        if not faults.on_the_line():
            yield from self.unit.answer(line)
        elif faults.silent:
            return
        elif faults.garbage:
            yield 0.0, bytes(self._noise.randrange(128, 256) for _ in range(12))
        elif faults.mute:
            self._finish(line)
        elif faults.stale:
            echo = b"" if self.unit.hides or isinstance(self.unit.FRAMING, Frames) else line
            previous, self._previous = self._previous, [(0.0, echo), *self._finish(line)]
            yield from previous
        elif faults.half:
            said = b"".join(text for _, text in self._finish(line))
            yield faults.slow_s, said[: len(said) // 2]
        else:
            if faults.slow_s:
                yield faults.slow_s, b""
            if faults.noise:
                yield 0.0, bytes(self._noise.randrange(1, 256) for _ in range(faults.noise))
            yield from self.unit.answer(line)

    def _finish(self, line: bytes) -> list[Piece]:
        return list(self.unit.answer(line))
