"""The BayTech RPC-3 of before the NC: a password, a menu, and then the RPC3's commands.

The dialogue is that of powerman's `baytech` (Revision F 5.00 and 5.01): `Enter password>`,
the main menu, whose 1 is Outlet Control, and a prompt `RPC-3>`, where each on and off
reprints the whole table.  Command confirmation must be off in the unit.
"""

import re
from dataclasses import replace
from typing import ClassVar

from leadline.power.command_line import Wait
from leadline.power.families.baytech import GRAMMAR, BaytechRpc3, Dialect
from leadline.power.login import LoginWords

_LINE = rb"(?:\A|[\r\n])[ ]*"
# Not within a row, whose name may read like one.
QUESTION = re.compile(
    rb"(?:\A|[\r\n])(?=[^\r\n]*\Z)(?![ ]*\d)[^\r\n]*(?:\(Y/N\)[?>: ]*|'YES'[^\r\n]*)\Z",
    re.IGNORECASE,
)
# Only the main menu's 1 leads to the outlets: in any other, an Enter alone is sent.
MAIN_MENU = re.compile(_LINE + rb"1\)\.{3}Outlet Control[^>]*[\r\n][ ]*Enter Selection>[ ]*\Z")
# `on N` takes the number of the selection; where the outlet has another, it is no row.
ROW = re.compile(r"[ ]*(\d{1,2})[ ]{2}.*(?<!\d)\1[ ]+(On|Off)[ ]*")


def parse_status(text: bytes) -> dict[int, bool] | None:
    """The outlets of a status table by their numbers; None where there is no table.

    None too when an outlet is listed twice: then two answers ran into each other.
    """
    rows = [
        row for line in re.split(r"[\r\n]+", text.decode("latin-1")) if (row := ROW.fullmatch(line))
    ]
    states = {int(row[1]): row[2] == "On" for row in rows}
    return states if states and len(states) == len(rows) else None


class BaytechMenu(BaytechRpc3):
    """One old RPC-3 behind a session."""

    dialect: ClassVar[Dialect] = Dialect(
        replace(
            GRAMMAR,
            unit="a BayTech RPC-3 with menus",
            questions=QUESTION,
            menus=(Wait(MAIN_MENU, b"1"),),
            login=LoginWords(
                password=re.compile(_LINE + rb"Enter password>[ ]*\Z"),
                denied=re.compile(_LINE + rb"Invalid password\."),
            ),
        ),
        parse_status,
    )
