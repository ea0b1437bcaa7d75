"""Has a candidate firmware become slower?  Slices from four stations show it, measured apart.

At each station the same is done: as many slices of one quantity as its share of the claim's
drive time has room for.  At the last one all of them are judged.
"""

import math
from collections import Counter
from collections.abc import Sequence
from dataclasses import replace
from typing import TYPE_CHECKING

from leadline.claims import NotJudgedHere
from leadline.evidence import UNCLEAN_SHARE, Evidence
from leadline.load.slices import VOID_MEANINGS, Slice, SliceSetting, offered_for
from leadline.load.workload import random_read
from leadline.plans import Noise
from leadline.quantities import Quantity
from leadline.remedies import NO_STATION, SESSIONS_TELL
from leadline.statements import AtStation, NotRegressed
from leadline.verdict.calibration import DEEP
from leadline.verdict.regression import STATIONS, Station, judge_regression, least_told
from leadline.verdict.verdict import Verdict

if TYPE_CHECKING:
    from leadline.judge import SliceJudge

FEWEST_SLICES = 8
"""Of a station: fewer tell hardly more than their own noise."""
BATCH_S = 16.0
"""A batch is one process of the load generator, so a killed run loses no more than this."""


def settle_regression(judge: "SliceJudge", said: NotRegressed) -> Verdict:
    """Record this station's slices; at the last station, judge them with those of the others.

    Raises NotJudgedHere at any other.
    """
    here = _record(judge, said)
    if not said.judged:
        raise NotJudgedHere(
            f"{len(here.rates)} slices of {said.quantity} with {said.revision_at(said.number)} "
            f"recorded at station {said.number} of {len(said.order)}"
        )
    return look_at_stations(judge, said, (*said.recorded, here))


def look_at_stations(
    judge: "SliceJudge", said: NotRegressed, recorded: Sequence[AtStation]
) -> Verdict:
    """The verdict by what the stations recorded; void, with the reason, unless all of them did."""
    found = {each.number: each for each in recorded}
    absent = [
        f"{NO_STATION}: station {number} of {len(said.order)}, with {said.revision_at(number)}, "
        f"recorded {_too_few(found.get(number))}"
        for number in range(1, len(said.order) + 1)
        if number not in found or len(found[number].rates) < FEWEST_SLICES
    ]
    unclean = [void for each in recorded for void in each.voids]
    stations = [
        Station("the drive", firmware, found[number].rates)
        for number, firmware in enumerate(said.order, 1)
        if not absent
    ]
    spent = sum(each.spent_s for each in recorded)
    noise, sigma_session = judge.noise, _between_sessions(judge.noise, said.quantity)
    verdict = judge_regression(
        stations,
        said.within,
        slice_seconds=min(each.seconds for each in recorded),
        spent_s=spent,
        budget_s=spent,  # nothing more can be measured here: the drive has another firmware now
        sigma_session=sigma_session,
        sigma_d=noise.sigma_d,
        voids=(*absent, *dict.fromkeys(unclean)),
    )
    assert verdict is not None, "its budget is spent"
    notes = [_stood_in(said, found)] if said.stored_baseline else []
    notes += _depths(said, found)
    if said.passed_over:
        notes.append(f"held against {said.released}: {said.passed_over}")
    verdict = replace(verdict, notes=(*verdict.notes, *notes))
    return _with_least_told(verdict, sigma_session, said) if verdict.reason == "budget" else verdict


def _with_least_told(verdict: Verdict, sigma_session: float, said: NotRegressed) -> Verdict:
    """What no drive time tells: all there is to say where it lies so near, else a note."""
    rounds = len(said.order) // STATIONS
    least, with_more = (least_told(sigma_session, each) for each in (rounds, 2 * rounds))
    told = (
        f"stations that differ by {sigma_session:.2%} between repeats cannot tell a rate within "
        f"{least:.1%} of the threshold from one at it, whatever the drive time; "
    )
    if not said.stored_baseline:
        told += f"--rounds {2 * rounds} tells one that is {with_more:.1%} from it; "
    told += SESSIONS_TELL
    if verdict.estimate and abs(math.log(verdict.estimate / verdict.threshold)) <= least:
        return replace(verdict, shortage=told)
    return replace(verdict, notes=(*verdict.notes, told))


def _between_sessions(noise: Noise, quantity: Quantity) -> float:
    """The spread of this rate: its own where a calibration measures just that, else the larger."""
    workload = replace(quantity.load.workload, span=None)
    calibrated = workload == random_read() and quantity.setting == SliceSetting(
        DEEP, offered_for(DEEP)
    )
    return (calibrated and noise.sigma_session_deep) or noise.sigma_session


def _too_few(station: AtStation | None) -> str:
    if station is None:
        return "nothing"
    return f"{len(station.rates)} slices that count, and {FEWEST_SLICES} are needed"


def _stood_in(said: NotRegressed, found: dict[int, AtStation]) -> str:
    """That the released firmware was not run again, and what stood in for it."""
    whose = [
        each.whose for number, each in found.items() if said.revision_at(number) == said.released
    ]
    return f"baseline: {said.released} was not run again; what stood in: {'; '.join(whose)}"


def _depths(said: NotRegressed, found: dict[int, AtStation]) -> list[str]:
    """How deep the queues were, where they were not alike: each firmware has what it can hold."""
    deep = {"released": "", "candidate": ""}
    for firmware in deep:
        numbers = [n for n, each in enumerate(said.order, 1) if each == firmware and n in found]
        depths = sorted({found[n].depth or 0 for n in numbers})
        deep[firmware] = " and ".join(map(str, depths)) if all(depths) else ""
    one, other = deep.values()
    if one == other or not (one and other):
        return []
    return [f"{one} deep against {other} deep: queues of {said.released} and of {said.candidate}"]


def _record(judge: "SliceJudge", said: NotRegressed) -> AtStation:
    """Slices until this station's share of the drive time is spent, and enough of them count."""
    share = judge.budget_s / len(said.order)
    evidence = Evidence(judge.slice_s)
    measured: list[Slice] = []
    while evidence.spent_s < share or (
        len(evidence.blocks) < FEWEST_SLICES and evidence.spent_s < 2.0 * share
    ):
        count = int(min(BATCH_S, max(share - evidence.spent_s, 0.0)) / evidence.length(0))
        setting = replace(said.quantity.setting, seconds=evidence.length(0))
        batch = judge.run(said.load.workload, [setting] * max(FEWEST_SLICES, count))
        for each in batch:
            judge.keep_slice(said.side, each)
        measured += batch
        evidence.take([(each,) for each in batch])
    return station_of(said.number, measured, "this run")


def station_of(number: int, slices: Sequence[Slice], whose: str) -> AtStation:
    """What a station recorded, from all its slices in their order.

    Slices are lengthened where they were too short: those of the last length count.
    """
    seconds = slices[-1].setting.seconds
    counted = [each for each in slices if each.setting.seconds == seconds]
    clean = [each for each in counted if each.clean]
    unclean = Counter(name for each in counted for name in each.voids)
    spoilt = len(counted) - len(clean) > UNCLEAN_SHARE * len(counted)
    return AtStation(
        number,
        tuple(each.rate for each in clean),
        seconds,
        sum(each.drive_s for each in slices),
        whose,
        tuple(
            f"{name}: {VOID_MEANINGS.get(name, name)} ({times} slices at station {number})"
            for name, times in unclean.most_common()
            if spoilt
        ),
        slices[-1].setting.device_depth,
    )
