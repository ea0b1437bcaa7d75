"""Mend what dead runs left behind: outlets first, then settings.

The next run calls this before it uses a rig, and `leadline hil` after its own child
has ended, however it did.
"""

from collections.abc import Sequence

from leadline.errors import RigTrouble
from leadline.host.connection import Host, open_host
from leadline.host.journal import replay
from leadline.inventory.rig import HostSpec, Rig
from leadline.power.outlets import restore_outlets


def mend_outlets(here: Host) -> list[str]:
    """Switch on the outlets that dead runs of this machine left off."""
    return restore_outlets(here)


def mend_host(host: Host) -> list[str]:
    """Give back the settings that dead runs changed on a rig."""
    return replay(host)


def mend(rigs: Sequence[Rig]) -> list[str]:
    """Mend all that can be; one sentence for each thing done, and for each that could not be."""
    said: list[str] = []
    try:
        with open_host(HostSpec(reach="local")) as here:
            said += mend_outlets(here)
    except RigTrouble as trouble:
        said.append(f"an outlet could not be switched on again: {trouble}")
    for rig in rigs:
        try:
            with open_host(rig.host) as host:
                said += mend_host(host)
        except RigTrouble as trouble:
            said.append(f"rig {rig.name}: settings could not be given back: {trouble}")
    return said
