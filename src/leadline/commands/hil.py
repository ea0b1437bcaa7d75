"""`leadline hil`: start the virtual rig if it is wanted, run the suite, put everything back.

pytest runs as a child in a session of its own, so that Ctrl-C reaches this process
first and the child exactly once, and so that whatever becomes of the child, what it
had borrowed is given back from the journal before this process ends.
"""

import argparse
import json
import os
import shlex
import signal
import subprocess
import sys
import time
from collections.abc import Iterator, Sequence
from contextlib import ExitStack, contextmanager, suppress
from importlib.metadata import version
from pathlib import Path
from typing import Any, TextIO

import leadline
from leadline.commands.hil_virtual import ends_with_us, start_virtual
from leadline.commands.options import add_results
from leadline.errors import Misuse, RigTrouble
from leadline.inventory.matrix import load_matrix
from leadline.inventory.plan import plan
from leadline.inventory.rig import load_rig
from leadline.inventory.stations import Route, route_of
from leadline.mend import mend, mend_power
from leadline.outcomes import (
    DEFECT_CODE,
    INTERRUPTED_CODE,
    NOT_KEPT_CODE,
    USAGE_CODE,
    Ended,
    ended_by,
    exit_code,
)
from leadline.power.byte_log import ByteLogs, folder_of_run
from leadline.preflight import refuse_absent
from leadline.report.losses import losses
from leadline.report.summary import SummaryRow
from leadline.results.record import Record
from leadline.run_id import new_run_id
from leadline.running import GATE_OPEN, GATE_OPTION, STORED
from leadline.selection import USUAL

SUITE = Path(leadline.__file__).parent / "suite"
VIRTUAL_RIG = Path(leadline.__file__).parent / "rigs" / "virtual.yaml"
_PYTEST_INTERRUPTED, _PYTEST_USAGE, _PYTEST_NO_TESTS = 2, 4, 5
# pytest's options whose value could be mistaken for a path: `-k tests` selects by name.
_WITH_VALUE = {"-c", "-k", "-m", "-n", "-o", "-p", "-r", "-W", "--deselect", "--ignore"}
_WITH_VALUE |= {"--junitxml", "--rootdir", "--basetemp", "--confcutdir"}
_COLLECTS = frozenset({"--collect-only", "--collectonly", "--co"})
_EXAMPLES = """\
All else goes to pytest (leadline hil -k depth -x -n 2), and to the suite:
  --allow-writes         the second key for tests that write: the first is `writes: allowed`
  --allow-flash          the second key for other firmware: the first is `flash: allowed`
  --keep-firmware        leave drives on the firmware that was tested last
  --drive-time SECONDS   what one claim may cost before it is inconclusive; a curve: 16 times that
  --baseline stored      hold candidates against what an earlier run stored of the released one
  --rounds N             go from the released firmware to a candidate and back so often (1)
  --no-excuses           known issues of the firmware matrix excuse nothing
  --explain              print the explanation of claims that pass, too
docs/reference/suite.md has more of them, and the fields of --json.

examples:
  leadline hil                                    the virtual rig: no hardware needed
  leadline hil -m acceptance                      all but the hours of -m soak (default: -m quick)
  leadline hil -m acceptance --collect-only       what that would run, cost and destroy
  leadline hil --no-excuses                       known issues fail, too
  leadline hil --rig rigs/my-bench.yaml           your own drives
  leadline hil --rig rigs/my-bench.yaml --allow-flash
                                                  and their other firmware; they end as they came
  leadline hil --rig a.yaml --rig b.yaml -n 2     two rigs side by side
  leadline hil -k power_cycle --junitxml=out.xml  some of the tests, with a JUnit file
"""


def register(subparsers: "argparse._SubParsersAction[argparse.ArgumentParser]") -> None:
    """Add `hil` to the command line."""
    parser = subparsers.add_parser(
        "hil",
        help="run the suite on a rig: the virtual one unless --rig names another",
        description="Run the suite on a rig: the virtual one unless --rig names another.",
        epilog=_EXAMPLES,
        formatter_class=argparse.RawDescriptionHelpFormatter,
        allow_abbrev=False,
    )
    parser.add_argument("--rig", action="append", type=Path, metavar="FILE", help="a rig file")
    parser.add_argument("--matrix", type=Path, metavar="FILE", help="the firmware matrix")
    add_results(parser)
    parser.add_argument(
        "--json", action="store_true", help="one object on stdout; all else goes to stderr"
    )
    parser.set_defaults(func=run, passes_rest=True)


def run(arguments: argparse.Namespace) -> int:
    """Run the suite; the exit code of the contract.  Raises Misuse and RigTrouble."""
    if any(word.partition("=")[0] == "--run-id" for word in arguments.rest):
        raise Misuse("--run-id: leadline hil gives each run its id; leave it out")
    started = time.monotonic()
    command = shlex.join(["leadline", "hil", *_files(arguments), *arguments.rest])
    # Before the run: the files may be other ones hours later.
    route = _route(arguments) if arguments.json else Route(())
    final, record = conduct(arguments, command)
    if arguments.json:
        lost = [loss.as_json() for loss in losses(_rows(record), route)]
        print(json.dumps(_summary(record, final, time.monotonic() - started, lost)))
    record.close()
    return final


def _files(arguments: argparse.Namespace) -> Iterator[str]:
    """The options of ours that say what is run by: nothing else on record has the matrix."""
    for path in arguments.rig or []:
        yield from ("--rig", str(path))
    if arguments.matrix is not None:
        yield from ("--matrix", str(arguments.matrix))


def conduct(arguments: argparse.Namespace, command: str) -> tuple[int, Record]:
    """Run pytest on the rigs and mend after it; the exit code and the record, still open.

    `arguments` are those of `leadline hil`; `command` is what the record has for them.
    """
    paths = arguments.rig or [VIRTUAL_RIG]
    rigs = [load_rig(path) for path in paths]
    matrix = load_matrix(arguments.matrix)
    plan(rigs, matrix)
    run_id = new_run_id()
    record = Record(arguments.results.absolute(), run_id)
    record.start(command, version("leadline"))
    signals = Signals()
    try:
        with signals, ExitStack() as stack:
            logs = stack.enter_context(ByteLogs(folder_of_run(record.directory, run_id), _tell))
            runs = _COLLECTS.isdisjoint(arguments.rest)
            benches = [rig for rig in rigs if rig.virtual is None and runs]
            for sentence in mend_power(benches, logs):
                _tell(sentence)
            refuse_absent(benches, len(rigs))
            words = _pytest_arguments(arguments, paths, matrix.path, run_id)
            lasting = [rig for rig in rigs if not ends_with_us(rig)]
            if not lasting:
                words.append("--keep-firmware")  # of drives that are gone when we are
            child = Child(words, stdout=sys.stderr if arguments.json else None)
            stack.callback(child.end)
            with child.needed():
                for rig in rigs:
                    if rig.virtual is not None and runs:
                        start_virtual(rig, stack, record, _tell)
            code = child.run(signals)
            if code != 0 and child.began:
                for sentence in mend(lasting, run_id, logs):
                    _tell(sentence)
    except BaseException as error:
        with suppress(RigTrouble):  # it would hide why
            record.end(INTERRUPTED_CODE if signals.count else exit_code([ended_by(error)]))
        raise
    final = _translate(code, record, interrupted=signals.count > 0, usual=USUAL in words)
    try:
        record.end(final)
    except RigTrouble:
        if code != NOT_KEPT_CODE:  # else pytest has said so
            raise
    return final, record


def _pytest_arguments(
    arguments: argparse.Namespace, rigs: Sequence[Path], matrix: Path, run_id: str
) -> list[str]:
    # Our table says what pytest's short summary would; a later -r in the rest brings it back.
    words = [sys.executable, "-m", "pytest", "-p", "leadline.plugin", "--import-mode=importlib"]
    words.append("-rN")
    # In one word each: pytest takes a word of its own for a path of tests, and looks for its
    # configuration there.
    words += [f"--rig={path}" for path in rigs]
    words += [f"--matrix={matrix}", f"--results={arguments.results}", f"--run-id={run_id}"]
    words += arguments.rest
    if names_tests(arguments.rest):
        return words
    if not any(word.startswith("-m") for word in arguments.rest):
        words += ["-m", USUAL]
    # Leadline's development environment has it: most of a second at each start, for nothing.
    if not any(word.startswith("--hypothesis") for word in arguments.rest):
        words += ["-p", "no:hypothesispytest"]
    return [*words, str(SUITE.resolve())]


def names_tests(words: Sequence[str]) -> bool:
    """Whether there is a path among pytest's arguments, to take the place of the suite."""
    before = ["", *words]
    return any(
        _is_of_tests(word)
        for option, word in zip(before, words, strict=False)
        if not word.startswith("-") and option not in _WITH_VALUE
    )


def _is_of_tests(word: str) -> bool:
    """A report that an option unknown to us has written before is no file of tests."""
    path = Path(word.partition("::")[0])
    return path.exists() and (path.is_dir() or path.suffix == ".py")


def _tell(sentence: str) -> None:
    # SIGHUP comes from a terminal that is gone: that must not end the putting back.
    with suppress(OSError):
        print(f"leadline: {sentence}", file=sys.stderr)


class Signals:
    """SIGINT, SIGTERM and SIGHUP while the child runs: the first stops it, the others wait."""

    _NUMBERS = (signal.SIGINT, signal.SIGTERM, signal.SIGHUP)

    def __init__(self) -> None:
        self.count = 0
        self.child: subprocess.Popen[bytes] | None = None
        self._before: dict[int, Any] = {}

    def __enter__(self) -> "Signals":
        for number in self._NUMBERS:
            self._before[number] = signal.signal(number, self._received)
        return self

    def __exit__(self, *_: object) -> None:
        for number, handler in self._before.items():
            signal.signal(number, handler)

    def _received(self, *_: object) -> None:
        self.count += 1
        if self.count > 1:
            _tell("giving back what was borrowed; please wait")
        elif self.child is not None:
            _tell("stopping; outlets and settings are put back first")
            self.child.send_signal(signal.SIGINT)
        else:
            raise KeyboardInterrupt


class _Ended(Exception):
    """pytest has ended before it was told to begin."""


class Child:
    """pytest, which makes itself ready while virtual rigs boot, and waits for the word to begin."""

    def __init__(self, words: Sequence[str], stdout: TextIO | None) -> None:
        self.began = False
        waits, self._word = os.pipe()
        try:
            self._process = subprocess.Popen(
                [*words, f"{GATE_OPTION}={waits}"],
                stdout=stdout,
                pass_fds=[waits],
                start_new_session=True,
            )
        finally:
            os.close(waits)

    @contextmanager
    def needed(self) -> Iterator[None]:
        """Leave the block when pytest ends: nobody waits for a boot to hear of a typo."""

        def look(*_: object) -> None:
            if self._process.poll() is not None:
                raise _Ended

        before = signal.signal(signal.SIGCHLD, look)
        try:
            look()
            yield
        except _Ended:
            pass
        finally:
            signal.signal(signal.SIGCHLD, before)

    def run(self, signals: Signals) -> int:
        """Say the word; its exit code when it has ended."""
        signals.child = self._process
        with suppress(BrokenPipeError):  # it has ended: its arguments were wrong
            os.write(self._word, GATE_OPEN)
            self.began = True
        while True:
            try:
                return int(self._process.wait())
            except InterruptedError:
                continue

    def end(self) -> None:
        """Nothing when it has run; one that still waits for the word has borrowed nothing."""
        os.close(self._word)
        if self._process.poll() is None:
            self._process.kill()
            self._process.wait()


_WITHOUT_M = "without -m, only the quick ones are looked at; -m acceptance has more"
_FOR_NO_DRIVE = (
    "none of those asked for is for a drive of the rig as it may be used; one that writes takes "
    "both keys: `writes: allowed` on the drive in the rig file, and --allow-writes"
)


def _translate(code: int, record: Record, *, interrupted: bool, usual: bool) -> int:
    """The exit code of the contract from pytest's own and from what the record says.

    `usual`: tests were chosen neither by path nor by purpose.
    """
    if interrupted:
        return INTERRUPTED_CODE
    not_kept = [Ended.ERROR] if code == NOT_KEPT_CODE else []
    found = exit_code([*(Ended(row.outcome) for row in record.outcomes()), *not_kept])
    if code == _PYTEST_INTERRUPTED:  # so it says of -x with several workers, too
        return found or INTERRUPTED_CODE
    if code == _PYTEST_USAGE:
        return USAGE_CODE
    if code == _PYTEST_NO_TESTS:
        _tell(f"no test was selected ({_WITHOUT_M if usual else _FOR_NO_DRIVE})")
        return USAGE_CODE
    if code not in (0, 1, NOT_KEPT_CODE):
        return DEFECT_CODE
    return found or code


def _route(arguments: argparse.Namespace) -> Route:
    """How the drives go through their visits, by the plan."""
    rigs = [load_rig(path) for path in arguments.rig or [VIRTUAL_RIG]]
    visits = plan(rigs, load_matrix(arguments.matrix))
    options = argparse.ArgumentParser(add_help=False, allow_abbrev=False, exit_on_error=False)
    options.add_argument("--baseline")
    options.add_argument("--rounds", type=int, default=1)
    try:
        asked, _ = options.parse_known_args(arguments.rest)
    except argparse.ArgumentError as error:
        raise Misuse(str(error)) from None
    return route_of(visits, stored_baseline=asked.baseline == STORED, rounds=asked.rounds)


def _rows(record: Record) -> list[SummaryRow]:
    return [
        SummaryRow.from_facts(
            row.node,
            {"cell": row.cell, "claim": row.claim, "outcome": row.outcome, "message": row.message},
        )
        for row in record.outcomes()
    ]


def _summary(
    record: Record, code: int, seconds: float, lost: list[dict[str, object]]
) -> dict[str, object]:
    return {
        "run": record.run_id,
        "exit_code": code,
        "seconds": round(seconds, 2),
        "lost": lost,
        "phases": {name: round(spent, 2) for name, spent in record.phases().items()},
        "outcomes": [
            {
                "cell": row.cell,
                "claim": row.claim,
                "outcome": row.outcome,
                "message": row.message,
            }
            for row in record.outcomes()
        ],
        "verdicts": [
            {"claim": row.claim, "statement": row.statement, **row.details}
            for row in record.verdicts()
        ],
        "results": str(record.directory),
    }
