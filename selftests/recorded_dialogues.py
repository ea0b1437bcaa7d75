"""Dialogues recorded of PDUs and their simulators, where they are at hand beside the repository."""

import ast
import re
from pathlib import Path

import pytest

TRANSCRIPTS = Path(__file__).parents[2] / "shared/pdu/transcripts"

needs_transcripts = pytest.mark.skipif(
    not TRANSCRIPTS.is_dir(), reason="the recorded dialogues are not here"
)


def exchanges(name: str) -> list[tuple[bytes, bytes]]:
    """What was sent and what came back, in order; the first sending is empty."""
    said: list[tuple[bytes, bytes]] = [(b"", b"")]
    for line in (TRANSCRIPTS / name).read_text().splitlines():
        if found := re.match(r" *[\d.]+ ([TR])X (b['\"].*['\"])$", line):
            data: bytes = ast.literal_eval(found[2])
            if found[1] == "T":
                said.append((data, b""))
            else:
                said[-1] = (said[-1][0], said[-1][1] + data)
    return said
