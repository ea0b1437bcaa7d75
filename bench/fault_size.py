"""The story of the large requests: 1 MiB was asked for, and 512 KiB reached the drive.

Raising max_sectors_kb changed nothing; the controller took 128 segments, and a segment was a page
of 4 KiB.  From hugepages the whole 1 MiB arrived.  Here a virtio-scsi controller takes 126 segments
(128 entries of its queue, less those of command and answer), and memory is in pieces.
"""

import re
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

from bench.fault_rig import Seeded
from bench.memory_in_pieces import HUGE, in_pieces
from bench.told import SLOT, Asked, Told, tell
from leadline.host.connection import open_host
from leadline.inventory.rig import Rig

CONCLUDED = "1 MiB asked arrives as 512 KiB, for max_segments binds; whole from hugepages"
MIB_KIB = 1024
HALF_KIB = (448, 576)
"""What about 512 KiB is: 126 segments are 504, and some pages are neighbours even so."""
CLAIM = "request_size"
LIMIT = re.compile(r"arrive as (\d+) KiB at least, for (max_segments is \d+[^;\n]*)")
DRIVE = Seeded(SLOT, bus="virtio-scsi", kind="SCSI SSD", queue_depth=128)


@contextmanager
def memory_in_pieces(rig: Rig) -> Iterator[None]:
    """No pages of the rig are neighbours, and none are made huge unasked."""
    with open_host(rig.host) as host:
        host.write_value(HUGE, "never")
        with in_pieces(host):
            yield


def _asked(tests: str) -> tuple[str, ...]:
    return ("--no-excuses", "-m", "acceptance", "-k", f"test_request_size and {tests}")


CUT = Asked(_asked("arrive_as_large and 1024k"), {CLAIM: ("pass", "")}, memory_in_pieces)
WHOLE = Asked(_asked("from_hugepages and 1024k"), {CLAIM: ("pass", "")})


def measure() -> dict[str, object]:
    """The story told by such a drive: from memory in pieces, then from hugepages."""
    cut, whole = tell(DRIVE, [CUT, WHOLE])
    return figures_of(cut, whole)


def figures_of(cut: Told, whole: Told) -> dict[str, Any]:
    """Sizes in KiB: what was asked, predicted and reached, what binds; and what is not so."""
    wrong = [*cut.wrong(), *(f"from hugepages: {said}" for said in whole.wrong())]
    predicted, binding = limit_of(str(cut.verdict(CLAIM).get("explanation", "")))
    reached = cut.verdict(CLAIM).get("estimate") or 0.0
    huge, count = (whole.verdict(CLAIM).get(name) or 0 for name in ("estimate", "count"))
    if not binding:
        wrong.append("max_segments is not named as the limit that binds")
    for size, word in ((predicted, "predicted"), (reached, "reached")):
        if not HALF_KIB[0] <= size <= HALF_KIB[1]:
            wrong.append(f"{size:g} KiB {word}, expected {HALF_KIB[0]} to {HALF_KIB[1]}")
    if huge != MIB_KIB:
        wrong.append(f"{huge:g} KiB from hugepages, expected {MIB_KIB}")
    return {
        "concluded": CONCLUDED,
        "found": f"{MIB_KIB} KiB asked, {predicted} predicted, {reached:g} reached, for "
        f"{binding or 'no limit that is named'}; {count} requests of {huge:g} KiB from hugepages",
        "asked_kib": MIB_KIB,
        "predicted_kib": predicted,
        "reached_kib": reached,
        "binding": binding,
        "from_hugepages_kib": huge,
        "requests_from_hugepages": count,
        "tries": cut.tries + whole.tries,
        "wrong": wrong,
        "within_limits": not wrong,
    }


def limit_of(explained: str) -> tuple[int, str]:
    """The size that is predicted, KiB, and the limit of segments that binds; 0 and "" without."""
    found = LIMIT.search(explained)
    return (int(found[1]), found[2]) if found else (0, "")
