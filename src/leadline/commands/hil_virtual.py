"""The virtual rigs of `leadline hil`: started for the run, and what dead ones left on record."""

import sys
import time
from collections.abc import Callable
from contextlib import ExitStack

from leadline.away import forget
from leadline.errors import RigTrouble
from leadline.flash_record import settle, unfinished
from leadline.host.connection import open_host
from leadline.inventory.rig import HostSpec, Rig
from leadline.results.record import Record
from leadline.results.schema import Phase

Say = Callable[[str], None]


def ends_with_us(rig: Rig) -> bool:
    """Whether it is a virtual rig that is not up, so that the run starts it and stops it."""
    from leadline.virtual import rig as virtual

    return rig.virtual is not None and not virtual.status(rig.name)["running"]


def start_virtual(rig: Rig, stack: ExitStack, record: Record, say: Say) -> None:
    """Start a virtual rig until `stack` is closed, or wait for one that is coming up."""
    from leadline.virtual import rig as virtual

    if virtual.status(rig.name)["running"]:
        print(f"leadline: virtual rig {rig.name} is up already; using it", file=sys.stderr)
        virtual.await_boot(rig)  # another command may be just starting it
        return
    begun = time.monotonic()
    stack.callback(_settle_flashes, rig, lambda _: None)  # what this run leaves is gone as well
    stack.enter_context(virtual.running(rig))
    _settle_flashes(rig, say)
    record.add(Phase(cell=None, name="boot", seconds=time.monotonic() - begun))


def _settle_flashes(rig: Rig, say: Say) -> None:
    """Close what runs that have ended left of this rig's drives, which are no more."""
    with open_host(HostSpec(reach="local")) as here:
        try:
            for left in unfinished(here, rig):
                say(f"{left}; it has new drives now")
                settle(here, left.record.serial, [left])
        except RigTrouble as trouble:  # one that cannot be read: other rigs are to be tested
            say(str(trouble))
        forget(here, rig)
