"""A Quarch module: a prompt `>`, `run:power up|down`, `run:power?`, `OK` or `FAIL`.

The words for up are the opposites of the known ones for down (`OFF`, `PULLED`): no module
was at hand.
"""

from collections.abc import Iterator, Mapping
from typing import ClassVar

from leadline.virtual.pdus.line import Frames, Piece, Terminal, Unit
from leadline.virtual.pdus.outlets import Outlets

PROMPT = b"\r\n>"


class PowerModule:
    """The power module."""

    # `run:power down` without its Enter.
    LEFT_AT: ClassVar[Mapping[str, bytes]] = {
        "prompt": PROMPT,
        "half-typed": PROMPT + b"run:power down",
    }
    SPEC: ClassVar[Mapping[str, object]] = {}
    FRAMING: ClassVar[Terminal | Frames] = Terminal()
    WORDS: ClassVar[Mapping[bool, bytes]] = {True: b"ON", False: b"OFF"}

    def __init__(self, outlets: Outlets) -> None:
        self.outlets = outlets

    @property
    def hides(self) -> bool:
        return False

    def begin(self, left_at: str) -> bytes:
        """There is nothing but the prompt."""
        return b"run:power down" if left_at == "half-typed" else b""

    def answer(self, line: bytes) -> Iterator[Piece]:
        """Obey one line."""
        command = line.strip().lower()
        if command in (b"run:power up", b"run:power down"):
            self.outlets.switch(1, on=command.endswith(b"up"))
            said = b"OK"
        elif command == b"run:power?":
            said = self.WORDS[self.outlets.shown[1]]
        elif command:
            said = b"FAIL: 0x11 -Unknown command"
        else:
            yield 0.0, PROMPT
            return
        yield 0.0, b"\r\n" + said + PROMPT


class HotPlugModule(PowerModule):
    """The module that pulls the whole drive, and shows nothing that is typed."""

    FRAMING: ClassVar[Terminal | Frames] = Terminal(echo=False)
    WORDS: ClassVar[Mapping[bool, bytes]] = {True: b"PLUGGED", False: b"PULLED"}


UNITS: tuple[type[Unit], ...] = (PowerModule, HotPlugModule)
