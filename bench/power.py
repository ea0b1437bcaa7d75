"""Serial power control on virtual PDUs: against powerman, side by side, after an unplugging."""

import math
import tempfile
import threading
import time
from collections.abc import Callable, Iterable, Sequence
from contextlib import ExitStack
from functools import partial
from pathlib import Path
from statistics import median

import numpy as np

from bench.pdus import OUTLETS, Pdus
from leadline.inventory.pdu import PduSpec
from leadline.power.pdu import Pdu, open_pdu
from leadline.power.supplies import Supply, switch_all
from selftests.powermand import Powermand

ROUNDS = 60
RESAMPLED = 2000
RATIO_LIMIT = 1.0
ANSWER_S = 0.02  # a prompt of twenty characters at 9600 baud
PDUS, SWITCHED = 4, 4
SIDE_BY_SIDE_ROUNDS = 20
SIDE_BY_SIDE_LIMIT = 1.3
OUTAGES_S = (0.1, 0.5, 1.0, 2.0, 4.0, 8.0)
RECOVERY_LIMIT_S = 5.0

Deed = Callable[[], object]
Pair = tuple[float, float]
"""Seconds of two deeds, one right after the other."""


def measure(
    rounds: int = ROUNDS,
    side_by_side_rounds: int = SIDE_BY_SIDE_ROUNDS,
    outages_s: Sequence[float] = OUTAGES_S,
) -> dict[str, object]:
    """Times and their ratios.

    `slow_unit` has no limit: there every question counts, and powerman's on asks one.
    """
    with tempfile.TemporaryDirectory() as folder:
        at_once = against_powerman(Path(folder), rounds)
        slow = against_powerman(Path(folder), max(2, rounds // 6), answer_s=ANSWER_S)
        together = side_by_side(Path(folder), side_by_side_rounds)
        recovered = recoveries(Path(folder), outages_s)
    return {
        "against_powerman": at_once,
        "ratio_limit": RATIO_LIMIT,
        "slow_unit": {"answer_s": ANSWER_S, **slow},
        "side_by_side": together,
        "side_by_side_limit": SIDE_BY_SIDE_LIMIT,
        # JSON has no infinity: null is never.
        "recovery_s": {name: s if math.isfinite(s) else None for name, s in recovered.items()},
        "recovery_limit_s": RECOVERY_LIMIT_S,
        "within_limits": all(each["high"] <= RATIO_LIMIT for each in at_once.values())
        and together["high"] <= SIDE_BY_SIDE_LIMIT
        and max(recovered.values()) <= RECOVERY_LIMIT_S,
    }


def against_powerman(
    folder: Path, rounds: int, *, answer_s: float = 0.0
) -> dict[str, dict[str, float]]:
    """Our time over powerman's for each kind of work, in turns, on two units of one type.

    Both have had their session open for a while, powerman in powermand.  On and off are read
    back by us and not by powerman; `on, read back` adds its query to its on.
    """
    with (
        Pdus(folder, ["ours", "theirs"], answer_s=answer_s) as units,
        open_pdu(spec("ours", units)) as pdu,
        Powermand(units.port("theirs"), folder) as client,
    ):
        on, off = partial(pdu.switch, 3, True), partial(pdu.switch, 3, False)
        powerman = client.powerman
        work: dict[str, tuple[Deed, Deed]] = {
            "off": (off, lambda: powerman("-0", "outlet3")),
            "on": (on, lambda: powerman("-1", "outlet3")),
            "status": (pdu.status, lambda: powerman("-q", "outlet3")),
            "on, read back": (
                on,
                lambda: (powerman("-1", "outlet3"), powerman("-q", "outlet3")),
            ),
        }
        for deeds in work.values():  # the first time, each finds its way
            in_turns(*deeds, 1)
        return {
            name: {"ours_ms": _ms(a for a, _ in pairs), "powerman_ms": _ms(b for _, b in pairs)}
            | ratio_of(pairs)
            for name, pairs in ((name, in_turns(*deeds, rounds)) for name, deeds in work.items())
        }


def side_by_side(folder: Path, rounds: int) -> dict[str, float]:
    """All outlets of several PDUs together, over those of the slowest of these PDUs alone."""
    names = [f"pdu{n}" for n in range(PDUS)]
    with Pdus(folder, names, answer_s=ANSWER_S) as units, ExitStack() as stack:
        pdus = [stack.enter_context(open_pdu(spec(name, units))) for name in names]
        alone = [[Supply(pdu, n + 1) for n in range(SWITCHED)] for pdu in pdus]
        together = [supply for each in alone for supply in each]
        switch_all(together, on=True)
        pairs = []
        for n in range(rounds):
            on = bool(n % 2)
            slowest = max(_seconds(partial(switch_all, each, on=on)) for each in alone)
            pairs.append((_seconds(partial(switch_all, together, on=not on)), slowest))
    return {
        "outlets": len(together),
        "pdus": PDUS,
        "together_ms": _ms(a for a, _ in pairs),
        "slowest_alone_ms": _ms(b for _, b in pairs),
        **ratio_of(pairs),
    }


def recoveries(folder: Path, outages_s: Sequence[float]) -> dict[str, float]:
    """Seconds from the port's being back until an outlet is switched, by the outage before.

    The port goes while the session is open, and is missed by a switching that has begun.
    """
    with Pdus(folder, ["pdu"]) as units, open_pdu(spec("pdu", units)) as pdu:
        pdu.status()
        return {f"after {outage:g} s": _recovery(units, pdu, outage) for outage in outages_s}


def _recovery(units: Pdus, pdu: Pdu, outage_s: float) -> float:
    ended: list[float] = []

    def switch() -> None:
        pdu.switch(3, False)
        ended.append(time.monotonic())

    units.unplug("pdu")
    switching = threading.Thread(target=switch)
    switching.start()
    time.sleep(outage_s)
    units.plug_in("pdu")
    back = time.monotonic()
    switching.join()
    if not ended:
        return math.inf
    return round(ended[0] - back, 3)


def spec(name: str, units: Pdus) -> PduSpec:
    """The entry of a rig file for one of the units."""
    port = str(units.port(name))
    return PduSpec(name=name, family="baytech-rpc3", port=port, outlets=OUTLETS)


def in_turns(one: Deed, other: Deed, rounds: int) -> list[Pair]:
    """Do both so often, the one first and the other first by turns."""
    pairs = []
    for n in range(rounds):
        if n % 2:
            late, early = _seconds(other), _seconds(one)
            pairs.append((early, late))
        else:
            pairs.append((_seconds(one), _seconds(other)))
    return pairs


def ratio_of(pairs: Sequence[Pair]) -> dict[str, float]:
    """The median ratio of pairs, and the ends of its 95 % interval (percentile bootstrap)."""
    ratios = np.array([a / b for a, b in pairs])
    again = np.random.default_rng(1).choice(ratios, (RESAMPLED, len(ratios)))
    low, high = np.percentile(np.median(again, axis=1), [2.5, 97.5])
    found = {"ratio": float(np.median(ratios)), "low": float(low), "high": float(high)}
    return {name: round(value, 3) for name, value in found.items()}


def _seconds(deed: Deed) -> float:
    begun = time.perf_counter()
    deed()
    return time.perf_counter() - begun


def _ms(seconds: Iterable[float]) -> float:
    return round(median(seconds) * 1e3, 2)
