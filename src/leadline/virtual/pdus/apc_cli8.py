"""An APC AP8xxx with AOS 6: a command line alone, as get_power_status5 of fence_apc knows it."""

from collections.abc import Iterator, Mapping
from typing import ClassVar

from leadline.virtual.pdus.apc import BANNER, BYE, CTRL_C, ESC, CommandLine, Console, crlf
from leadline.virtual.pdus.line import Piece, Unit

CLI = CommandLine(
    prompt=b"apc>",
    done="E000: Success",
    on="olOn",
    off="olOff",
    reboot="olReboot",
    status="olStatus all",
    leave="exit",
)


class Ap8900(Console):
    """The unit."""

    LEFT_AT: ClassVar[Mapping[str, bytes]] = {
        **Console.LEFT_AT,
        "prompt": b"\r\n" + CLI.prompt,
        "half-typed": CLI.prompt + b"olOff all",
    }

    def begin(self, left_at: str) -> bytes:
        """As somebody left it, or closed."""
        super().begin("prompt" if left_at == "half-typed" else left_at)
        return b"olOff all" if left_at == "half-typed" else b""

    def _welcome(self) -> bytes:
        self._place = "prompt"
        return crlf(BANNER.format("6.4.0")) + CLI.prompt

    def _obey(self, line: bytes) -> Iterator[Piece]:
        said = CLI.obey(line.strip(ESC + CTRL_C), self.outlets)
        if said is None:
            self._place = "closed"
        yield 0.0, BYE if said is None else said


UNITS: tuple[type[Unit], ...] = (Ap8900,)
