"""One line of a kernel log, taken out of whatever carried it.

A log may come from ``dmesg`` (``[   12.345678] text``, with ``-T`` a date in the brackets, with
``-x`` a facility before them), from ``/dev/kmsg`` (``6,1234,12345678,-;text``), from syslog or
``journalctl`` (``Dec 17 07:41:00 host kernel: text``), from a serial console (``<6>[...] text``),
or quoted in a mail (``> `` before all that).
"""

import re
from typing import NamedTuple

from leadline.drive.text import plain

LONGEST = 2000  # characters of a line that are looked at; the kernel's own limit is 1024

_QUOTED = re.compile(r"[ \t]*(?:>[ \t]?)+")
_CONSOLE = re.compile(r"<\d{1,3}>")
_KMSG = re.compile(r"\d{1,4},\d{1,20},(\d{1,20}),[^;]{0,64};")
_KMSG_NEWLINE = re.compile(r"\\x0a *")  # how it writes a message of two lines, as libata has them
_KMSG_PROPERTY = re.compile(r" [A-Z][A-Z_]*=")  # behind a message: SUBSYSTEM=scsi
_FACILITY = re.compile(r"[a-z]{2,8}\d? *:[a-z]{2,8} *: (?=\[)")
_CLOCK = re.compile(r"[ \t]*\[ *([^\]\[]{1,40})\](?:\[ *[TC]\d+\])?[ \t]?")
_CUT_SHORT = re.compile(r"[ \t]*(?:k?ernel|rnel|nel|el|l): ")
_SECONDS = re.compile(r"\d{1,12}\.\d{1,9}")
_DATE = re.compile(r"[A-Z][a-z]{2} +[A-Z]\w\w +\d|[A-Z][a-z]{2} +\d+ \d\d:\d\d|\d{4}-\d\d-\d\d")
_TIME_OF_DAY = re.compile(r"\d\d:\d\d:\d\d")
_KERNEL = "kernel: "
_FARTHEST_TAG = 96

Time = float | str | None


class Line(NamedTuple):
    """What one line says."""

    text: str  # without what carried it
    time: Time  # seconds since boot, or the date as the log gives it, or None
    stamped: bool  # something carried it: it is a message of its own, not the rest of another


def read_line(raw: str) -> Line:
    """`raw` without line end, quote marks, time and sender."""
    if _KMSG_PROPERTY.match(raw):
        return Line("", None, False)
    text = plain(raw[:LONGEST].rstrip())
    if ">" in text[:8]:
        text = _without(_QUOTED, text)
        text = _without(_CONSOLE, text)
    if text[:1] == "<":
        text = _without(_CONSOLE, text)
    if text[:1].isdigit() and (record := _KMSG.match(text)):
        said = _KMSG_NEWLINE.sub(" ", text[record.end() :])
        return Line(said, int(record[1]) / 1e6, True)
    text = _without(_FACILITY, text) if ": [" in text[:24] else text
    time: Time = None
    stamped = False
    tag = text.find(_KERNEL, 0, _FARTHEST_TAG)
    if tag >= 0:
        time, stamped = _date(text[:tag]), True
        text = text[tag + len(_KERNEL) :]
    elif short := _CUT_SHORT.match(text):
        stamped = True
        text = text[short.end() :]
    if clock := _CLOCK.match(text):
        given = clock[1].strip()
        if _SECONDS.fullmatch(given):
            return Line(text[clock.end() :], float(given), True)
        if _DATE.match(given):
            return Line(text[clock.end() :], given, True)
    return Line(text, time, stamped)


def _without(prefix: re.Pattern[str], text: str) -> str:
    found = prefix.match(text)
    return text[found.end() :] if found else text


def _date(sender: str) -> Time:
    """The date of a syslog line; the host's name behind it is left out."""
    words = sender.split()
    clock = _CLOCK.match(sender)
    if clock and _SECONDS.fullmatch(clock[1].strip()):  # journalctl -o short-monotonic
        return float(clock[1])
    if words and not _TIME_OF_DAY.search(words[-1]):
        words.pop()
    return " ".join(words) or None
