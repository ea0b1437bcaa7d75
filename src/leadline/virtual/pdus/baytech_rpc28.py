"""A BayTech RPC-28A, as powerman's description `baytech-rpc28-nc` knows it, and its relatives.

The commands are those of an RPC3-NC.  Two things differ: an RPC-28 says `RPC-28>` and
`RPC-28A>` by turns, and it drops a command that no Enter came before, with a prompt
that looks like success.  Two outlets stand on a line of its table.
"""

from collections.abc import Iterator, Mapping
from typing import ClassVar

from leadline.virtual.pdus.baytech import Rpc3Nc
from leadline.virtual.pdus.line import Piece, Unit

BANNER = (
    b"RPC-28 Series\r\n(C) 2000 by BayTech\r\nF3.01\r\n\r\nOption(s) Installed:\r\n"
    b"True RMS Current\r\nInternal Temperature\r\nTrue RMS Voltage\r\n\r\n"
)
STATUS_HEAD = (
    b"\r\n                    Outlet  1-10         Outlet 11-21 \r\n"
    b"   Average Power:     619 Watts     :        5 Watts \r\n"
    b"True RMS Voltage:   117.9 Volts     :    118.8 Volts \r\n"
    b"True RMS Current:     5.4 Amps      :      0.1 Amps\r\n"
    b"Maximum Detected:     6.9 Amps      :      2.8 Amps\r\n"
    b" Circuit Breaker:       Good        :        Good  \r\n\r\n"
    b"Internal Temperature:  30.0 C\r\n\r\n\r\n"
)


def _left_at(prompt: bytes) -> Mapping[str, bytes]:
    return dict(Rpc3Nc.LEFT_AT) | {"prompt": b"\r\n" + prompt, "half-typed": prompt + b"off 1"}


class Rpc28(Rpc3Nc):
    """An RPC-28A with its 20 outlets."""

    LEFT_AT: ClassVar[Mapping[str, bytes]] = _left_at(b"RPC-28>")
    SPEC: ClassVar[Mapping[str, object]] = {"outlets": 20}
    BANNER: ClassVar[bytes] = BANNER
    STATUS_HEAD: ClassVar[bytes] = STATUS_HEAD
    OUTLETS_A_LINE: ClassVar[int] = 2
    PROMPTS: ClassVar[tuple[bytes, ...]] = (b"RPC-28A>", b"RPC-28>")

    def begin(self, left_at: str) -> bytes:
        """As somebody left it, or fresh; deaf to a command until an Enter came."""
        self._prompts = 0
        self._ready = False
        return super().begin(left_at)

    def answer(self, line: bytes) -> Iterator[Piece]:
        """Obey one line, if it listens."""
        at_prompt = self._state not in {"pager", "confirm", "insist"}
        ready, self._ready = self._ready, not line.strip()
        dropped = at_prompt and not ready and line.strip()
        yield from super().answer(b"" if dropped else line)

    def _prompt(self) -> bytes:
        self._prompts += 1
        return self.PROMPTS[(self._prompts - 1) % len(self.PROMPTS)]


class Rpc22(Rpc28):
    """An RPC-22: 12 outlets, one prompt."""

    LEFT_AT: ClassVar[Mapping[str, bytes]] = _left_at(b"RPC-22>")
    SPEC: ClassVar[Mapping[str, object]] = {"outlets": 12}
    BANNER: ClassVar[bytes] = BANNER.replace(b"RPC-28", b"RPC-22")
    PROMPTS: ClassVar[tuple[bytes, ...]] = (b"RPC-22>",)


class Rpc18(Rpc28):
    """An RPC-18D: 8 outlets, one prompt, and, as some firmware may have it, one outlet a line."""

    LEFT_AT: ClassVar[Mapping[str, bytes]] = _left_at(b"RPC-18>")
    SPEC: ClassVar[Mapping[str, object]] = {}
    BANNER: ClassVar[bytes] = BANNER.replace(b"RPC-28", b"RPC-18")
    OUTLETS_A_LINE: ClassVar[int] = 1
    PROMPTS: ClassVar[tuple[bytes, ...]] = (b"RPC-18>",)


UNITS: tuple[type[Unit], ...] = (Rpc28, Rpc22, Rpc18)
