"""Devices that a rig file can describe, each of another kind; `SPEC` has the description.

They are those of docs/how-to/describe-a-pdu.md: a PDU with a prompt (an Appro SWPDU, as
powerman knows it), an Aim-TTi supply, a relay board that takes frames; and a strip with a
table of names, hexadecimal and counted from 0, made up.
"""

import re
from collections.abc import Iterator, Mapping
from typing import ClassVar

from leadline.virtual.pdus.kmtronic import Board as AskedBoard
from leadline.virtual.pdus.lcus import MuteBoard
from leadline.virtual.pdus.line import Frames, Piece, Terminal, Unit
from leadline.virtual.pdus.outlets import Outlets


class Swpdu:
    """A prompt, and a status for each outlet."""

    LEFT_AT: ClassVar[Mapping[str, bytes]] = {
        "prompt": b"\r\nswpdu> ",
        "half-typed": b"\r\nswpdu> off 1",
    }
    SPEC: ClassVar[Mapping[str, object]] = {
        "dialogue": {
            "on": "on {outlet}",
            "off": "off {outlet}",
            "status": "status {outlet}",
            "prompt": "swpdu>",
            "row": "port{outlet}: {state}",
            "on_words": ["on"],
            "off_words": ["off"],
            "errors": ["error*"],
        }
    }
    FRAMING: ClassVar[Terminal | Frames] = Terminal()
    PROMPT: ClassVar[bytes] = b"\r\nswpdu> "
    TYPED: ClassVar[bytes] = b"off 1"

    def __init__(self, outlets: Outlets) -> None:
        self.outlets = outlets

    @property
    def hides(self) -> bool:
        return False

    def begin(self, left_at: str) -> bytes:
        """There is nothing but the prompt."""
        return self.TYPED if left_at == "half-typed" else b""

    def answer(self, line: bytes) -> Iterator[Piece]:
        """Obey one line."""
        text = line.decode("latin-1").strip()
        said = self._obey(text) if text else ""
        yield 0.0, b"\r\n" + said.encode("latin-1") + self.PROMPT

    def _obey(self, text: str) -> str:
        command = re.fullmatch(r"(on|off|status) (\d+)", text)
        if not command or int(command[2]) not in self.outlets.contacts:
            return f"error: {text}"
        outlet = int(command[2])
        if command[1] == "status":
            return f"port{outlet}: {'on' if self.outlets.shown[outlet] else 'off'}"
        self.outlets.switch(outlet, on=command[1] == "on")
        return ""


class NamedStrip(Swpdu):
    """A table with the names of its outlets, which are 0 to 0B in hexadecimal."""

    LEFT_AT: ClassVar[Mapping[str, bytes]] = {
        "prompt": b"\r\nSTRIP#",
        "half-typed": b"\r\nSTRIP#set 00 0",
    }
    SPEC: ClassVar[Mapping[str, object]] = {
        "outlets": 12,
        "dialogue": {
            "on": "set {outlet:02X} 1",
            "off": "set {outlet:02X} 0",
            "status": "list",
            "first": 0,
            "prompt": "STRIP#",
            "row": "{outlet:02X} | * | {state}",
            "on_words": ["CLOSED", "ON"],
            "off_words": ["OPEN", "OFF"],
            "errors": ["?*"],
        },
    }
    PROMPT: ClassVar[bytes] = b"\r\nSTRIP#"
    TYPED: ClassVar[bytes] = b"set 00 0"

    def _obey(self, text: str) -> str:
        command = re.fullmatch(r"set ([0-9A-F]{2}) ([01])", text)
        if text == "list":
            return "\r\n".join(self._row(n, on) for n, on in self.outlets.shown.items())
        if not command or int(command[1], 16) + 1 not in self.outlets.contacts:
            return f"? {text}"
        self.outlets.switch(int(command[1], 16) + 1, on=command[2] == "1")
        return ""

    def _row(self, outlet: int, on: bool) -> str:
        name = self.outlets.name(outlet, f"outlet {outlet - 1}")
        return f"  {outlet - 1:02X} | {name:<15} | {'ON' if on else 'OFF'}"


class TwinSupply:
    """An Aim-TTi supply: no prompt, no echo, `OP1 1`, `OP1?`."""

    # A command without its line end.
    LEFT_AT: ClassVar[Mapping[str, bytes]] = {"half-typed": b""}
    SPEC: ClassVar[Mapping[str, object]] = {
        "outlets": 2,
        "end_of_line": "crlf",
        "dialogue": {
            "on": "OP{outlet} 1",
            "off": "OP{outlet} 0",
            "status": "OP{outlet}?",
            "identify": "*IDN?",
            "row": "{state}",
            "on_words": ["1"],
            "off_words": ["0"],
        },
    }
    FRAMING: ClassVar[Terminal | Frames] = Terminal(echo=False)

    def __init__(self, outlets: Outlets) -> None:
        self.outlets = outlets

    @property
    def hides(self) -> bool:
        return False

    def begin(self, left_at: str) -> bytes:
        """There is no session."""
        return b"OP1 0" if left_at == "half-typed" else b""

    def answer(self, line: bytes) -> Iterator[Piece]:
        """Obey one line."""
        text = line.decode("latin-1").strip()
        if text == "*IDN?":
            yield 0.0, b"THURLBY THANDAR, CPX400DP, 000000, 1.00-1.00\r\n"
        elif (asked := re.fullmatch(r"OP([12])\?", text)) is not None:
            yield 0.0, b"%d\r\n" % self.outlets.shown[int(asked[1])]
        elif (told := re.fullmatch(r"OP([12]) ([01])", text)) is not None:
            self.outlets.switch(int(told[1]), on=told[2] == "1")


class SummedFrames(MuteBoard):
    """A relay board whose frames end in a sum, and that says nothing."""

    # Nothing but its first byte can be left: the description has no filler.
    LEFT_AT: ClassVar[Mapping[str, bytes]] = {}
    SPEC: ClassVar[Mapping[str, object]] = {
        "dialogue": {
            "encoding": "hex",
            "on": "A0 {outlet} 01 {sum}",
            "off": "A0 {outlet} 00 {sum}",
        }
    }


class AskedFrames(AskedBoard):
    """A relay board that tells its states in frames."""

    LEFT_AT: ClassVar[Mapping[str, bytes]] = {}
    SPEC: ClassVar[Mapping[str, object]] = {
        "dialogue": {
            "encoding": "hex",
            "on": "FF {outlet} 01",
            "off": "FF {outlet} 00",
            "status": "FF {outlet} 03",
            "row": "FF {outlet} {state}",
            "on_words": ["01"],
            "off_words": ["00"],
        }
    }


UNITS: tuple[type[Unit], ...] = (Swpdu, NamedStrip, TwinSupply, SummedFrames, AskedFrames)
