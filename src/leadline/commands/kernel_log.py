"""`leadline kernel-log`: the events in a kernel log."""

import argparse
import json
import sys
from collections import Counter
from collections.abc import Iterator
from pathlib import Path
from typing import BinaryIO

from leadline.drive.kernel_events import EventParser, KernelEvent, ncq_disabled
from leadline.drive.text import plain
from leadline.errors import Misuse

_LONGEST_READ = 64 * 1024  # bytes; of a longer line only the beginning is looked at anyway

_EXAMPLES = """\
examples:
  leadline kernel-log dmesg.txt                 a saved log: dmesg, journalctl, syslog, a mail
  journalctl -k | leadline kernel-log -         or from a program
  leadline kernel-log --json /var/log/kern.log

Exit codes: 0 no error and no warning, 1 there are some, 2 the file is no kernel log.
"""


def register(subparsers: "argparse._SubParsersAction[argparse.ArgumentParser]") -> None:
    """Add `kernel-log` to the command line."""
    parser = subparsers.add_parser(
        "kernel-log",
        help="what happened to drives, by a kernel log",
        description="Find what happened to drives in a kernel log, and whom to blame.",
        epilog=_EXAMPLES,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    parser.add_argument("file", metavar="FILE", help="the log, or - for stdin")
    parser.add_argument("--json", action="store_true", help="one JSON object on stdout")
    parser.set_defaults(func=run)


def run(arguments: argparse.Namespace) -> int:
    """Print the events of FILE; the exit code."""
    name = "stdin" if arguments.file == "-" else plain(arguments.file)
    parser = EventParser()
    try:
        if arguments.file == "-":
            _feed(parser, sys.stdin.buffer)
        else:
            with Path(arguments.file).open("rb") as log:
                _feed(parser, log)
    except OSError as error:
        raise Misuse(f"{name}: {error.strerror}; name a file with a kernel log") from error
    events = parser.events()
    if not parser.messages:
        raise Misuse(
            f"{name}: no kernel messages in it; "
            "give the output of `dmesg` or `journalctl -k`, not filtered"
        )
    found = [event for event in events if event.severity != "notice"]
    if arguments.json:
        print(json.dumps(_document(events), indent=2))
    else:
        _print_table(found, parser.messages)
    return 1 if found else 0


def _feed(parser: EventParser, log: BinaryIO) -> None:
    for piece in _pieces(log):
        parser.feed(piece.decode("utf-8", "replace"))


def _pieces(log: BinaryIO) -> Iterator[bytes]:
    while piece := log.readline(_LONGEST_READ):
        yield piece


def _document(events: tuple[KernelEvent, ...]) -> dict[str, object]:
    return {
        "events": [_fields(event) for event in events if event.severity != "notice"],
        "notices": [_fields(event) for event in events if event.severity == "notice"],
        "ncq_disabled": ncq_disabled(events),
    }


def _fields(event: KernelEvent) -> dict[str, object]:
    return {
        "kind": event.kind,
        "severity": event.severity,
        "device": event.device,
        "time": event.time,
        "blame": event.blame,
        "text": event.text,
        "commands": list(event.commands),
    }


def _print_table(found: list[KernelEvent], messages: int) -> None:
    if not found:
        print(f"No errors and no warnings in {messages} kernel messages.")
        return
    rows = [
        ("" if event.time is None else str(event.time), event.device or "-", event.kind)
        for event in found
    ]
    widths = [max(len(row[column]) for row in rows) for column in range(3)]
    for row, event in zip(rows, found, strict=True):
        cells = "  ".join(cell.ljust(width) for cell, width in zip(row, widths, strict=True))
        print(f"{cells}  {event.blame:<10}  {event.text}")
    kinds = ", ".join(f"{n} {kind}" for kind, n in Counter(e.kind for e in found).most_common())
    print(f"\n{len(found)} events in {messages} kernel messages: {kinds}.")
    if ncq_disabled(found):
        devices = sorted({e.device or "a drive" for e in found if e.kind == "ncq-disabled"})
        print(f"The kernel switched queueing (NCQ) off on {', '.join(devices)}.")
