"""What goes wrong while a regression station is recorded: whose fault it is, and what is not
compared then.

A station belongs to the firmware that is on the drive then, whatever candidate it is recorded
for: what the released firmware does wrong at one is no loss of the candidate.
"""

from typing import TYPE_CHECKING

import pytest

from leadline.errors import DriveFault
from leadline.outcomes import Ended
from leadline.running import stay_of

if TYPE_CHECKING:
    from leadline.inventory.plan import Cell
    from leadline.inventory.stations import Stay

FAILED = pytest.StashKey[dict[tuple[str, int], str]]()
"""Of a session: how each station that failed did, by its test and its number."""
_FAILS = frozenset({Ended.FAIL, Ended.ERROR, Ended.USAGE, Ended.DEFECT, Ended.INCONCLUSIVE})


def answers(item: pytest.Item, ended: Ended, error: BaseException | None) -> "Cell | None":
    """The cell that a test's failure is of where that is not the one that the test is about: of
    the firmware that the drive has at this station, and not of the candidate.  None elsewhere.

    What is judged at the last station is the candidate's; so is a flash that fails between the
    two, for the drive has not come to the other firmware then.
    """
    stay = stay_of(item)
    if stay is None or ended is not Ended.FAIL or stay.visit.cell == stay.candidate.cell:
        return None
    if stay.judges and not isinstance(error, DriveFault):
        return None
    opened = "visit" in getattr(item, "funcargs", {})
    on_it = opened or (stay.visit.installed and stay.visit.after is None)
    return stay.visit.cell if on_it else None


def take_note(item: pytest.Item, ended: Ended, message: str) -> None:
    """Of how a test at a station ended, for the one at which all of them are judged."""
    stay = stay_of(item)
    if stay is None or stay.judges:
        return
    failed = item.config.stash.setdefault(FAILED, {})
    place = _test(item, stay), stay.number
    if ended in _FAILS:
        failed[place] = message
    else:  # it was run once more, and that counts
        failed.pop(place, None)


def uncompared(item: pytest.Item) -> str:
    """Why nothing is compared at the station where a test judges; "" where nothing has failed."""
    stay = stay_of(item)
    if stay is None:
        return ""
    failed = item.config.stash.get(FAILED, {})
    for number in range(1, stay.number):
        message = failed.get((_test(item, stay), number))
        if message is not None:
            return _told(stay, number, "before it", message)
    return ""


def uncompared_after(item: pytest.Item, message: str) -> str:
    """The same of the last station, where it has failed itself, as `message` says."""
    stay = stay_of(item)
    assert stay is not None, "it is at a station"
    return _told(stay, stay.number, "after it", message)


def _told(stay: "Stay", number: int, when: str, message: str) -> str:
    cell = stay.candidate.cell if stay.order[number - 1] == "candidate" else stay.released
    first, *_ = message.splitlines() or [""]
    return f"not compared: the station of {cell.model}-{cell.firmware} {when} failed: {first}"


def _test(item: pytest.Item, stay: "Stay") -> str:
    """What a test is called at each of its stations."""
    return item.nodeid.replace(stay.id, "")
