"""Mend what dead runs left behind: outlets first, then settings, then layers above drives.

The next run calls this before it uses a rig, and `leadline hil` after its own child
has ended, however it did.
"""

from collections.abc import Iterator, Sequence

from leadline.away import by_record
from leadline.booting import await_boot, left_without_power
from leadline.errors import RigTrouble
from leadline.host.connection import Host, open_host
from leadline.host.journal import replay
from leadline.host.lease import holder_text
from leadline.inventory.rig import HostSpec, Rig
from leadline.power.byte_log import ByteLogs
from leadline.power.outlets import restore_outlets
from leadline.stack.leftover import take_down_left

AGENT_ENDS_S = 15.0
"""For the rig's end of a killed run to notice, and to let its journal go."""


def mend_outlets(here: Host, rigs: Sequence[Rig], logs: ByteLogs | None = None) -> list[str]:
    """Switch on the outlets that dead runs of this machine left off.

    A host that has power again boots: `booting` has whose that is, and waits for it.
    Raises RigTrouble for those of `rigs` that cannot be; of other rigs', it is only said.
    """
    ports = {pdu.port for rig in rigs for pdu in rig.pdus}
    return restore_outlets(here, ports=ports, logs=logs)


def mend_power(rigs: Sequence[Rig], logs: ByteLogs | None = None) -> Iterator[str]:
    """Do so before these rigs are asked for anything: a host without power answers nobody.

    One sentence for each outlet, and for each host that is then waited for, at once, so take
    them all; an outlet that cannot be switched on, or a host that does not come up, is the
    business of its rig's tests.
    """
    if not any(rig.pdus for rig in rigs):
        return
    try:
        with open_host(HostSpec(reach="local")) as here:
            cut = left_without_power(here, rigs)
            yield from mend_outlets(here, rigs, logs)
    except RigTrouble as trouble:
        yield f"an outlet could not be switched on again: {trouble}"
        return
    for rig in cut:
        try:
            yield from await_boot(rig)
        except RigTrouble as trouble:
            yield str(trouble)


def mend_host(host: Host, rig: Rig, run_id: str) -> list[str]:
    """Give back the settings that dead runs changed on a rig, take down what they built there.

    `run_id` is the run that does so.
    """
    return replay(host) + take_down_left(host, rig, holder_text(run_id))


def mend(rigs: Sequence[Rig], run_id: str, logs: ByteLogs | None = None) -> Iterator[str]:
    """Mend what run `run_id` left, which has just ended, and what dead runs did.

    `rigs` without virtual ones that end right after this: they take their settings along.  One
    sentence for each thing done, and for each that could not be, at once: take them all.  Drives
    that were left on other firmware than they came with are said, and left there.
    """
    cut: list[Rig] = []
    try:
        with open_host(HostSpec(reach="local")) as here:
            try:
                yield from replay(here, run_id=run_id, patience=AGENT_ENDS_S)
            except RigTrouble as trouble:  # of a rig that is this machine; outlets are to go on
                yield f"settings could not be given back: {trouble}"
            cut = left_without_power(here, rigs)
            yield from mend_outlets(here, rigs, logs)
    except RigTrouble as trouble:
        yield f"an outlet could not be switched on again: {trouble}"
    for rig in rigs:
        try:
            if rig in cut:
                yield from await_boot(rig)
            with open_host(rig.host) as host:
                yield from replay(host, run_id=run_id, patience=AGENT_ENDS_S)
                yield from mend_host(host, rig, run_id)
        except RigTrouble as trouble:
            yield f"rig {rig.name}: settings could not be given back: {trouble}"
    try:
        with open_host(HostSpec(reach="local")) as here:
            yield from by_record(here, rigs)
    except RigTrouble as trouble:
        yield f"whether a drive was left on other firmware cannot be told: {trouble}"
