"""Regression stations for tests: a drive that came with 1.0, and the candidate 1.1."""

from collections.abc import Sequence
from dataclasses import replace

from leadline.drive.said import Said
from leadline.inventory.plan import Cell, Visit
from leadline.inventory.stations import Stay
from leadline.released import Released
from leadline.statements import AtStation

SIDE = "random_read.at(depth=8), station {} of 1.1 against 1.0"
"""What slices are kept under."""

HOME = Visit(Cell("bench", "a", "MODEL", "1.0", "c"), 1, "bench/a", installed=True, image=None)
CANDIDATE = replace(
    HOME, cell=replace(HOME.cell, firmware="1.1"), n=2, installed=False, against="1.0"
)
BACK = replace(HOME, n=3, after="1.1")
STAYS = tuple(
    Stay(visit, number, CANDIDATE, HOME.cell)
    for number, visit in enumerate((HOME, CANDIDATE, CANDIDATE, BACK), 1)
)
AGAIN = replace(CANDIDATE, n=4, after="1.0")
HOME_AT_LAST = replace(HOME, n=5, after="1.1")
TWO_ROUNDS = tuple(
    Stay(visit, number, CANDIDATE, HOME.cell, rounds=2)
    for number, visit in enumerate(
        (HOME, CANDIDATE, CANDIDATE, BACK, BACK, AGAIN, AGAIN, HOME_AT_LAST), 1
    )
)


def at_station(
    number: int,
    recorded: Sequence[AtStation] = (),
    says: dict[str, Said] | None = None,
    told: list[str] | None = None,
    stays: Sequence[Stay] = STAYS,
) -> Released:
    """The released firmware as seen from a station, with what the others have recorded, and
    what the drive says of itself by firmware."""
    heard = says or {}
    return Released(
        stays[number - 1],
        lambda quantity: tuple(recorded),
        lambda cell: heard.get(cell.firmware),
        (told if told is not None else []).append,
    )
