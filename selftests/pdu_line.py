"""Leadline's driver of a PDU and a virtual unit, in process on a virtual clock."""

import math
import os
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from itertools import takewhile
from unittest.mock import patch

from leadline.errors import RigTrouble
from leadline.inventory.pdu import FamilyName, PduSpec
from leadline.power.pdu import Pdu
from leadline.power.port import where
from leadline.power.session import TICK_S, ControlLine, Session
from leadline.virtual.pdus import login, units
from leadline.virtual.pdus.control_line import Relays
from leadline.virtual.pdus.faults import Faults
from leadline.virtual.pdus.line import Dialogue, Unit
from leadline.virtual.pdus.outlets import Outlets

OUTLETS = 8


class VirtualLine:
    """A port with a virtual unit at its other end, and the clock that both live by."""

    def __init__(
        self, faults: Faults, unit: type[Unit] | None = None, outlets: int = OUTLETS
    ) -> None:
        self.time = 0.0
        self.byte_s = 0.0  # 0.001 at 9600 baud: then an answer is read in small pieces
        self.interrupt_at = b""  # Ctrl-C when this has been sent
        self.coming: list[tuple[float, bytes]] = [(0.0, faults.leftover)] if faults.leftover else []
        self.gone_at = math.inf  # from then on the adapter is unplugged, until it is opened again
        self.back_at = math.inf
        self.when_back: Callable[[], None] = lambda: None
        self.instead: Callable[[bytes], bytes | None] = lambda _: None  # another unit's answers
        self.written = b""
        self.moves: list[tuple[int, bool]] = []
        made = Outlets(outlets, lambda outlet, on: self.moves.append((outlet, on)), faults=faults)
        self.dialogue = Dialogue((unit or units("baytech-rpc3")[0])(made))

    def now(self) -> float:
        return self.time

    def sleep(self, seconds: float) -> None:
        self.time += seconds

    def unplug(
        self, for_s: float, *, after_s: float = 0.0, when_back: Callable[[], None] = lambda: None
    ) -> None:
        """The adapter goes so long from now, and is there again so much later."""
        self.gone_at = self.time + after_s
        self.back_at = self.gone_at + for_s
        self.when_back = when_back

    def open(self) -> "VirtualLine":
        if self.gone_at <= self.time:
            if self.time < self.back_at:
                raise RigTrouble("no such port")
            self.gone_at = math.inf
            self.when_back()
        return self

    @property
    def in_waiting(self) -> int:
        self._check()
        here = takewhile(lambda piece: piece[0] <= self.time, self.coming)  # they come in order
        return sum(len(text) for _, text in here)

    def read(self, size: int = 1, /) -> bytes:
        self._check()
        due = self.coming[0][0] if self.coming else self.time + TICK_S
        self.time = max(self.time, min(due, self.time + TICK_S))
        read = b""
        while self.coming and self.coming[0][0] <= self.time and len(read) < size:
            at, text = self.coming.pop(0)
            take = size - len(read)
            read += text[:take]
            if text[take:]:
                self.coming.insert(0, (at, text[take:]))
        return read

    def write(self, data: bytes, /) -> int:
        self._check()
        self.written += data
        if (other := self.instead(data)) is not None:
            self.coming.append((self.time, other))
            return len(data)
        at = max([self.time, *(at for at, _ in self.coming)])
        for pause, text in self.dialogue.hear(data):
            at += pause
            for piece in [text] if not self.byte_s else [bytes([byte]) for byte in text]:
                at += self.byte_s
                self.coming.append((at, piece))
        if self.interrupt_at and self.interrupt_at in data:
            self.interrupt_at = b""
            raise KeyboardInterrupt
        return len(data)

    def set_line(self, line: ControlLine, *, asserted: bool) -> None:
        self._check()
        if isinstance(self.dialogue.unit, Relays) and not self.dialogue.faults.silent:
            self.dialogue.unit.signal(line, asserted=asserted)

    def close(self) -> None:
        self.coming.clear()

    def _check(self) -> None:
        if self.gone_at <= self.time:
            raise OSError(5, "Input/output error")


@contextmanager
def bench(
    faults: Faults | None = None,
    family: FamilyName = "baytech-rpc3",
    unit: type[Unit] | None = None,
    **entry: object,
) -> Iterator[tuple[Pdu, VirtualLine]]:
    """A PDU of a family before its usual unit, or before `unit`; `entry` is more of its spec."""
    unit = unit or units(family)[0]
    given = {"name": "a", "family": family, "port": "/dev/x", **unit.SPEC, **entry}
    spec = PduSpec.model_validate(given)
    line = VirtualLine(faults or Faults(), unit, spec.outlets)
    session = Session(line.open, where(spec), clock=line)
    session.open()
    with (
        patch.dict(os.environ, {login.PASSWORD_ENV: login.PASSWORD}),
        Pdu(spec, session) as pdu,
    ):
        yield pdu, line
