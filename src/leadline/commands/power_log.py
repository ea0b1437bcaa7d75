"""`leadline power log`: every byte that went to and from the PDUs of a run."""

import argparse
import json
import re
from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING, Any

from leadline.commands.options import add_results
from leadline.errors import Misuse

if TYPE_CHECKING:
    from leadline.power.byte_log_read import Entry, Reading

_EXAMPLES = """\
examples:
  leadline power log                               the last run, or leadline power
  leadline power log 20260131-235959-1a2b          another one
  leadline power log leadline-results/serial/20260131-235959-1a2b/left.log
  leadline power log --pdu left --json

A line is a time, a PDU, a direction (> to the PDU, < from it) and what was said, in printable
characters: \\r is a carriage return, \\x1b an escape.  Passwords are not in the log.

Exit codes: 0, and 2 where there is no such run, file or PDU.
"""
_KINDS = {"=": "opened", ">": "sent", "<": "heard"}
_ROW_ENDS = re.compile(rb"(?<=\n)|(?<=\r)(?!\n)")


def register(subparsers: "argparse._SubParsersAction[argparse.ArgumentParser]") -> None:
    """Add `power log` to the command line."""
    parser = subparsers.add_parser(
        "power log",
        help="every byte to and from the PDUs of a run",
        description="Show every byte that went to and from the PDUs of a run, with its time.",
        epilog=_EXAMPLES,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    parser.add_argument(
        "name", metavar="RUN|FILE", nargs="?", help="a run's id, a file or a folder (the last run)"
    )
    parser.add_argument(
        "--pdu", action="append", metavar="NAME", help="only this PDU; may be given several times"
    )
    add_results(parser)
    parser.add_argument("--json", action="store_true", help="print one JSON object")
    parser.set_defaults(func=run)


def run(arguments: argparse.Namespace) -> int:
    """Print the log; 0, for everything else raises."""
    from leadline.power.byte_log_read import read_log

    reading = read_log(arguments.results, arguments.name)
    for name in arguments.pdu or ():
        if name not in reading.pdus:
            known = ", ".join(reading.pdus)
            raise Misuse(f"{reading.source}: found no PDU {name!r}, expected one of: {known}")
    wanted = arguments.pdu or reading.pdus
    entries = [entry for entry in reading.entries if entry.pdu in wanted]
    if arguments.json:
        print(json.dumps(_document(reading, entries)))
        return 0
    for line in _lines(reading, entries):
        print(line)
    return 0


def _document(reading: "Reading", entries: "Sequence[Entry]") -> dict[str, Any]:
    from leadline.power.byte_log_line import escaped

    return {
        "run": reading.run,
        "source": str(reading.source),
        "pdus": reading.pdus,
        "unreadable": reading.unreadable,
        "entries": [
            {
                "time": entry.at.isoformat(timespec="microseconds"),
                "pdu": entry.pdu,
                "port": entry.port,
                "kind": _KINDS[entry.kind],
                "text": escaped(entry.data),
                "hex": entry.data.hex(),
            }
            for entry in entries
        ],
    }


def _lines(reading: "Reading", entries: "Sequence[Entry]") -> Iterator[str]:
    """The log for people: each row of what a PDU said on a line of its own, by local time."""
    from leadline.drive.text import plain
    from leadline.power.byte_log_line import OPENED, escaped

    yield plain(f"{(reading.run and f'run {reading.run}: ') or ''}{reading.source}")
    width = max(len(entry.pdu) for entry in entries)
    for entry in entries:
        moment = entry.at.astimezone().replace(tzinfo=None).isoformat(" ", "milliseconds")
        first = f"{moment}  {entry.pdu:{width}} {entry.kind} "
        if entry.kind == OPENED:
            facts = [f"{name} {value}" for name, value in entry.session.items() if name != "pdu"]
            yield plain(f"{first}{', '.join(facts)}")
            continue
        for row in filter(None, _ROW_ENDS.split(entry.data)):
            yield first + escaped(row)
            first = " " * (len(first) - 2) + f"{entry.kind} "
    if reading.unreadable:
        yield f"{reading.unreadable} lines are none of a byte log, and were left out"
