"""A bench supply that speaks SCPI as a Rigol DP800 does; what it cannot read, it ignores."""

import re
from collections.abc import Iterator, Mapping
from typing import ClassVar

from leadline.virtual.pdus.line import Frames, Piece, Terminal, Unit
from leadline.virtual.pdus.outlets import Outlets


class Supply:
    """Two channels."""

    # A command without its line end.
    LEFT_AT: ClassVar[Mapping[str, bytes]] = {"half-typed": b""}
    SPEC: ClassVar[Mapping[str, object]] = {}
    FRAMING: ClassVar[Terminal | Frames] = Terminal(echo=False)
    WORDS: ClassVar[Mapping[bool, bytes]] = {True: b"ON", False: b"OFF"}

    def __init__(self, outlets: Outlets) -> None:
        self.outlets = outlets

    @property
    def hides(self) -> bool:
        return False

    def begin(self, left_at: str) -> bytes:
        """There is no session."""
        return b":OUTP CH1,OFF" if left_at == "half-typed" else b""

    def answer(self, line: bytes) -> Iterator[Piece]:
        """Obey one line."""
        text = line.decode("latin-1").strip()
        if text == "*IDN?":
            yield 0.0, b"RIGOL TECHNOLOGIES,DP832,DP8A000000000,00.01.14\n"
        elif (asked := re.fullmatch(r":OUTP\? CH(\d)", text)) and self._has(asked[1]):
            yield 0.0, self.WORDS[self.outlets.shown[int(asked[1])]] + b"\n"
        elif (told := re.fullmatch(r":OUTP CH(\d),(ON|OFF)", text)) and self._has(told[1]):
            self.outlets.switch(int(told[1]), on=told[2] == "ON")

    def _has(self, channel: str) -> bool:
        return int(channel) in self.outlets.contacts


class NumericSupply(Supply):
    """One that says 1 and 0, and has three channels."""

    SPEC: ClassVar[Mapping[str, object]] = {"outlets": 3}
    WORDS: ClassVar[Mapping[bool, bytes]] = {True: b"1", False: b"0"}


UNITS: tuple[type[Unit], ...] = (Supply, NumericSupply)
