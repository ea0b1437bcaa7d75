"""What is learned of a rig's outlets, against wirings of which everything is known."""

from collections.abc import Mapping, Sequence
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from leadline.inventory.rewrite import OutletEdit, shown_feeds, with_outlets
from leadline.inventory.rig import Rig, load_rig
from leadline.power.mapping import (
    Finding,
    Observation,
    Place,
    edits,
    estimated_s,
    expected,
    findings,
    next_cut,
    to_cut,
)

SLOTS = ("a", "b", "c")
PDU, SIZE = "p", 5
Wiring = Mapping[str, frozenset[int]]
"""By slot (and host) the outlets of the PDU that feed it."""

RIG_FILE = """\
rig: bench
host: {{reach: local}}
controllers: [{{name: c, driver: ahci}}]
pdus: [{{name: p, family: baytech-rpc3, port: /dev/p, outlets: 5}}]
outlets:{outlets}
drives:
{drives}
"""


def rig_text(feeds: Mapping[int, Sequence[str]]) -> str:
    entries = "".join(
        f"\n  - name: out{number}\n    pdu: p\n    outlet: {number}\n    feeds: {shown_feeds(said)}"
        for number, said in feeds.items()
    )
    drives = "\n".join(
        f"  - {{slot: {slot}, model: M, serial: S-{slot}, firmware: '1', controller: c, "
        "protocol: sata}"
        for slot in SLOTS
    )
    return RIG_FILE.format(outlets=entries or " []", drives=drives)


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return tmp_path_factory.mktemp("rigs")


def rig_of(folder: Path, text: str) -> Rig:
    path = folder / "bench.yaml"
    path.write_text(text)
    return load_rig(path)


def places(*numbers: int) -> tuple[Place, ...]:
    return tuple(Place(PDU, number) for number in numbers)


def dark(wiring: Wiring, cut: Sequence[Place]) -> frozenset[str]:
    """What loses power: whatever has all its supplies cut; no one sees a drive without its host."""
    off = {place.outlet for place in cut}
    gone = frozenset(word for word, fed_by in wiring.items() if fed_by and fed_by <= off)
    return frozenset(["host"]) if "host" in gone else gone


def mapped(rig: Rig, wiring: Wiring, cut: Sequence[Place]) -> list[Observation]:
    seen: list[Observation] = []
    while group := next_cut(rig, cut, seen):
        assert len(seen) < 50, "and ends"
        assert all(each.places != group for each in seen), "nothing is cut twice"
        seen.append(Observation(group, dark(wiring, group)))
    return seen


def by_outlet(found: Sequence[Finding]) -> dict[int, Finding]:
    return {each.place.outlet: each for each in found}


def map_named(
    folder: Path, feeds: Mapping[int, Sequence[str]], wiring: Wiring
) -> tuple[Rig, dict[int, Finding]]:
    rig = rig_of(folder, rig_text(feeds))
    seen = mapped(rig, wiring, places(*feeds))
    return rig, by_outlet(findings(rig, seen, own_machine=False))


def wired(**outlets: int | Sequence[int]) -> Wiring:
    return {
        word: frozenset([fed] if isinstance(fed, int) else fed) for word, fed in outlets.items()
    }


def test_a_file_that_is_right_has_no_problem(folder: Path) -> None:
    feeds = {1: ["host"], 2: ["a"], 3: ["b", "c"]}
    _, found = map_named(folder, feeds, wired(host=1, a=2, b=3, c=3))
    assert [each.problem for each in found.values()] == ["", "", ""]
    assert [sorted(each.feeds) for each in found.values()] == [["host"], ["a"], ["b", "c"]]


def test_two_outlets_swapped_are_named_with_their_lines_and_exchanged(folder: Path) -> None:
    feeds = {2: ["a"], 3: ["b"]}
    rig, found = map_named(folder, feeds, wired(a=3, b=2))
    assert found[2].where == f"{rig.path}:9"
    assert found[2].problem == (
        "outlets[out2].feeds: found [a], expected [b]: while outlet 2 of PDU p was off, "
        "b went dark; a had power"
    )
    assert found[3].where == f"{rig.path}:13"
    assert edits(rig, list(found.values())) == (
        OutletEdit(0, "out2", "p", 3, ("a",)),
        OutletEdit(1, "out3", "p", 2, ("b",)),
    )


def test_two_drives_where_the_file_says_one(folder: Path) -> None:
    rig, found = map_named(folder, {2: ["a"]}, wired(a=2, b=2))
    assert "found [a], expected [a, b]: while outlet 2 of PDU p was off, a and b went dark" in (
        found[2].problem
    )
    assert edits(rig, list(found.values())) == (OutletEdit(0, "out2", "p", 2, ("a", "b")),)


def test_one_drive_where_the_file_says_two(folder: Path) -> None:
    _, found = map_named(folder, {2: ["a", "b"]}, wired(a=2))
    assert found[2].problem.endswith(
        "found [a, b], expected [a]: while outlet 2 of PDU p was off, a went dark; b had power"
    )


def test_none_where_the_file_says_one_and_nothing_is_written_for_that(folder: Path) -> None:
    rig, found = map_named(folder, {2: ["a"], 3: ["b"]}, wired(b=3))
    assert "found [a], expected what it feeds: while outlet 2 of PDU p was off" in found[2].problem
    assert "nothing known went dark; a had power" in found[2].problem
    assert found[3].problem == ""
    assert edits(rig, list(found.values())) is None


def test_the_host_where_the_file_says_a_drive(folder: Path) -> None:
    rig, found = map_named(folder, {1: ["a"], 2: ["host"]}, wired(host=1, a=2))
    assert "expected host: while outlet 1 of PDU p was off, the host went dark" in found[1].problem
    assert "had power" not in found[1].problem, "for nobody could see the drives then"
    assert edits(rig, list(found.values())) == (
        OutletEdit(0, "out1", "p", 2, ("a",)),
        OutletEdit(1, "out2", "p", 1, ("host",)),
    )


def test_outlets_without_an_entry_are_for_all_outlets_and_get_one(folder: Path) -> None:
    rig = rig_of(folder, rig_text({2: ["a"]}))
    on = places(1, 2, 3, 4)
    assert to_cut(rig, on, all_outlets=False, own_machine=False) == places(2)
    cut = to_cut(rig, on, all_outlets=True, own_machine=False)
    assert cut == places(2, 1, 3, 4), "5 is off"
    seen = mapped(rig, wired(a=3, b=4, c=4), cut)
    found = findings(rig, seen, own_machine=False)
    lost, _, three, four = found
    assert "nothing known" in lost.problem
    assert (
        three.problem
        == "outlets: found no entry for outlet 3 of PDU p, expected one that feeds [a]"
    )
    assert four.where == f"{rig.path}:5"
    assert edits(rig, found) == (
        OutletEdit(0, "out2", "p", 3, ("a",)),
        OutletEdit(None, "p-4", "p", 4, ("b", "c")),
    )


def test_a_new_entry_has_a_name_that_no_other_has(folder: Path) -> None:
    text = rig_text({2: ["a"]}).replace("out2", "b").replace("slot: c", "slot: p-4")
    rig = rig_of(folder, text)
    cut = to_cut(rig, places(1, 2, 3, 4), all_outlets=True, own_machine=False)
    seen = mapped(rig, {**wired(a=2, b=1), "p-4": frozenset([3])}, cut)
    seen[-1] = Observation(seen[-1].places, frozenset(["a", "b"]))
    made = edits(rig, findings(rig, seen, own_machine=False))
    assert made
    assert [edit.name for edit in made] == ["p-1", "p-4", "p-4-1"]


def test_the_host_comes_last_and_our_own_machine_never(folder: Path) -> None:
    rig = rig_of(folder, rig_text({1: ["host"], 2: ["a"]}))
    assert to_cut(rig, places(1, 2), all_outlets=False, own_machine=False) == places(2, 1)
    cut = to_cut(rig, places(1, 2), all_outlets=False, own_machine=True)
    assert cut == places(2)
    host, _ = findings(rig, mapped(rig, wired(a=2), cut), own_machine=True)
    assert host.where == f"{rig.path}:9"
    assert "it feeds the machine that Leadline runs on, and was not cut" in host.problem


@pytest.mark.parametrize("supplies", [(2, 3), (1, 2, 3)])
def test_supplies_that_back_one_another_are_proven_together(
    folder: Path, supplies: tuple[int, ...]
) -> None:
    feeds = {number: ["a"] for number in supplies}
    rig, found = map_named(folder, feeds, wired(a=supplies))
    assert [each.problem for each in found.values()] == [""] * len(supplies)
    assert expected(rig, places(*supplies)) == {"a"}
    assert expected(rig, places(supplies[0])) == frozenset(), "the other one holds it"
    _, found = map_named(folder, feeds, wired(a=supplies[:-1]))
    assert found[supplies[0]].problem == "" or len(supplies) == 2
    assert "nothing known" in found[supplies[-1]].problem


def test_a_second_supply_is_not_cut_where_the_first_feeds_the_host(folder: Path) -> None:
    rig = rig_of(folder, rig_text({1: ["a"], 2: ["a"]}))
    seen = mapped(rig, wired(host=1), places(1, 2))
    assert [each.places for each in seen] == [places(1), places(2)]


def test_a_disk_that_the_file_does_not_have_is_named_though_the_rest_is_right(folder: Path) -> None:
    rig = rig_of(folder, rig_text({2: ["a"]}))
    seen = [Observation(places(2), frozenset("a"), ("DATA 0815",))]
    (found,) = findings(rig, seen, own_machine=False)
    assert "expected nothing besides: while outlet 2 of PDU p was off, DATA 0815 went dark" in (
        found.problem
    )
    assert edits(rig, [found]) == ()


def test_a_host_that_only_loses_contact_is_no_host_without_power(folder: Path) -> None:
    rig = rig_of(folder, rig_text({2: ["a"]}))
    (found,) = findings(rig, [Observation(places(2), frozenset(), unseen=True)], own_machine=False)
    assert "contact with the host was lost, though it kept its power" in found.problem
    assert edits(rig, [found]) is None


def test_the_time_it_takes_counts_every_cut(folder: Path) -> None:
    single = estimated_s(rig_of(folder, rig_text({1: ["a"]})), places(1))
    assert estimated_s(rig_of(folder, rig_text({1: ["a"], 2: ["b"]})), places(1, 2)) == 2 * single
    assert estimated_s(rig_of(folder, rig_text({1: ["a"], 2: ["a"]})), places(1, 2)) == 3 * single


NUMBERS = st.integers(1, SIZE)
FEEDS = st.one_of(
    st.just(("host",)), st.lists(st.sampled_from(SLOTS), min_size=1, max_size=3, unique=True)
)
FILES = st.dictionaries(NUMBERS, FEEDS, min_size=1, max_size=SIZE)
WIRINGS = st.fixed_dictionaries(
    {word: st.frozensets(NUMBERS, max_size=3) for word in ("host", *SLOTS)}
)


def truth(wiring: Wiring, number: int) -> frozenset[str]:
    return frozenset(word for word, fed_by in wiring.items() if number in fed_by)


@settings(max_examples=300, deadline=None)
@given(feeds=FILES)
def test_whatever_the_file_says_it_is_confirmed_where_it_is_so(
    folder: Path, feeds: dict[int, list[str]]
) -> None:
    wiring = {
        word: frozenset(n for n, said in feeds.items() if word in said) for word in ("host", *SLOTS)
    }
    _, found = map_named(folder, feeds, wiring)
    assert not any(each.problem for each in found.values())


@settings(max_examples=500, deadline=None)
@given(feeds=FILES, wiring=WIRINGS)
def test_nothing_is_confirmed_that_is_not_so(
    folder: Path, feeds: dict[int, list[str]], wiring: Wiring
) -> None:
    _, found = map_named(folder, feeds, wiring)
    for number, said in feeds.items():
        if found[number].problem:
            continue
        true = truth(wiring, number)
        assert set(said) <= true, "what the file says is so"
        for word in true - set(said):
            assert len(wiring[word]) > 1 or "host" in said, "only a second supply hides it"


@settings(max_examples=300, deadline=None)
@given(feeds=FILES, wiring=WIRINGS)
def test_a_file_that_was_mended_is_right(
    folder: Path, feeds: dict[int, list[str]], wiring: Wiring
) -> None:
    wiring = {word: frozenset(sorted(fed_by)[:1]) for word, fed_by in wiring.items()}
    rig = rig_of(folder, rig_text(feeds))
    every = places(*range(1, SIZE + 1))
    cut = to_cut(rig, every, all_outlets=True, own_machine=False)
    seen = mapped(rig, wiring, cut)
    wanted = edits(rig, findings(rig, seen, own_machine=False))
    if wanted is None:
        return
    mended = rig_of(folder, with_outlets(rig_text(feeds), wanted))
    again = mapped(mended, wiring, to_cut(mended, every, all_outlets=True, own_machine=False))
    assert not any(each.problem for each in findings(mended, again, own_machine=False))
    assert {entry.name for entry in mended.outlets} >= {entry.name for entry in rig.outlets}
