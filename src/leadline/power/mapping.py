"""What the outlets of a rig feed: which to cut next, what that taught, where the rig file is wrong.

Pure decisions; `power.blackout` does the cutting.  What an outlet feeds is a set of words:
slots of the rig file, and `host`, which no slot may be called.

Each outlet is cut alone.  One of several that feed the same thing (a dual supply) takes
nothing down so: these are cut together, too, and all but one of them together, which what
they feed survives by that one.
"""

from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import count

from leadline.inventory.rewrite import HOST, OutletEdit, shown_feeds
from leadline.inventory.rig import OutletSpec, Rig

PDU_S = 5.0  # off and on with their readback, and the rescans
Words = frozenset[str]


@dataclass(frozen=True, order=True)
class Place:
    """One outlet, by its PDU's name in the rig file and its number there."""

    pdu: str
    outlet: int

    def __str__(self) -> str:
        return f"outlet {self.outlet} of PDU {self.pdu}"


@dataclass(frozen=True)
class Observation:
    """What was dark while these outlets were off together.

    `strangers` are disks that the rig file does not have, by model and serial number.
    `unseen`: contact with the host was lost and its power was not, so nobody looked.  Not
    `verified`: a PDU cannot tell whether it was off.
    """

    places: tuple[Place, ...]
    dark: Words
    strangers: tuple[str, ...] = ()
    unseen: bool = False
    verified: bool = True
    seconds: float = 0.0


@dataclass(frozen=True)
class Finding:
    """One outlet: what the rig file says that it feeds (None: it has no entry), what was seen.

    `where` is the line of the rig file, `problem` what is wrong there; none: the file is right.
    """

    place: Place
    entry: OutletSpec | None
    says: Words | None
    feeds: Words
    where: str
    problem: str


def place_of(outlet: OutletSpec) -> Place:
    """Where an entry of the rig file says that its outlet is."""
    return Place(outlet.pdu, outlet.outlet)


def said(outlet: OutletSpec) -> Words:
    """What the rig file says that an outlet feeds."""
    return frozenset(_words(outlet))


def to_cut(
    rig: Rig, on: Collection[Place], *, all_outlets: bool, own_machine: bool
) -> tuple[Place, ...]:
    """The outlets to cut, each alone, in this order; `on` are all that are on, of all PDUs.

    Those of the host come last, for that takes longest; of the machine that we run on,
    never.  Those without an entry in the rig file are for `all_outlets`.
    """
    of_drives = [place_of(entry) for entry in rig.outlets if entry.feeds != HOST]
    of_host = [place_of(entry) for entry in rig.host_outlets()]
    others = sorted({*on} - {*of_drives, *of_host}) if all_outlets else []
    return (*of_drives, *others, *([] if own_machine else of_host))


def shared(rig: Rig) -> dict[str, tuple[Place, ...]]:
    """What several outlets feed by the rig file, each with its outlets."""
    by_word = {drive.slot: rig.outlets_of(drive) for drive in rig.drives}
    by_word = {slot: own for slot, own in by_word.items() if own != rig.host_outlets()}
    by_word[HOST] = rig.host_outlets()
    return {
        word: tuple(place_of(outlet) for outlet in outlets)
        for word, outlets in by_word.items()
        if len(outlets) > 1
    }


def next_cut(
    rig: Rig, places: Sequence[Place], seen: Sequence[Observation]
) -> tuple[Place, ...] | None:
    """The outlets to cut off next; None when there is nothing left to learn."""
    dark = _dark(seen)
    for place in places:
        if frozenset([place]) not in dark:
            return (place,)
    for word, group in shared(rig).items():
        if not set(group) <= set(places) or _falls_alone(word, group, dark):
            continue
        whole = frozenset(group)
        if whole not in dark:
            return group
        for place in group if word in dark[whole] else ():
            if whole - {place} not in dark:
                return tuple(sorted(whole - {place}))
    return None


def expected(rig: Rig, places: Sequence[Place]) -> Words:
    """What goes dark when these are cut, if the rig file is right."""
    spared = {word for word, group in shared(rig).items() if not set(group) <= set(places)}
    entries = [entry for entry in rig.outlets if place_of(entry) in places]
    return frozenset[str]().union(*(said(entry) for entry in entries)) - spared


def learned(rig: Rig, seen: Sequence[Observation]) -> dict[Place, Words]:
    """What each outlet that was cut alone feeds."""
    dark = _dark(seen)
    feeds = {place: set(words) for cut, words in dark.items() if len(cut) == 1 for place in cut}
    for word, group in shared(rig).items():
        whole = frozenset(group)
        for place in group if word in dark.get(whole, ()) else ():
            if word not in dark.get(whole - {place}, (word,)):  # that one kept it alive
                feeds[place].add(word)
    return {place: frozenset(words) for place, words in feeds.items()}


def findings(rig: Rig, seen: Sequence[Observation], *, own_machine: bool) -> tuple[Finding, ...]:
    """Each outlet that was cut, and the host's own that must not be, against the rig file."""
    feeds = learned(rig, seen)
    found = []
    for index, entry in enumerate(rig.outlets):
        place, where = place_of(entry), rig.where("outlets", index, "feeds")
        if place in feeds:
            problem = _problem(rig, entry, feeds[place], seen)
            found.append(Finding(place, entry, said(entry), feeds[place], where, problem))
        elif own_machine and entry.feeds == HOST:
            found.append(Finding(place, entry, said(entry), said(entry), where, _own(entry)))
    for place in sorted(feeds.keys() - {place_of(entry) for entry in rig.outlets}):
        problem = _without_entry(rig, place, feeds[place], seen)
        found.append(Finding(place, None, None, feeds[place], rig.where("outlets"), problem))
    return tuple(found)


def edits(rig: Rig, found: Sequence[Finding]) -> tuple[OutletEdit, ...] | None:
    """How the rig file's entries become right; None when what was learned is no whole.

    An entry that names what another outlet feeds moves there, for its name tells of what
    it feeds; one whose words no outlet feeds gets those of its own outlet; an outlet
    without an entry gets one.  No entry is taken away: an outlet that fed nothing may be
    cabled badly, so None says that a person has to look.
    """
    wrong = [each for each in found if each.entry and each.says != each.feeds]
    right = {each.place for each in found if each.says == each.feeds}
    free = {each.place: each.feeds for each in found if each.feeds and each.place not in right}
    made: list[OutletEdit] = []
    staying = []
    for each in wrong:
        place = next((place for place, feeds in free.items() if feeds == each.says), None)
        if place is None:
            staying.append(each)
        else:
            made.append(_moved(rig, each, place, free.pop(place)))
    for each in staying:
        if each.place not in free:
            return None
        made.append(_moved(rig, each, each.place, free.pop(each.place)))
    taken = {entry.name for entry in rig.outlets}
    for place, feeds in free.items():
        name = _free_name(place, feeds, taken)
        taken.add(name)
        made.append(OutletEdit(None, name, place.pdu, place.outlet, _in_order(rig, feeds)))
    return tuple(made)


def estimated_s(rig: Rig, places: Sequence[Place]) -> float:
    """How long the cuts take when every drive is ready at once and no host boots."""
    groups = {group for group in shared(rig).values() if set(group) <= set(places)}
    cuts = len(places) + sum(1 if len(group) == 2 else 1 + len(group) for group in groups)
    gaps = sum(drive.spin_up_gap_s for drive in rig.drives)
    return cuts * (off_s(rig) + gaps + PDU_S)


def off_s(rig: Rig) -> float:
    """How long each cut lasts: whichever drive loses power is to be without by then."""
    return max(drive.off_s for drive in rig.drives)


def _dark(seen: Sequence[Observation]) -> dict[frozenset[Place], Words]:
    return {frozenset(each.places): each.dark for each in seen}


def _falls_alone(
    word: str, group: Collection[Place], dark: Mapping[frozenset[Place], Words]
) -> bool:
    """Whether one of the outlets took it down by itself, or the whole host."""
    return any({word, HOST} & dark[frozenset([place])] for place in group)


def _problem(rig: Rig, entry: OutletSpec, feeds: Words, seen: Sequence[Observation]) -> str:
    says, place = said(entry), place_of(entry)
    found = f"outlets[{entry.name}].feeds: found {shown_feeds(_words(entry))}"
    off, strangers = f"while {place} was off{_unverified(place, seen)}", _strangers(place, seen)
    if _unseen(place, seen):
        return f"{found}, and {off} {_UNSEEN}"
    if feeds == says:
        return f"{found}, expected nothing besides: {off}, {strangers}" if strangers else ""
    stayed = "" if HOST in feeds else _listed(says - feeds)
    tail = f"; {stayed} had power" if stayed else ""
    if not feeds:
        dark = strangers or "nothing known went dark"
        return f"{found}, expected what it feeds: {off}, {dark}{tail}; {_NOTHING}"
    dark = " and ".join(filter(None, [f"{_listed(feeds)} went dark", strangers]))
    return f"{found}, expected {_shown(rig, feeds)}: {off}, {dark}{tail}"


_NOTHING = "is that wired to this outlet, and has it no second supply that the file does not name?"
_UNSEEN = (
    "contact with the host was lost, though it kept its power: something between it and here "
    "hangs on that outlet"
)


def _without_entry(rig: Rig, place: Place, feeds: Words, seen: Sequence[Observation]) -> str:
    found, strangers = f"outlets: found no entry for {place}", _strangers(place, seen)
    if _unseen(place, seen):
        return f"{found}, and while it was off {_UNSEEN}"
    if feeds:
        expected_one = f"{found}, expected one that feeds {_shown(rig, feeds)}"
        return "; ".join(filter(None, [expected_one, strangers]))
    return f"{found}: while it was off, {strangers}" if strangers else ""


def _own(entry: OutletSpec) -> str:
    return (
        f"outlets[{entry.name}].feeds: found host, expected the host of another machine: it feeds "
        "the machine that Leadline runs on, and was not cut; steer the rig from another machine"
    )


def _strangers(place: Place, seen: Sequence[Observation]) -> str:
    names = {name for each in seen if place in each.places for name in each.strangers}
    return f"{_listed(names)} went dark, which the rig file does not have" if names else ""


def _unseen(place: Place, seen: Sequence[Observation]) -> bool:
    return any(each.unseen for each in seen if each.places == (place,))


def _unverified(place: Place, seen: Sequence[Observation]) -> str:
    verified = all(each.verified for each in seen if place in each.places)
    return "" if verified else " (unverified: its PDU cannot tell)"


def _listed(words: Collection[str]) -> str:
    *first, last = sorted(words) or [""]
    last = "the host" if last == HOST else last
    return f"{', '.join(first)} and {last}" if first else last


def _in_order(rig: Rig, feeds: Words) -> tuple[str, ...]:
    return (HOST,) if HOST in feeds else tuple(d.slot for d in rig.drives if d.slot in feeds)


def _shown(rig: Rig, feeds: Words) -> str:
    return shown_feeds(_in_order(rig, feeds))


def _words(entry: OutletSpec) -> tuple[str, ...]:
    return (HOST,) if entry.feeds == HOST else tuple(entry.feeds)


def _moved(rig: Rig, each: Finding, place: Place, feeds: Words) -> OutletEdit:
    entry = each.entry
    assert entry is not None
    words = _words(entry) if feeds == each.says else _in_order(rig, feeds)
    return OutletEdit(rig.outlets.index(entry), entry.name, place.pdu, place.outlet, words)


def _free_name(place: Place, feeds: Words, taken: Collection[str]) -> str:
    """What it feeds, where that is one thing; else its place."""
    return next(name for name in _names(place, feeds) if name not in taken)


def _names(place: Place, feeds: Words) -> Iterator[str]:
    if len(feeds) == 1:
        yield from feeds
    for number in count():
        tail = f"-{place.outlet}" + (f"-{number}" if number else "")
        yield place.pdu[: 40 - len(tail)] + tail
