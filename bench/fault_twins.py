"""Two drives alike, NCQ silently off on one of them: what finds it, and what would not have.

A published benchmark compared two "identical" machines under writes, which agreed, though NCQ
was off on one.  Here writes of 64 KiB fill the drives' link, whatever is queued: the drives agree,
and Leadline calls that no evidence.  Random reads differ, as does the time to refill a cache.
"""

import re
import tempfile
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from bench.fault_rig import PACKAGE, Ran, Seeded, hil, running

CHANNELS = 4
"""So many reads at once, against one and what the way to the drive takes: the 5:1 of the story."""
MIB = 1 << 20
TWIN = {
    "channels": CHANNELS,
    "read_ms": 20,
    "write_ms": 0.1,
    "link_mb_per_s": 6,
    "capacity_bytes": 64 * MIB,
    "cache_bytes": MIB,
}
LIMITS = {"refill_16_gb_s": {"at_most": 18_000, "source": "its channels, and as much again"}}
ON, OFF = "on", "off"
"""The slots, by how NCQ is there."""
WRITES = "writes_as_fast_as_its_twins"
READS = "as_fast_as_its_twins"
REFILL = "refill_16_gb_s"
OF_WRITES = f"""\
import pytest

@pytest.mark.acceptance
@pytest.mark.drive_time(60)
@pytest.mark.no_limit
@pytest.mark.claim("{WRITES}")
def test_writes_of_64_kib_are_as_fast_as_its_twins(random_write, twins):
    assert random_write.at(offered=32, size=65536).agrees_with(twins, within=0.5)
"""


def measure() -> dict[str, object]:
    """The verdicts on both, and how long a refill takes each."""
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        own = folder / "test_writes.py"
        own.write_text(OF_WRITES)
        suite = [PACKAGE / "suite" / f"test_{each}.py" for each in ("agreement", "cache_refill")]
        words = ["--allow-writes", "-m", "acceptance", "-k", "twins or cache"]
        drives = [Seeded(slot, TWIN, limits=LIMITS) for slot in (OFF, ON)]
        with running(folder, drives, "libata.force=1:noncq") as (rig, matrix):
            # The first has nothing to be held against; the second is held against the first.
            ran = hil(rig, matrix, folder / "results", [*words, *map(str, [own, *suite])])
    return figures_of(ran)


def figures_of(ran: Ran) -> dict[str, Any]:
    """What came of both drives, and what was expected and did not come."""
    on, off = ran.outcomes(ON), ran.outcomes(OFF)
    refill = {slot: _refill_s(ran.summary["verdicts"], slot) for slot in (ON, OFF)}
    ratio = refill[OFF] / refill[ON]
    wrong = [*_unlike(on, WRITES, "inconclusive", r"no-difference: NCQ on over off is [\d.]+ \[")]
    wrong += _unlike(on, READS, "fail", "agrees with another")
    wrong += _unlike(on, REFILL, "pass", "")
    wrong += _unlike(off, REFILL, "fail", r"(?m)^  time: \d+ \[")
    if not CHANNELS <= ratio <= CHANNELS + 2.5:
        wrong.append(f"a refill takes {ratio:.2f} times as long without NCQ")
    return {
        "on": _said(on),
        "off": _said(off),
        "refill_s": refill,
        "refill_off_over_on": round(ratio, 2),
        "wrong": wrong,
        "within_limits": not wrong,
    }


def _refill_s(verdicts: Sequence[dict[str, Any]], slot: str) -> float:
    (found,) = [
        each["estimate"]
        for each in verdicts
        if each["cell"].split("-")[-3] == slot and "time_for(" in each["explanation"]
    ]
    return round(float(found), 1)


def _unlike(found: dict[str, tuple[str, str]], claim: str, outcome: str, words: str) -> list[str]:
    """What is wrong with the outcome of a claim; nothing, if it is as it must be."""
    came, said = found.get(claim, ("not run", ""))
    if came == outcome and re.search(words, said):
        return []
    return [f"{claim}: {came}, expected {outcome}: {said[:300]}"]


def _said(found: dict[str, tuple[str, str]]) -> dict[str, list[str]]:
    return {claim: [outcome, *said.splitlines()] for claim, (outcome, said) in found.items()}
