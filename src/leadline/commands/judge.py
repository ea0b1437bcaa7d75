"""`leadline judge`: verdicts on a recorded sweep, from fio's JSON files."""

import argparse
import json
import sys
from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import asdict
from math import isfinite
from pathlib import Path
from typing import TYPE_CHECKING, Any

from leadline.drive.text import plain
from leadline.outcomes import Ended, exit_code
from leadline.verdict.verdict import Outcome

if TYPE_CHECKING:
    from leadline.load.recorded import Recording
    from leadline.load.recorded_job import RecordedRun
    from leadline.sweep.claims import Finding, Unsupported
    from leadline.sweep.screening import Suspect
    from leadline.sweep.yardstick import Yardstick

_CLASSES = ("ssd", "hdd", "unknown")

_EXAMPLES = """\
examples:
  leadline judge sweep/                      the class is guessed, and the guess is stated
  leadline judge --class ssd sweep/          or given
  leadline judge --model 'NAME' sweep/       or the model's, with its limits
  leadline judge --json sweep/

DIR holds the JSON files of fio, one a depth, of one drive.  Nothing is measured.

Exit codes: 0 every claim with a limit holds, 1 one fails, 2 wrong usage, or nothing to
judge in files that were refused, 4 nothing fails and not everything is settled.
"""


def register(subparsers: "argparse._SubParsersAction[argparse.ArgumentParser]") -> None:
    """Add `judge` to the command line."""
    parser = subparsers.add_parser(
        "judge",
        help="verdicts on a recorded depth sweep: fio's JSON files",
        description="Judge a depth sweep that fio recorded, by the limits of the drive's class.",
        epilog=_EXAMPLES,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    parser.add_argument("directory", metavar="DIR", type=Path, help="where the files are")
    of = parser.add_mutually_exclusive_group()
    of.add_argument(
        "--class", dest="class_", choices=_CLASSES, help="the drive's class (default: guessed)"
    )
    of.add_argument("--model", metavar="NAME", help="the drive's model, as in the firmware matrix")
    parser.add_argument(
        "--matrix",
        type=Path,
        metavar="FILE",
        help="the firmware matrix (default: ./firmware_matrix.yaml, else Leadline's own)",
    )
    parser.add_argument(
        "--preconditioned",
        action="store_true",
        help="writes were recorded on a drive preconditioned and in steady state",
    )
    parser.add_argument("--json", action="store_true", help="one JSON object on stdout")
    parser.set_defaults(func=run)


def run(arguments: argparse.Namespace) -> int:
    """Print the verdicts on DIR; the exit code.  Raises Misuse when there is nothing to read."""
    from leadline.load.recorded import read_directory
    from leadline.sweep.claims import Finding, Unsupported, judge
    from leadline.sweep.screening import suspects

    recording = read_directory(arguments.directory)
    yardstick = _yardstick(arguments, recording.runs)
    ends = judge(recording.runs, yardstick)
    findings = [end for end in ends if isinstance(end, Finding)]
    unsupported = [end for end in ends if isinstance(end, Unsupported)]
    doubtful = suspects(recording.runs, yardstick.class_)
    if arguments.json:
        document = _document(recording, yardstick, findings, unsupported, doubtful)
        print(json.dumps(document, indent=2, allow_nan=False))
    else:
        print("\n".join(_lines(recording, yardstick, findings, unsupported, doubtful)))
    sys.stdout.flush()
    return exit_code(_endings(recording, findings, unsupported))


def _yardstick(arguments: argparse.Namespace, runs: "Sequence[RecordedRun]") -> "Yardstick":
    from leadline.inventory.matrix import load_matrix
    from leadline.sweep.yardstick import Yardstick, guess_class

    matrix = load_matrix(arguments.matrix)
    if arguments.model is not None:
        limits = matrix.limits_for(arguments.model)
        where = f"{matrix.path}, model {plain(arguments.model)}"
        of_model = matrix.model(arguments.model).class_
        return Yardstick(of_model, f"--model: {where}", limits, where, arguments.preconditioned)
    given: str | None = arguments.class_
    class_, class_from = (given, "--class") if given else guess_class(runs)
    of_class = {str(name): limits for name, limits in matrix.limits_by_class.items()}
    where = f"{matrix.path}, class {class_}"
    return Yardstick(class_, class_from, of_class.get(class_, {}), where, arguments.preconditioned)


def _endings(
    recording: "Recording", findings: "Sequence[Finding]", unsupported: "Sequence[Unsupported]"
) -> Iterator[Ended]:
    """What the exit code is of: a claim that has a limit and no evidence is not settled."""
    for finding in findings:
        yield Ended(finding.verdict.outcome.lower())
    if not findings and recording.refused:
        yield Ended.USAGE
    if not findings or any(each.lacks_evidence for each in unsupported):
        yield Ended.INCONCLUSIVE


def _document(
    recording: "Recording",
    yardstick: "Yardstick",
    findings: "Sequence[Finding]",
    unsupported: "Sequence[Unsupported]",
    doubtful: "Sequence[Suspect]",
) -> dict[str, Any]:
    return {
        "directory": plain(str(recording.directory)),
        "class": yardstick.class_,
        "class_from": yardstick.class_from,
        "verdicts": [_verdict_fields(finding) for finding in findings],
        "unsupported": [asdict(each) for each in unsupported],
        "refused": [asdict(each) for each in recording.refused],
        "points": [_point_fields(run) for run in recording.runs],
        "suspects": [asdict(each) for each in doubtful],
        "ignored": list(recording.ignored),
    }


def _verdict_fields(finding: "Finding") -> dict[str, Any]:
    verdict = finding.verdict
    return {
        "claim": finding.claim,
        "rw": finding.rw,
        "outcome": verdict.outcome.value,
        "reason": verdict.reason,
        "estimate": verdict.estimate,
        "low": verdict.low,
        "high": _finite(verdict.high),
        "threshold": verdict.threshold,
        "direction": verdict.direction,
        "source": finding.source,
        "explanation": finding.explanation,
        "files": list(finding.files),
    }


def _point_fields(run: "RecordedRun") -> dict[str, Any]:
    figures, latency = run.figures, run.figures.latency
    return {
        "file": run.file,
        "rw": run.asked.rw,
        "depth": run.asked.depth,
        "offered_depth": run.offered_depth,
        "rate": figures.rate,
        "mean_latency_s": latency.mean if latency else None,
        "little_ratio": run.little_ratio,
        "fio_version": run.fio_version,
        "engine": run.asked.engine,
        "block_bytes": run.asked.block_bytes,
        "seconds": figures.seconds,
        "voids": list(run.voids),
        "notes": list(run.notes),
    }


def _finite(value: float | None) -> float | None:
    return value if value is not None and isfinite(value) else None


def _lines(
    recording: "Recording",
    yardstick: "Yardstick",
    findings: "Sequence[Finding]",
    unsupported: "Sequence[Unsupported]",
    doubtful: "Sequence[Suspect]",
) -> Iterator[str]:
    from leadline.load.recorded_job import RECORDED_VOIDS

    yield f"{plain(str(recording.directory))}: class {yardstick.class_} ({yardstick.class_from})"
    yield from _points_table(recording.runs)
    for finding in findings:
        yield f"\n{finding.claim}: {finding.explanation}"
    lines = [f"{each.claim}{_on(each.rw)}: {each.why}" for each in unsupported]
    yield from _block("not judged:", lines)
    lines = [f"{each.kind}: {each.file}: {each.why}" for each in doubtful]
    yield from _block("suspects, to be measured again:", lines)
    lines = [
        f"{r.file}: {name}: {RECORDED_VOIDS[name]}" for r in recording.runs for name in r.voids
    ]
    yield from _block("void:", lines)
    lines = [f"{r.file}: {note}" for r in recording.runs for note in r.notes]
    yield from _block("notes:", lines)
    yield from _block("refused:", [f"{each.file}: {each.why}" for each in recording.refused])
    yield from _block("left alone, for fio did not write it:", recording.ignored)
    yield f"\n{_summary(findings, unsupported)}"


def _summary(findings: "Sequence[Finding]", unsupported: "Sequence[Unsupported]") -> str:
    counts = Counter(finding.verdict.outcome for finding in findings)
    said = ", ".join(f"{counts[outcome]} {outcome}" for outcome in Outcome if counts[outcome])
    unproven = sum(each.lacks_evidence for each in unsupported)
    if unproven:
        said += f"{', ' if said else ''}{unproven} with a limit and no evidence"
    return said or "nothing was settled: no claim has a limit here"


def _block(title: str, lines: Sequence[str]) -> Iterator[str]:
    if lines:
        yield f"\n{title}"
        yield from (f"  {line}" for line in lines)


def _on(rw: str | None) -> str:
    return f" ({rw})" if rw else ""


def _points_table(runs: "Sequence[RecordedRun]") -> list[str]:
    """Headings and a line a run; empty when there is no run."""
    rows = [("load", "depth", "requests/s", "mean ms", "queue full", "engine", "file")]
    for run in runs:
        latency = run.figures.latency
        rows.append(
            (
                run.asked.rw,
                str(run.offered_depth),
                f"{run.figures.rate:.1f}",
                f"{1e3 * latency.mean:.3f}" if latency else "-",
                f"{run.little_ratio:.1%}" if run.little_ratio is not None else "-",
                run.asked.engine,
                run.file + (" (void)" if run.voids else ""),
            )
        )
    widths = [max(len(row[column]) for row in rows) for column in range(len(rows[0]))]
    lines = []
    for row in rows if runs else []:
        cells = [
            cell.rjust(width) if 1 <= column <= 4 else cell.ljust(width)
            for column, (cell, width) in enumerate(zip(row, widths, strict=True))
        ]
        lines.append("  " + "  ".join(cells).rstrip())
    return lines
