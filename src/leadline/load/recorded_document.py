"""The JSON documents in a file that fio wrote, and what stands around them.

fio puts its notes before the document and a signal's after or before it, and with
`--status-interval` one whole document after the other into the same file.
"""

import json
import re
from dataclasses import dataclass
from typing import Any

from leadline.drive.text import plain

_START = re.compile(r"^\{", re.MULTILINE)
_OF_FIO = re.compile(r'"fio version"|"jobs"')
_PIECE = re.compile(r"[\w.+-]*\s*")  # of a word or a number, or nothing


class Unusable(Exception):
    """A file that tells nothing, and why, in words that follow the file's name."""


@dataclass(frozen=True)
class FioOutput:
    """The documents of one file, each with its jobs, in their order; and the text around them."""

    documents: tuple[dict[str, Any], ...]
    said: str


def read_output(text: str) -> FioOutput:
    """Find fio's documents in `text`.  Raises Unusable when there is none that is whole."""
    text = text.removeprefix("\ufeff")
    if not text.strip():
        raise Unusable("it is empty: fio wrote nothing into it; run it again")
    found: list[dict[str, Any]] = []
    said: list[str] = []
    decoder = json.JSONDecoder()
    place = 0
    while start := _START.search(text, place):
        said.append(text[place : start.start()])
        try:
            document, place = decoder.raw_decode(text, start.start())
        except (ValueError, RecursionError) as error:
            following = _START.search(text, start.end())
            if _OF_FIO.search(text, start.start(), following.start() if following else len(text)):
                raise _broken(text, error, len(found)) from None
            said.append("{")
            place = start.end()
            continue
        found.append(document)
    said.append(text[place:])
    documents = tuple(each for each in found if isinstance(each.get("jobs"), list))
    if not documents:
        raise _without_jobs(text, found)
    return FioOutput(documents, "".join(said))


def _broken(text: str, error: Exception, whole: int) -> Unusable:
    """Why a document that is fio's cannot be read."""
    after = f" (after {whole} whole ones)" if whole else ""
    if not isinstance(error, json.JSONDecodeError):
        return Unusable(f"its JSON cannot be read{after}: it is nested too deeply, or no number")
    if error.msg.startswith("Unterminated string") or _PIECE.fullmatch(text, error.pos):
        return Unusable(
            f"it is truncated: it ends in line {text.rstrip().count(chr(10)) + 1}, within fio's "
            f"document{after}; was fio killed, or the disk full? Run it again"
        )
    return Unusable(
        f"its JSON is damaged{after}: line {error.lineno}, column {error.colno}: {error.msg}"
    )


def _without_jobs(text: str, found: list[dict[str, Any]]) -> Unusable:
    if any("client_stats" in each for each in found):
        return Unusable(
            "it has no jobs but client_stats: it is from `fio --client`; run fio on the rig itself"
        )
    if found:
        return Unusable('it has no jobs: its JSON has no list "jobs", so it is not fio\'s results')
    first = next(line.strip() for line in text.splitlines() if line.strip())
    return Unusable(
        f"it is not fio's JSON: it begins with {plain(first)[:60]!r}; "
        "write it with --output-format=json --output=FILE"
    )
