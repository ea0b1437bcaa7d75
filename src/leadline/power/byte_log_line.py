"""The lines of a byte log, which a person can read and a terminal can be given.

    2026-01-31T23:59:59.123456Z = {"pdu": "left", "port": "/dev/ttyS0", ...}
    2026-01-31T23:59:59.130000Z > off 2\\r
    2026-01-31T23:59:59.131072Z < off 2\\r\\nRPC3-NC>

`=` begins a session, `>` was sent to the PDU, `<` came from it.  The time is that of the
line's first byte, and a line holds what went one way within 20 ms.  Bytes are as in a Python
literal: a backslash and what is not printable ASCII are escaped.  Lines that say nothing of
the kind (of a file that was cut short, or is no byte log) are no lines.
"""

import json
import re
from collections.abc import Mapping
from dataclasses import dataclass, field
from datetime import UTC, datetime
from typing import Any

OPENED, SENT, HEARD = "=", ">", "<"

_LINE = re.compile(
    r"(\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d\.\d{6})Z "
    # The last escape may be cut short, where the writer was killed.
    r"(?:([<>]) ((?:[ -\[\]-~]|\\(?:[\\rnt]|x[0-9a-f]{2}))*)(?:\\(?:x[0-9a-f]?)?)?|= (\{.*\}))"
)


@dataclass(frozen=True)
class Line:
    """One line: its bytes, or of a session's beginning what it says of the PDU."""

    at: datetime
    kind: str
    data: bytes = b""
    session: Mapping[str, str] = field(default_factory=dict)


def begin(at: float, kind: str) -> str:
    """The beginning of a line, at a time in seconds since the epoch."""
    moment = datetime.fromtimestamp(at, UTC).replace(tzinfo=None)
    return f"{moment.isoformat(timespec='microseconds')}Z {kind} "


def escaped(data: bytes) -> str:
    """Bytes as the line has them; nothing in it can steer a terminal."""
    return data.decode("latin-1").encode("unicode_escape").decode("ascii")


def session_line(at: float, facts: dict[str, Any]) -> str:
    """The line that begins a session."""
    return begin(at, OPENED) + json.dumps(facts)


def parse(text: str) -> Line | None:
    """The line that a text is; None where it is none."""
    found = _LINE.fullmatch(text)
    if found is None:
        return None
    stamp, kind, data, session = found.groups()
    try:
        at = datetime.fromisoformat(stamp).replace(tzinfo=UTC)
        if session is None:
            data = data.encode("ascii").decode("unicode_escape").encode("latin-1")
            return Line(at, kind, data)
        facts = json.loads(session)
    except (ValueError, RecursionError):
        return None
    return Line(at, OPENED, session={str(name): str(value) for name, value in facts.items()})
