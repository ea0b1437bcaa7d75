"""The way of the drives through their visits, and where the stations are on it."""

from collections.abc import Sequence
from itertools import pairwise
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from leadline.inventory.plan import Cell, Visit, visits_from_json, visits_to_json
from leadline.inventory.stations import Route, route_of
from leadline.verdict.regression import Station, blocks_of


def drive(*firmware: str, home: str = "1.0", slot: str = "a", **against: str | None) -> list[Visit]:
    """The visits of one drive: `c1="1.0"` holds the candidate c1 against 1.0."""
    order = sorted(firmware, key=lambda each: each != home)
    return [
        Visit(
            Cell("bench", slot, "MODEL", each, "c"),
            n,
            f"bench/{slot}",
            installed=each == home,
            image=Path(each),
            against=against.get(each),
        )
        for n, each in enumerate(order, 1)
    ]


def ids(visits: Sequence[Visit]) -> list[str]:
    return [visit.id.removeprefix("bench-a-MODEL-") for visit in visits]


def stations(route: Route) -> list[str]:
    return [stay.id.removeprefix("bench-a-MODEL-") for stay in route.stays]


def test_home_candidate_home_makes_a_block_in_two_flashes() -> None:
    route = route_of(drive("1.0", "c1", c1="1.0"))
    assert ids(route.visits) == ["1.0", "c1", "1.0-visit3"]
    assert stations(route) == ["1.0-station1", "c1-station2", "c1-station3", "1.0-visit3-station4"]
    assert [stay.ends_visit for stay in route.stays] == [True, False, True, False]
    assert [stay.judges for stay in route.stays] == [False, False, False, True]
    ((candidate, released),) = route.comparisons
    assert (candidate.firmware, released.firmware) == ("c1", "1.0")
    back = route.visits[2]
    assert (back.cell, back.installed, back.image) == (released, True, Path("1.0"))
    assert (back.n, back.after) == (3, "c1")


def test_each_further_round_is_a_block_more_in_two_flashes() -> None:
    route = route_of(drive("1.0", "c1", c1="1.0"), rounds=2)
    assert ids(route.visits) == ["1.0", "c1", "1.0-visit3", "c1-visit4", "1.0-visit5"]
    assert stations(route) == [
        *("1.0-station1", "c1-station2", "c1-station3", "1.0-visit3-station4"),
        *("1.0-visit3-station5", "c1-visit4-station6", "c1-visit4-station7", "1.0-visit5-station8"),
    ]
    assert [stay.ends_visit for stay in route.stays] == [True, False] * 4
    assert [stay.judges for stay in route.stays] == [False] * 7 + [True]
    assert len(route.comparisons) == 1, "however often"
    mirrored = route_of(drive("1.0", "c1", home="c1", c1="1.0"), rounds=2)
    measured = [Station("d", stay.order[stay.number - 1], (1.0,)) for stay in mirrored.stays]
    assert len(blocks_of(measured)[0]) == 2


def test_a_drive_that_came_with_the_candidate_ends_with_it() -> None:
    route = route_of(drive("1.0", "c1", home="c1", c1="1.0"))
    assert ids(route.visits) == ["c1", "1.0", "c1-visit3"]
    assert route.stays[0].order == ("candidate", "released", "released", "candidate")


def test_a_route_past_many_candidates_holds_no_cell_against_all_before_it(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """Fifty firmware of each of two hundred models are to be planned in two seconds."""
    names = [f"c{n}" for n in range(50)]
    visits = drive("1.0", *names, **dict.fromkeys(names, "1.0"))
    same = Cell.__eq__
    compared = 0

    def counting(one: Cell, other: object) -> bool:
        nonlocal compared
        compared += 1
        return same(one, other)

    monkeypatch.setattr(Cell, "__eq__", counting)
    made = route_of(visits).visits
    assert len(made) == 2 * len(names) + 1
    assert compared <= len(made)


def test_each_candidate_is_held_against_a_visit_of_its_own() -> None:
    route = route_of(drive("1.0", "c1", "c2", c1="1.0", c2="1.0"))
    assert ids(route.visits) == ["1.0", "c1", "1.0-visit3", "c2", "1.0-visit5"]
    assert stations(route)[4:] == [
        *("1.0-visit3-station1", "c2-station2"),
        *("c2-station3", "1.0-visit5-station4"),
    ]


def test_a_candidate_may_follow_another_firmware_than_the_one_that_the_drive_has() -> None:
    route = route_of(drive("0.9", "1.0", "c1", home="0.9", c1="1.0"))
    assert ids(route.visits) == ["0.9", "1.0", "c1", "1.0-visit4"]


def test_nothing_is_compared_where_the_plan_does_not_visit_both() -> None:
    plan = [*drive("1.0", "c1", c1="0.8"), *drive("1.0", slot="b")]
    route = route_of(plan)
    assert route.visits == tuple(plan)
    assert not route.stays
    assert not route.comparisons


def test_drives_do_not_mix() -> None:
    route = route_of([*drive("1.0", "c1", c1="1.0"), *drive("1.0", "c1", slot="b", c1="1.0")])
    assert [visit.cell.slot for visit in route.visits] == ["a"] * 3 + ["b"] * 3
    assert len(route.stays) == 8


def test_what_is_stored_takes_the_place_of_two_stations_and_of_every_return() -> None:
    plan = drive("1.0", "c1", c1="1.0")
    route = route_of(plan, stored_baseline=True)
    assert route.visits == tuple(plan)
    assert stations(route) == ["c1-station2", "c1-station3"]
    assert [stay.judges for stay in route.stays] == [False, True]
    assert {stay.order for stay in route.stays} == {
        ("released", "candidate", "candidate", "released")
    }
    came_with_it = route_of(drive("c1", home="c1", c1="1.0"), stored_baseline=True)
    assert came_with_it.stays[0].order[0] == "released", "which need not be visited at all"
    assert came_with_it.comparisons[0][1].firmware == "1.0"


REVISIONS = ("1.0", "1.1", "1.2", "1.3")


@given(
    held=st.dictionaries(st.sampled_from(REVISIONS), st.sampled_from((*REVISIONS, "0.1"))),
    home=st.sampled_from(REVISIONS),
    order=st.permutations(REVISIONS),
    rounds=st.integers(1, 3),
)
def test_whatever_the_matrix_compares(
    held: dict[str, str], home: str, order: list[str], rounds: int
) -> None:
    plan = drive(*order, home=home, **held)
    route = route_of(plan, rounds=rounds)
    first_visits = [visit.cell for visit in route.visits if visit.after is None]
    assert sorted(first_visits, key=str) == sorted((visit.cell for visit in plan), key=str)
    assert route.visits[0].cell == plan[0].cell, "what is on the drive comes first"
    assert [visit.n for visit in route.visits] == [*range(1, len(route.visits) + 1)]
    assert len({visit.id for visit in route.visits}) == len(route.visits)
    assert len({stay.id for stay in route.stays}) == len(route.stays)
    assert all(one.cell != next_.cell for one, next_ in pairwise(route.visits)), "no idle flash"
    place = {visit.id: n for n, visit in enumerate(route.visits)}
    wanted = {each for each, other in held.items() if other in REVISIONS and other != each}
    assert {candidate.firmware for candidate, _ in route.comparisons} == wanted
    assert len(route.stays) == 4 * rounds * len(wanted)
    for start in range(0, len(route.stays), 4):
        four = route.stays[start : start + 4]
        first, second, third, fourth = (place[stay.visit.id] for stay in four)
        assert (second, third, fourth) == (first + 1, first + 1, first + 2), "side by side"
        measured = [Station("d", stay.order[stay.number - 1], (1.0,)) for stay in four]
        assert len(blocks_of(measured)[0]) == 1, "drift cancels"
        for stay in four:
            firmware = stay.order[stay.number - 1]
            cell = stay.candidate.cell if firmware == "candidate" else stay.released
            assert stay.visit.cell == cell, "the drive has what the order says"


def test_a_plan_with_what_is_compared_survives_the_way_to_another_process() -> None:
    plan = tuple(drive("1.0", "c1", c1="1.0"))
    assert visits_from_json(visits_to_json(plan)) == plan
