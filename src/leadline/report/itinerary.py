"""What a run is going to do, said before it does anything: each visit, in its order."""

from collections import Counter
from collections.abc import Iterable, Iterator, Mapping
from itertools import pairwise

import pytest

from leadline.inventory.effort import by_drive
from leadline.inventory.plan import Visit
from leadline.running import Run, named_in, visit_of


def itinerary(items: Iterable[pytest.Item], run: Run) -> Iterator[str]:
    """A line for each visit that has tests, after one that counts them; nothing without any."""
    return _itinerary(Counter(at.id for item in items if (at := visit_of(item)) is not None), run)


def itinerary_of(node_ids: Iterable[str], run: Run) -> Iterator[str]:
    """The same where only the tests' names are known: workers have collected them."""
    ids = [visit.id for visit in run.route.visits]
    return _itinerary(Counter(named_in(node_id, ids) for node_id in node_ids), run)


def _itinerary(tests: Mapping[str, int], run: Run) -> Iterator[str]:
    made = [visit for visit in run.route.visits if visit.id in tests]
    if not made:
        return
    drives = by_drive(made)
    flashes = sum(_flashes(own, run) for own in drives)
    counted = [_count(len(made), "visit"), _count(len(drives), "drive"), _count(flashes, "flash")]
    yield f"leadline: {counted[0]} to {counted[1]}, {counted[2]}:"
    for own in drives:
        on_it = _came_with(own[0], run)
        for visit in own:
            how = "flashed" if visit.cell.firmware != on_it else "on the drive"
            yield f"  {visit.id}: {_what(visit, run)}, {how}; {_count(tests[visit.id], 'test')}"
            on_it = visit.cell.firmware


def _what(visit: Visit, run: Run) -> str:
    cell = visit.cell
    if visit.after is not None:
        return f"again, after {visit.after}"
    status = run.matrix.firmware(cell.model, cell.firmware).status
    compared = cell in [candidate for candidate, _ in run.route.comparisons]
    return f"{status}, held against {visit.against}" if compared else status


def _came_with(visit: Visit, run: Run) -> str:
    return run.home(visit).cell.firmware


def _flashes(own: list[Visit], run: Run) -> int:
    """Those between the visits of one drive, the first of them and the way home included."""
    home = _came_with(own[0], run)
    on_it = [home, *(visit.cell.firmware for visit in own), *([] if run.keep_firmware else [home])]
    return sum(one != other for one, other in pairwise(on_it))


def _count(number: int, what: str) -> str:
    plural = "es" if what.endswith("sh") else "s"
    return f"{number} {what}{'' if number == 1 else plural}"
