"""A virtual PDU on a pty: what Leadline, a foreign client or a person can talk to."""

import os
import select
import termios
import threading
import time
import tty
from collections.abc import Callable, Iterable, Mapping
from concurrent.futures import Future, ThreadPoolExecutor, wait
from pathlib import Path

from leadline.errors import RigTrouble
from leadline.inventory.pdu import FamilyName
from leadline.virtual.pdus import units
from leadline.virtual.pdus.faults import Faults
from leadline.virtual.pdus.line import Dialogue, Terminal, Unit
from leadline.virtual.pdus.outlets import Outlets

OSPEED = 5  # its place in what tcgetattr gives
DTR_LOOK_S = 0.1


class VirtualPdu:
    """A unit on a raw pty, found at the symbolic link `link`: the family's usual one, or `unit`.

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
        family: FamilyName = "baytech-rpc3",
        unit: type[Unit] | None = None,
        on: Iterable[int] | None = None,
        faults: Faults | None = None,
        reboot_s: int = 10,
    ) -> None:
        made = Outlets(outlets, self._enqueue, on=on, faults=faults, reboot_s=reboot_s)
        self.link = link
        self.dialogue = Dialogue((unit or units(family)[0])(made))
        self._on_switch = on_switch
        self._switching = ThreadPoolExecutor(1, thread_name_prefix="pdu-switch")
        self._pending: list[Future[None]] = []
        self._port: _Pty | None = None

    @property
    def faults(self) -> Faults:
        return self.dialogue.faults

    @property
    def contacts(self) -> Mapping[int, bool]:
        """What each outlet really does, whatever the unit says."""
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
        framing = dialogue.unit.FRAMING
        self._ready = framing.ready if isinstance(framing, Terminal) else b""
        self._hung_up = False
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
        look_s = DTR_LOOK_S if self._ready else None
        while True:
            ready, _, _ = select.select([self._master, self._unplugged], [], [], look_s)
            if ready:
                return self._unplugged in ready
            self._look_at_dtr()

    def _look_at_dtr(self) -> None:
        """A pty has no DTR: but who drops it sets the speed to 0, which can be seen."""
        hung_up = termios.tcgetattr(self._slave)[OSPEED] == termios.B0
        if self._hung_up and not hung_up:
            self._say(self._ready)
        self._hung_up = hung_up

    def _gone_during(self, seconds: float) -> bool:
        ready, _, _ = select.select([self._unplugged], [], [], seconds)
        return bool(ready)

    def _say(self, text: bytes) -> None:
        """Write it all, unless nobody reads: a full line loses what does not fit.

        Nor is anything said when the adapter is unplugged, or each key of a long input would
        have its second.
        """
        deadline = time.monotonic() + 1.0
        while text and (left := deadline - time.monotonic()) > 0:
            gone, ready, _ = select.select([self._unplugged], [self._master], [], left)
            if gone:
                return
            if ready:
                text = text[_write_some(self._master, text) :]


def _write_some(descriptor: int, text: bytes) -> int:
    try:
        return os.write(descriptor, text)
    except BlockingIOError:
        return 0
