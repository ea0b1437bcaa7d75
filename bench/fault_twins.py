"""Two drives alike, NCQ silently off on one of them: what finds it, and what would not have.

A published benchmark compared two "identical" machines under writes, which agreed, though NCQ
was off on one.  Here writes of 384 KiB fill the drives' link, whatever is queued: Leadline calls
them no evidence.  Random reads differ, as does the time to refill a cache, and the ladder names
what took the queue away.  It is the drive with its NCQ off that fails, and not the healthy one:
neither when that comes first, nor in a second run, when the other's rates are on record.
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
# Small writes take the drive long beside the way to it, which is longer on a busy machine: NCQ off,
# nothing else would be steady.  Large ones take the link long beside both.
TWIN = {
    "channels": CHANNELS,
    "read_ms": 12,
    "write_ms": 4,
    "link_mb_per_s": 6,
    "capacity_bytes": 64 * MIB,
    "cache_bytes": MIB,
}
LIMITS = {"refill_16_gb_s": {"at_most": 11_000, "source": "its channels, and as much again"}}
ON, OFF = "on", "off"
"""The slots, by how NCQ is there, and in the order in which they are visited."""
FORCE = "libata.force=2:noncq"
LADDER = "ncq_ladder_holds"
WRITES = "writes_as_fast_as_its_twins"
READS = "as_fast_as_its_twins"
REFILL = "refill_16_gb_s"
NO_EVIDENCE = r"no-difference: NCQ on over off is [\d.]+ \["
NO_OTHER = "nothing is on record of another"
"""Said where the other's writes were no evidence, and so are not there to be agreed with."""
DEADLINE_S = 7200.0
"""Of one run: the steady state before the writes is long in coming on a busy machine."""
OF_WRITES = f"""\
import pytest

@pytest.mark.acceptance
@pytest.mark.no_limit
@pytest.mark.claim("{WRITES}")
def test_writes_of_384_kib_are_as_fast_as_its_twins(random_write, twins):
    assert random_write.at(offered=8, size=393216).agrees_with(twins, within=0.5)
"""


def measure() -> dict[str, object]:
    """The verdicts on both, how long a refill takes each, and who agrees in a second run."""
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        own = folder / "test_writes.py"
        own.write_text(OF_WRITES)
        tests = ("agreement", "cache_refill", "ncq_support")
        agreement, *others = (str(PACKAGE / "suite" / f"test_{each}.py") for each in tests)
        words = ["--allow-writes", "-m", "acceptance", "-k"]
        drives = [Seeded(slot, TWIN, limits=LIMITS) for slot in (ON, OFF)]
        with running(folder, drives, FORCE) as (rig, matrix):
            results = folder / "results"
            chosen = [*words, "twins or cache or ladder", str(own), agreement, *others]
            first = hil(rig, matrix, results, chosen, DEADLINE_S)
            again = hil(rig, matrix, results, [*words, "twins", agreement], DEADLINE_S)
    return figures_of(first, again)


def figures_of(first: Ran, again: Ran) -> dict[str, Any]:
    """What came of both drives, and what was expected and did not come."""
    on, off = first.outcomes(ON), first.outcomes(OFF)
    refill = {slot: _refill_s(first.summary["verdicts"], slot) for slot in (ON, OFF)}
    ratio = _over(refill[OFF], refill[ON])
    wrong = _unlike(on, LADDER, "pass", "")
    wrong += _unlike(off, WRITES, "inconclusive", NO_EVIDENCE)
    if _unlike(on, WRITES, "skipped", NO_OTHER):
        wrong += _unlike(on, WRITES, "inconclusive", NO_EVIDENCE)
    wrong += _unlike(on, REFILL, "pass", "")
    wrong += _unlike(off, LADDER, "fail", rf"^the kernel takes queueing away: .*{FORCE}")
    wrong += _unlike(off, REFILL, "fail", r"(?m)^  time: \d+ \[")
    for run, ran in (("first run", first), ("second run", again)):
        wrong += [f"{run}: {each}" for each in _who_is_odd(ran)]
    if ratio is None:
        wrong.append("the refills came to no figures")
    elif not CHANNELS <= ratio <= CHANNELS + 2.5:
        wrong.append(f"a refill takes {ratio:g} times as long without NCQ")
    return {
        "on": _said(on),
        "off": _said(off),
        "again": {slot: _said(again.outcomes(slot)) for slot in (ON, OFF)},
        "refill_s": refill,
        "refill_off_over_on": ratio,
        "wrong": wrong,
        "within_limits": not wrong,
    }


def _who_is_odd(ran: Ran) -> list[str]:
    """What is wrong with what the random reads say of both: the drive without NCQ is the odd one.

    That the healthy one agrees cannot be told where there is no other healthy one.
    """
    came, said = ran.outcomes(ON).get(READS, ("not run", ""))
    wrong = _unlike(ran.outcomes(OFF), READS, "fail", "agrees with another")
    if came not in {"pass", "skipped", "inconclusive"}:
        wrong.append(f"{READS} of the healthy drive: {came}: {said[:300]}")
    return wrong


def _refill_s(verdicts: Sequence[dict[str, Any]], slot: str) -> float | None:
    """None where the claim came to no figure: its evidence was void."""
    (found,) = [
        each["estimate"]
        for each in verdicts
        if each["cell"].split("-")[-3] == slot and "time_for(" in each["explanation"]
    ]
    return None if found is None else round(float(found), 1)


def _over(off: float | None, on: float | None) -> float | None:
    """Rounded to hundredths; None where one of them is."""
    return None if off is None or on is None else round(off / on, 2)


def _unlike(found: dict[str, tuple[str, str]], claim: str, outcome: str, words: str) -> list[str]:
    """What is wrong with the outcome of a claim; nothing, if it is as it must be."""
    came, said = found.get(claim, ("not run", ""))
    if came == outcome and re.search(words, said):
        return []
    return [f"{claim}: {came}, expected {outcome}: {said[:300]}"]


def _said(found: dict[str, tuple[str, str]]) -> dict[str, list[str]]:
    return {claim: [outcome, *said.splitlines()] for claim, (outcome, said) in found.items()}
