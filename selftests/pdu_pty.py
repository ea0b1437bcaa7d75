"""Leadline's driver of a PDU and a virtual unit, on a real pty and by the machine's clock."""

import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

from leadline.power.pdu import Pdu, open_pdu
from leadline.virtual.pdus.line import Dialogue
from leadline.virtual.pdus.pty import VirtualPdu
from selftests.pdu_sequences import Outage
from selftests.pdu_specimens import Specimen


@dataclass
class OverPty:
    """A `pdu_sequences.World`."""

    unit: VirtualPdu
    pdu: Pdu
    deadline_s: float
    late_s: float

    @property
    def dialogue(self) -> Dialogue:
        return self.unit.dialogue

    def now(self) -> float:
        return time.monotonic()

    @contextmanager
    def unplugged(self, outage: Outage) -> Iterator[None]:
        """By another thread, for whoever is in the block is busy with the PDU."""
        over = threading.Event()
        thread = threading.Thread(target=self._go_and_come, args=(outage, over), name="outage")
        thread.start()
        try:
            yield
        finally:
            over.set()
            thread.join()

    def _go_and_come(self, outage: Outage, over: threading.Event) -> None:
        over.wait(outage.after_s)
        self.unit.unplug()
        over.wait(outage.for_s)
        self.dialogue.faults.left_at = outage.left_at
        self.dialogue.faults.leftover = outage.leftover
        self.unit.plug_in()

    def begin_anew(self) -> None:
        self.pdu.close()
        self.pdu = open_pdu(self.pdu.spec)


@contextmanager
def over_pty(
    folder: Path, specimen: Specimen, *, deadline_s: float, late_s: float
) -> Iterator[OverPty]:
    """A healthy unit, and its PDU just opened.  Its password is for the environment to have."""
    link = folder / str(specimen)
    spec = specimen.spec(str(link))
    with VirtualPdu(
        spec.outlets, lambda *_: None, link, family=specimen.family, unit=specimen.unit
    ) as unit:
        world = OverPty(unit, open_pdu(spec), deadline_s, late_s)
        try:
            yield world
        finally:
            world.pdu.close()
