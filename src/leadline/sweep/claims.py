"""Which claims a recorded sweep settles, and which it cannot.

A sweep has one long run a depth and no pairs, so its verdicts come from `verdict.runs`.
"""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace

from leadline.diagnosis import NOT_QUEUEING, ONE_AT_A_TIME
from leadline.inventory.suite_limits import DEPTH_RATIO
from leadline.load.recorded_job import RECORDED_VOIDS, RecordedRun
from leadline.sweep.evidence import as_run, of_load
from leadline.sweep.words import explain
from leadline.sweep.yardstick import Yardstick
from leadline.verdict.runs import judge_runs
from leadline.verdict.verdict import Direction, Verdict

QUEUEING = "queueing"
QUEUEING_SOURCE = (
    "one request at a time gains at most a factor of 2, the host's part overlapping the "
    "drive's; docs/reference/judge.md"
)
DEEP_ENOUGH = 8
"""Least depth from which a flat curve says that nothing is queued."""
CLAIM_BYTES = 4096
CLAIM_READ_PERCENT = 70
USUAL = "depth_8_over_depth_1"
_PREFIXES = {
    "": "randread",
    "random_write_": "randwrite",
    "sequential_read_": "read",
    "sequential_write_": "write",
    "random_mix_": "randrw",
    "sequential_mix_": "rw",
}


@dataclass(frozen=True)
class Finding:
    """One claim with its verdict, the files it rests on, and the same in words."""

    claim: str
    rw: str
    verdict: Verdict
    source: str
    explanation: str
    files: tuple[str, ...]


@dataclass(frozen=True)
class Unsupported:
    """A claim that this recording does not settle, and why.

    `lacks_evidence` when there is a limit for it, so that evidence is all that is missing.
    """

    claim: str
    rw: str | None
    why: str
    lacks_evidence: bool


def judge(runs: Sequence[RecordedRun], yardstick: Yardstick) -> list[Finding | Unsupported]:
    """Every claim on `runs`, of which no two have the same load and offered depth."""
    return [
        *_queueing(runs, yardstick),
        *_limits(runs, yardstick),
        *_without_limit(runs, yardstick),
    ]


def _queueing(runs: Sequence[RecordedRun], yardstick: Yardstick) -> Iterator[Finding | Unsupported]:
    """Does the rate of random reads rise with depth as it cannot with one at a time?"""
    reads = of_load(runs, "randread")
    if yardstick.class_ != "ssd":
        if reads:
            yield Unsupported(
                QUEUEING, "randread", _NOT_TOLD[yardstick.class_], lacks_evidence=False
            )
        return
    deep = [run for depth, run in reads.items() if depth > 1]
    missing = [] if 1 in reads else ["1"]
    missing += [] if max(reads, default=0) >= DEEP_ENOUGH else [f"{DEEP_ENOUGH} or more"]
    why = _missing("randread", missing, reads) or _unfit(reads)
    if why:
        yield Unsupported(QUEUEING, "randread", why, lacks_evidence=True)
        return
    # What is void is no candidate for the best, unless all of it is.
    candidates = [run for run in deep if not run.voids] or deep
    best = max(candidates, key=lambda run: run.figures.rate)
    ceiling = max(as_run(run).most for run in candidates)
    yield _finding(
        QUEUEING,
        best,
        reads[1],
        threshold=ONE_AT_A_TIME,
        direction=">=",
        source=QUEUEING_SOURCE,
        ceiling=ceiling,
    )


_NOT_TOLD = {
    "hdd": (
        "a disk has one arm: its rate rises little with depth, and rises as well when the "
        "host's scheduler sorts; climb the NCQ ladder on the drive itself (leadline hil)"
    ),
    "unknown": "the rate must rise with depth on a parallel drive alone, and the class is unknown",
}


def _limits(runs: Sequence[RecordedRun], yardstick: Yardstick) -> Iterator[Finding | Unsupported]:
    """The claims for which the class or the model has a limit."""
    for claim, limit in yardstick.limits.items():
        match = DEPTH_RATIO.fullmatch(claim)
        if match is None or match["load"] not in _PREFIXES:
            why = "a recorded depth sweep says nothing of it"
            yield Unsupported(claim, None, why, lacks_evidence=False)
            continue
        rw, top, bottom = _PREFIXES[match["load"]], int(match["top"]), int(match["bottom"])
        found = of_load(runs, rw)
        why = _missing(rw, [str(d) for d in sorted({top, bottom} - found.keys())], found)
        why = why or _unfit(found) or _unsteady(rw, yardstick)
        if why:
            # Random reads belong to every sweep; what else was not recorded was not meant.
            expected = bool(found) or rw == "randread"
            yield Unsupported(claim, rw, why, lacks_evidence=expected)
            continue
        source = f"{yardstick.limits_from}: {limit.source}"
        bounds: tuple[tuple[float | None, Direction], ...] = (
            (limit.at_least, ">="),
            (limit.at_most, "<="),
        )
        for bound, direction in bounds:
            if bound is not None:
                yield _finding(
                    claim,
                    found[top],
                    found[bottom],
                    threshold=bound,
                    direction=direction,
                    source=source,
                )


def _without_limit(runs: Sequence[RecordedRun], yardstick: Yardstick) -> Iterator[Unsupported]:
    """The usual claim of every load that was recorded and has no limit."""
    prefixes = {rw: prefix for prefix, rw in _PREFIXES.items()}
    for rw in sorted({run.asked.rw for run in runs}):
        claim = prefixes.get(rw, f"{rw}_") + USUAL
        if claim in yardstick.limits:
            continue
        why = f"no limit for this class: {yardstick.limits_from} has none for {claim}"
        found = of_load(runs, rw)
        if {1, 8} <= found.keys():
            why += f"; recorded: {found[8].figures.rate / found[1].figures.rate:.3g}"
        yield Unsupported(claim, rw, why, lacks_evidence=False)


def _missing(rw: str, depths: Sequence[str], found: Mapping[int, RecordedRun]) -> str:
    """What is not recorded, in words; "" when all is."""
    if not depths:
        return ""
    there = ", ".join(str(depth) for depth in found)
    return f"no file with {rw} at depth {' and '.join(depths)} (usable: {there or 'none'})"


def _unfit(found: Mapping[int, RecordedRun]) -> str:
    """Why runs are not what a limit is about; "" when they are."""
    for run in found.values():
        if run.asked.block_bytes != CLAIM_BYTES:
            size = "mixed sizes" if run.asked.block_bytes is None else f"{run.asked.block_bytes}"
            return f"the limit is for requests of {CLAIM_BYTES} bytes, and these are of {size}"
        if run.asked.read_percent not in (None, CLAIM_READ_PERCENT):
            return (
                f"the limit is for {CLAIM_READ_PERCENT} % reads, and these are "
                f"{run.asked.read_percent} %"
            )
    return ""


def _unsteady(rw: str, yardstick: Yardstick) -> str:
    """Why writes of this drive count for nothing; "" when they do.

    The rate of a flash drive depends on what was written before: SNIA's Performance Test
    Specification has it preconditioned and in steady state.  A disk's does not.
    """
    if rw in ("read", "randread") or yardstick.class_ == "hdd" or yardstick.preconditioned:
        return ""
    return (
        "nothing in the files shows that the drive was preconditioned and in steady state "
        "(SNIA PTS); say --preconditioned if it was"
    )


def _finding(
    claim: str,
    top: RecordedRun,
    bottom: RecordedRun,
    *,
    threshold: float,
    direction: Direction,
    source: str,
    ceiling: float = 0.0,
) -> Finding:
    """One claim settled; `ceiling` is what other runs show that the top's rate may have been."""
    sides = (top, bottom)
    voids = [f"{name}: {run.file}: {RECORDED_VOIDS[name]}" for run in sides for name in run.voids]
    above = replace(as_run(top), most=max(as_run(top).most, ceiling))
    verdict = judge_runs(above, as_run(bottom), threshold, direction, voids=voids)
    hardly = f"{NOT_QUEUEING}: random reads hardly get faster with depth; "
    lead = hardly if claim == QUEUEING else ""
    return Finding(
        claim=claim,
        rw=top.asked.rw,
        verdict=verdict,
        source=source,
        explanation=explain(verdict, top, bottom, source=source, failing=lead),
        files=(top.file, bottom.file),
    )
