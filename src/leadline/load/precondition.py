"""Bring a drive into the state in which writes may be judged: full, and steady.

    SNIA, Solid State Storage Performance Test Specification, version 2.0.2 (2020):
    workload independent preconditioning (twice the capacity, sequential, 128 KiB), then the
    test's own workload in rounds of one minute until the measurement window is steady, at
    most 25 of them.  (A span under 6 GB, as of a virtual drive, has shorter ones: `round_seconds`.)

A fresh SSD writes into erased blocks; only when it has to make room for each write does it
show the rate that its user will see.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from leadline.drive.finding import NOT_PRECONDITIONED, Finding
from leadline.errors import DriveFault, Misuse, RigTrouble
from leadline.host.programs import require
from leadline.host.trouble import DeadlinePassed, last_lines
from leadline.load.fio import DRIVE_ERRORS
from leadline.load.jobs import target_options
from leadline.load.output import split_output
from leadline.load.overdue import (
    HELD_SHARE,
    MOST_OF_IT,
    every_s,
    inflight_of,
    overdue,
    sampling,
)
from leadline.load.target import FILL_TIMES, fill_seconds, in_words
from leadline.load.workload import Workload
from leadline.verdict.steady_state import WINDOW, SteadyState, steady_state

if TYPE_CHECKING:
    from leadline.host.connection import Host

LEAST_ROUND_S, ROUND_S = 10.0, 60.0
MOST_ROUNDS = 25
FILL_BLOCK = 128 << 10
FILL_DEPTH = 32
SLOWEST_BYTES_PER_S = 5e6
"""A drive that is filled more slowly than this has hung, or might as well have."""
STARTUP_S = 60.0


@dataclass(frozen=True)
class Preconditioned:
    """What was done to a drive for one workload.

    `fill_s` is what filling the span took, `rounds` the workload's rate in each round, in
    requests a second, `round_s` how long one took, `state` the last window of them.  One that
    was not `filled` had been for this workload before.
    """

    workload: Workload
    fill_s: float
    rounds: tuple[float, ...]
    round_s: float
    state: SteadyState
    filled: bool = True

    @property
    def drive_s(self) -> float:
        """Seconds of drive time that it cost."""
        return self.fill_s + len(self.rounds) * self.round_s

    @property
    def finding(self) -> Finding:
        """Whether writes may be judged."""
        rates = ", ".join(f"{rate:.4g}" for rate in self.rounds[-WINDOW:])
        filled = f"filled {FILL_TIMES} times in {in_words(self.fill_s)}, then"
        done = (
            f"{filled if self.filled else 'filled before, and now'} {len(self.rounds)} "
            f"rounds of {self.round_s:g} s, the last at {rates} requests/s"
        )
        if self.state.steady:
            return Finding(NOT_PRECONDITIONED, "ok", f"{done}: steady")
        why = "; ".join(self.state.why_not)
        return Finding(NOT_PRECONDITIONED, "void", f"{done}: not steady: {why}")


def round_seconds(span_bytes: int) -> float:
    """A round is a minute, and no longer than it takes to fill the span twice at 200 MB/s.

    What a round has to see is how the drive makes room for what is written, and how much it has
    to make, a small one sees in less; ten seconds at least.
    """
    return min(ROUND_S, max(LEAST_ROUND_S, float(round(fill_seconds(span_bytes)))))


def price(span_bytes: int, *, fill: bool = True) -> str:
    """What preconditioning will cost, in words, to be said before it begins."""
    round_s = round_seconds(span_bytes)
    filling = fill_seconds(span_bytes) if fill else 0.0
    least, most = filling + WINDOW * round_s, filling + MOST_ROUNDS * round_s
    span = f"{in_words(least)} to {in_words(most).removeprefix('about ')}"
    rounds = f"{WINDOW} to {MOST_ROUNDS} rounds of {round_s:g} s until the rate is steady"
    if not fill:
        return f"{span}: {rounds}"
    return (
        f"{span} at 200 MB/s: {span_bytes / 1e9:.4g} GB are written {FILL_TIMES} times, "
        f"then {rounds}"
    )


def precondition(
    host: "Host",
    node: str,
    workload: Workload,
    span: tuple[int, int],
    *,
    depth: int,
    fill: bool = True,
    round_s: float | None = None,
    most_rounds: int = MOST_ROUNDS,
    inflight: str | None = None,
) -> Preconditioned:
    """Fill `span` (offset, size in bytes) of `node` twice, then write until it is steady.

    Without `fill` it is left as full as it is.  Everything in the span is lost: whoever calls
    holds the write guard's leave.  The rounds run `workload` itself, `depth` requests offered.
    `round_s` is how long a round is (None: `round_seconds` of the span), `inflight` where the
    kernel counts the requests at the drive, for a `node` that is built of drives or is a file.
    That it does not become steady is a result and no exception.  Raises Misuse for a workload that
    does not write, DriveFault when its requests fail or the drive keeps fio past its deadline,
    RigTrouble when fio is missing or fails.
    """
    if not workload.writes:
        raise Misuse(f"workload {workload.name!r} only reads: it has no steady state of writes")
    require(host, "fio")
    on = _On(host, node, inflight_of(node) if inflight is None else inflight)
    round_s = round_seconds(span[1]) if round_s is None else round_s
    fill_s = _fill(on, span) if fill else 0.0
    rounds: list[float] = []
    state = steady_state(rounds)
    while not state.steady and len(rounds) < most_rounds:
        options = ["--time_based=1", f"--runtime={round(round_s * 1000)}ms", f"--iodepth={depth}"]
        options += ["--norandommap=1", "--randrepeat=0"]
        deadline, enough_s = STARTUP_S + 4 * round_s, HELD_SHARE * round_s
        job = _fio(on, workload, options, deadline=deadline, enough_s=enough_s)
        rounds.append(_rate(job, on.where))
        state = steady_state(rounds)
    return Preconditioned(workload, fill_s, tuple(rounds), round_s, state, fill)


@dataclass(frozen=True)
class _On:
    """What is written to, and where the requests at the drive below it are counted."""

    host: "Host"
    node: str
    inflight: str

    @property
    def where(self) -> str:
        return f"{self.host.name}: {self.node}"


def _fill(on: _On, span: tuple[int, int]) -> float:
    offset, size = span
    fill = Workload("fill", rw="write", block_bytes=FILL_BLOCK)
    # fio writes whole blocks, and starts at one.
    room = size - size % FILL_BLOCK
    if not room:
        return 0.0
    options = [f"--offset={offset}", f"--size={room}", f"--loops={FILL_TIMES}"]
    options.append(f"--iodepth={FILL_DEPTH}")
    deadline = STARTUP_S + fill_seconds(size, SLOWEST_BYTES_PER_S)
    enough_s = MOST_OF_IT * deadline
    return _ran_s(_fio(on, fill, options, deadline=deadline, enough_s=enough_s))


def _fio(
    on: _On, workload: Workload, options: Sequence[str], *, deadline: float, enough_s: float
) -> dict[str, Any]:
    """The one entry of "jobs" of a run of fio that went well.

    `enough_s` are seconds that the drive may have had requests for before it is what was late.
    """
    common = [f"--{option}" for option in target_options(on.node, workload)]
    argv = ["fio", f"--name={workload.name}", *common, *options]
    argv += ["--output-format=json", "--eta=never"]
    every = every_s(deadline)
    sample = sampling(on.host, on.inflight, every)
    try:
        done = on.host.run(argv, deadline=deadline, check=False, sample=sample)
    except DeadlinePassed as late:
        what = f"{on.where}: preconditioning ({workload.name}) did not end within {deadline:.0f} s"
        raise overdue(late, what, every=every, enough_s=enough_s) from None
    document, notes = split_output(done.stdout.decode("utf-8", "replace"))
    jobs = document["jobs"] if document else []
    if done.exit_code != 0 or len(jobs) != 1 or jobs[0].get("error"):
        said = last_lines(notes + done.stderr.decode("utf-8", "replace")) or " nothing"
        what = f"{on.where}: preconditioning failed (fio's exit code {done.exit_code})"
        if any(job.get("error") in DRIVE_ERRORS for job in jobs):
            raise DriveFault(f"{what}: requests failed; the kernel's log says why. It said:{said}")
        raise RigTrouble(f"{what}; is the drive there, and not mounted? It said:{said}")
    job: dict[str, Any] = jobs[0]
    return job


def _ran_s(job: dict[str, Any]) -> float:
    return int(job.get("job_runtime", 0)) / 1e3


def _rate(job: dict[str, Any], where: str) -> float:
    requests = sum(int(job[name]["total_ios"]) for name in ("read", "write") if name in job)
    seconds = _ran_s(job)
    if not (requests and seconds):
        raise RigTrouble(f"{where}: a round of preconditioning wrote nothing; does it answer?")
    return requests / seconds
