"""BayTech RPC-28(A), RPC-22 and RPC-18D: the RPC3's commands, another prompt, another table.

The dialogue is that of powerman's `baytech-rpc28-nc` (RPC28-30NC F3.01), `baytech-rpc22`
and `baytech-rpc18d-nc`: the prompt is `RPC-28>` or `RPC-28A>`, by turns, and a command that
no Enter came before is dropped, though a prompt follows it.  The table has two outlets on
a line.  Confirmation and the status menu must be off in the unit.
"""

import re
from dataclasses import replace
from typing import ClassVar

from leadline.power.families.baytech import GRAMMAR, BaytechRpc3, Dialect

# A name is whatever the user called the outlet: its state is what stands before the next
# outlet, or at the end.
CELL = re.compile(r"[ ]*(\d{1,2})\)\.{3}.*?:[ ]*(On|Off)(?=[ ]*\Z|[ ]{2,}\d{1,2}\)\.{3})")


def parse_status(text: bytes) -> dict[int, bool] | None:
    """The outlets of a status table by their numbers; None where there is no table.

    None too when an outlet is listed twice: then two answers ran into each other, or a
    name looks like an outlet.
    """
    lines = re.split(r"[\r\n]+", text.decode("latin-1"))
    cells = [cell for line in lines for cell in _cells(line)]
    states = {int(cell[1]): cell[2] == "On" for cell in cells}
    return states if states and len(states) == len(cells) else None


def _cells(line: str) -> list[re.Match[str]]:
    """The outlets of a line that has nothing else on it."""
    cells, end = [], 0
    while cell := CELL.match(line, end):
        cells.append(cell)
        end = cell.end()
    return cells if not line[end:].strip() else []


class BaytechRpc28(BaytechRpc3):
    """One RPC-28, RPC-22 or RPC-18D behind a session."""

    dialect: ClassVar[Dialect] = Dialect(
        replace(GRAMMAR, unit="a BayTech RPC-28, RPC-22 or RPC-18"), parse_status
    )
