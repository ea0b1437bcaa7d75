"""Hosts that a dead run left without power: switched on again, they answer once booted."""

import time
from collections.abc import Iterator, Sequence

from leadline.errors import RigTrouble
from leadline.host.connection import (
    ATTEMPT_S,
    HOPELESS,
    RETRY_S,
    DeadlinePassed,
    Host,
    HostLost,
    open_host,
)
from leadline.host.journal import dead_entries
from leadline.inventory.rig import Rig
from leadline.power.outlets import ENTRY


def left_without_power(here: Host, rigs: Sequence[Rig]) -> list[Rig]:
    """Those of `rigs` whose host a dead run of this machine was cycling; ask before it is mended.

    One whose outlet is on by now counts, too: nobody knows since when.
    """
    cut = {
        (record["pdu"]["port"], record["outlet"])
        for dead in dead_entries(here, ENTRY)
        for record in dead.data["outlets"]
    }
    return [
        rig
        for rig in rigs
        if any((rig.pdu_of(each).port, each.outlet) in cut for each in rig.host_outlets())
    ]


def await_boot(rig: Rig) -> Iterator[str]:
    """Wait until the rig's host answers; one sentence before that, unless it does at once.

    Raises RigTrouble where it does not within the rig file's `boot_deadline_s`.
    """
    allowed_s = rig.host.boot_deadline_s
    limit = time.monotonic() + allowed_s
    said = False
    while True:
        try:
            open_host(rig.host, deadline=min(allowed_s, ATTEMPT_S)).close()
        except (HostLost, DeadlinePassed) as trouble:
            if isinstance(trouble, HostLost) and trouble.reason in HOPELESS:
                raise
            if time.monotonic() + RETRY_S > limit:
                raise RigTrouble(
                    f"rig {rig.name}: its host, which a dead run left without power, does not "
                    f"answer {allowed_s:g} s after that was put back: {trouble}. Where it was shut "
                    "down before its outlet went off, cycle it: leadline power "
                    f"--rig {rig.path} {' '.join(o.name for o in rig.host_outlets())} cycle --yes"
                ) from trouble
        else:
            return
        if not said:
            said = True
            yield f"rig {rig.name}: waiting for its host to boot, {allowed_s:g} s at most"
        time.sleep(RETRY_S)
