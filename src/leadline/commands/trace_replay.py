"""`leadline trace replay`: replay traces on a drive with NCQ off and on; what queueing gains.

It is a run of pytest as `leadline hil` makes one, of a single packaged test: the same leases,
write guard, pinned settings, kernel log, and the same putting back whatever happens.
"""

import argparse
import json
import shlex
import tempfile
from pathlib import Path
from typing import TYPE_CHECKING

from leadline.commands.options import add_results
from leadline.errors import Misuse

if TYPE_CHECKING:
    from leadline.inventory.matrix import Matrix
    from leadline.inventory.plan import Visit
    from leadline.inventory.rig import Rig
    from leadline.trace.asked import Answer

_MODULE, _TEST = "replay_run", "test_replay"
_EXAMPLES = """\
examples:
  leadline trace replay traces/*.iolog.gz --rig rigs/my-bench.yaml --drive one
  leadline trace replay traces/dual-copy.iolog.gz --drive ssd1 --allow-writes --rounds 6
  leadline trace replay traces/*.iolog.gz --drive ssd1 --requests 5000 --timing kept --json

Without --rig, the virtual rig.  Each round replays a trace twice, with NCQ off (device queue
depth 1) and on (as deep as the drive and its adapter go); the order alternates.  The service
time of a request is from its submission to its completion, by fio.  Gain is (off - on) / off of
the mean service times: above 0, queueing makes the drive faster.  Intervals hold with 95 %
confidence.

Requests go to the drive in that slot, whatever drive the trace is of.  Writes need `writes:
allowed` in the rig file and --allow-writes, and destroy what is on the drive; without them the
reads alone are replayed.  A trace of a larger drive is moved together.  The table says so.

Exit codes: 0 replayed, 1 the drive failed meanwhile, 2 wrong usage or trace, 3 rig trouble,
4 too little evidence, as of `leadline hil`.
"""


def register(subparsers: "argparse._SubParsersAction[argparse.ArgumentParser]") -> None:
    """Add `replay` to `leadline trace`."""
    parser = subparsers.add_parser(
        "replay",
        help="what queueing gains on a drive, by traces",
        description="Replay traces on a drive with NCQ off and on, by turns.",
        epilog=_EXAMPLES,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    parser.add_argument("files", metavar="FILE", type=Path, nargs="+", help="NAME.iolog.gz")
    parser.add_argument("--rig", type=Path, metavar="FILE", help="a rig file (the virtual rig)")
    parser.add_argument("--drive", required=True, metavar="SLOT", help="the drive's slot")
    parser.add_argument(
        "--timing",
        choices=("fast", "kept"),
        default="fast",
        help="as fast as the drive answers (default), or when the requests came",
    )
    parser.add_argument(
        "--rounds", type=int, default=4, metavar="N", help="replays with NCQ off and on (4)"
    )
    parser.add_argument(
        "--requests", type=int, metavar="N", help="only the first N requests of each trace"
    )
    parser.add_argument(
        "--in-flight", type=int, metavar="N", help="requests in flight (as the header says)"
    )
    parser.add_argument("--allow-writes", action="store_true", help="the second key for writes")
    parser.add_argument("--matrix", type=Path, metavar="FILE", help="the firmware matrix")
    add_results(parser, "every replay")
    parser.add_argument("--json", action="store_true", help="print one JSON object")
    parser.set_defaults(func=run)


def run(arguments: argparse.Namespace) -> int:
    """Replay and say what queueing gains; the exit code of the contract."""
    from leadline.commands import hil
    from leadline.commands.trace_replay_said import document, lines
    from leadline.trace.files import load_trace

    _refuse(arguments)
    for path in arguments.files:  # what is wrong with a trace is told before a rig is touched
        load_trace(path)
    rig = arguments.rig or hil.VIRTUAL_RIG
    with tempfile.TemporaryDirectory(prefix="leadline-replay-") as scratch:
        answer = Path(scratch, "answer.json")
        words = pytest_words(arguments, Path(scratch, "asked.json"), answer)
        code, record = hil.conduct(
            argparse.Namespace(
                rig=[rig],
                matrix=arguments.matrix,
                results=arguments.results,
                json=True,  # the table is the output, what pytest says goes to stderr
                rest=words,
            ),
            _command(arguments),
        )
        found = _read(answer)
    if arguments.json:
        print(json.dumps({"run": record.run_id, "exit_code": code, **document(found)}, indent=2))
    elif found is not None:
        print("\n".join(lines(found)))
    record.close()
    return code


def _command(arguments: argparse.Namespace) -> str:
    """What the record has for it: it can be run again so."""
    options = {
        "--rig": arguments.rig,
        "--drive": arguments.drive,
        "--timing": arguments.timing,
        "--rounds": arguments.rounds,
        "--requests": arguments.requests,
        "--in-flight": arguments.in_flight,
        "--matrix": arguments.matrix,
    }
    words = ["leadline", "trace", "replay", *map(str, arguments.files)]
    for name, value in options.items():
        words += [] if value is None else [name, str(value)]
    return shlex.join([*words, *(["--allow-writes"] if arguments.allow_writes else [])])


def _refuse(arguments: argparse.Namespace) -> None:
    from leadline.trace.gain import FEWEST_ROUNDS
    from leadline.trace.header import MOST_IN_FLIGHT

    limits = {
        "--rounds": (arguments.rounds, FEWEST_ROUNDS, 1000),
        "--requests": (arguments.requests, 1, None),
        "--in-flight": (arguments.in_flight, 1, MOST_IN_FLIGHT),
    }
    for name, (value, least, most) in limits.items():
        if value is not None and (value < least or (most is not None and value > most)):
            upto = f" to {most}" if most else " or more"
            raise Misuse(f"{name}: found {value}, expected {least}{upto}")


def pytest_words(arguments: argparse.Namespace, asked: Path, answer: Path) -> list[str]:
    """What pytest is told: the packaged test on that drive, and the file that says what to do.

    Raises Misuse for a slot that the rig has not, or that the matrix has no model for.
    """
    import leadline.trace
    from leadline.commands import hil
    from leadline.inventory.matrix import load_matrix
    from leadline.inventory.rig import load_rig
    from leadline.running import REPLAY_OPTION
    from leadline.trace.asked import Asked

    rig = load_rig(arguments.rig or hil.VIRTUAL_RIG)
    visit = _visit(rig, load_matrix(arguments.matrix), arguments.drive)
    wanted = Asked(
        traces=tuple(path.absolute() for path in arguments.files),
        rounds=arguments.rounds,
        timing=arguments.timing,
        requests=arguments.requests,
        in_flight=arguments.in_flight,
        answer=answer,
    )
    asked.write_text(wanted.model_dump_json())
    module = (Path(leadline.trace.__file__).parent / f"{_MODULE}.py").resolve()
    words = ["-q", "--no-header", f"{REPLAY_OPTION}={asked}"]
    if arguments.allow_writes:
        words.append("--allow-writes")
    return [*words, f"{module}::{_TEST}[{visit.id}]"]


def _visit(rig: "Rig", matrix: "Matrix", slot: str) -> "Visit":
    """The drive in a slot, with the firmware that the rig file says is on it: none is flashed."""
    from leadline.inventory.plan import survey

    spec = rig.drive(slot)
    visits, gaps = survey([rig], matrix)
    for visit in visits:
        if visit.installed and visit.cell.slot == spec.slot:
            return visit
    reasons = {gap.reason for gap in gaps if gap.cell.slot == spec.slot}
    raise Misuse(
        f"{rig.path}: {spec.slot}: nothing is replayed on it: {'; '.join(sorted(reasons))}"
    )


def _read(path: Path) -> "Answer | None":
    """What was replayed; None when the run did not come to its end, and has said why."""
    from leadline.trace.asked import Answer

    return Answer.model_validate_json(path.read_bytes()) if path.exists() else None
