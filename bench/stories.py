"""The five stories that the suite grew from, told by virtual drives that are built like theirs.

`./run bench stories [1..5 ...] [--seed N] [--json]`.  A story holds when the suite concludes of
these drives what its author concluded of his; the exit code says whether all do.
"""

import argparse
import sys
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from bench import fault_size, fault_twins, knee, multitasking, queued_streams

GAINS = 9
"""So many loads has the story of the desktop."""
TWINS = (
    "NCQ was off on one of two machines, writes agreed; a cache is refilled 5 times as fast with it"
)
DESKTOP = "two tasks at once gain about 9 % by NCQ on average, and one of nine loses on a drive"
Tell = Callable[[int | None], Mapping[str, Any]]


@dataclass(frozen=True)
class Story:
    """Its title, about how long it takes, and what tells it, given a seed or none.

    That returns the figures, with `concluded`, `found` (in words), and `within_limits`.
    """

    title: str
    takes: str
    tell: Tell


def of_twins(found: Mapping[str, Any]) -> dict[str, Any]:
    """The figures of `fault_twins.measure`, as a story has them."""
    ratio = found["refill_off_over_on"]
    times = "an unknown number of" if ratio is None else f"{ratio:g}"
    text = f"a refill takes {times} times as long without NCQ; {_listed(found)}"
    return {"concluded": TWINS, "found": text, **found}


def of_desktop(found: Mapping[str, Any]) -> dict[str, Any]:
    """The figures of `multitasking.measure`, as a story has them: nine gains a drive."""
    drives: Mapping[str, Mapping[str, Any]] = found["drives"]
    short = [which for which, gains in drives.items() if len(_gains(gains)) != GAINS]
    text = "; ".join(
        f"{which}: {_gain(gains['gain'])} over all"
        + "".join(f", {name} {_gain(gain)}" for name, gain in _gains(gains).items())
        for which, gains in drives.items()
    )
    within = bool(found["within_limits"]) and bool(drives) and not short
    return {
        "concluded": DESKTOP,
        "found": text,
        **found,
        "without_nine_gains": short,
        "within_limits": within,
    }


def _gains(gains: Mapping[str, Any]) -> dict[str, Mapping[str, Any]]:
    """By trace, those that have an interval."""
    return {
        name: each["gain"]
        for name, each in gains["traces"].items()
        if each["gain"] and {"low", "high"} <= each["gain"].keys()
    }


def _gain(gain: Mapping[str, Any] | None) -> str:
    if not gain:
        return "no gain measured"
    ends = f" [{gain['low']:+.1%}, {gain['high']:+.1%}]" if "low" in gain else ""
    return f"{gain['mean']:+.1%}{ends}"


def _listed(found: Mapping[str, Any]) -> str:
    """What is not as it must be."""
    return "; ".join(found.get("wrong", ())) or "all else is as it must be"


STORIES: Mapping[int, Story] = {
    1: Story("the depth sweep", "half an hour", knee.measure),
    2: Story("threads and streams", "five minutes", lambda _: queued_streams.measure()),
    3: Story("the twins", "a quarter of an hour", lambda _: of_twins(fault_twins.measure())),
    4: Story("the desktop", "a quarter of an hour", lambda _: of_desktop(multitasking.measure())),
    5: Story("the large requests", "a minute", lambda _: fault_size.measure()),
}


def measure(words: Sequence[str] = ()) -> dict[str, object]:
    """Each story that `words` name, or all: told in words on stderr, unless with --json."""
    asked = _arguments(words)
    told: dict[str, dict[str, Any]] = {}
    for number in asked.story or STORIES:
        begun = time.monotonic()
        figures = dict(STORIES[number].tell(asked.seed))
        figures["seconds"] = round(time.monotonic() - begun, 1)
        told[str(number)] = figures
        if not asked.json:
            print(in_words(number, figures), file=sys.stderr, flush=True)
    return {
        "seed": asked.seed,
        "stories": told,
        "within_limits": all(each["within_limits"] for each in told.values()),
    }


def in_words(number: int, figures: Mapping[str, Any]) -> str:
    """What was concluded, what was found, and whether that is the same."""
    within = "yes" if figures["within_limits"] else "no"
    wrong = "".join(f"\n    {said}" for said in figures.get("wrong", ()))
    return (
        f"story {number}, {STORIES[number].title} ({figures['seconds']:.0f} s)\n"
        f"  concluded: {figures['concluded']}\n"
        f"  found: {figures['found']}\n"
        f"  within limits: {within}{wrong}"
    )


def _arguments(words: Sequence[str]) -> argparse.Namespace:
    listing = "\n".join(f"  {n}  {each.title} ({each.takes})" for n, each in STORIES.items())
    parser = argparse.ArgumentParser(
        prog="./run bench stories",
        description="The stories that the suite grew from, told by drives built like theirs.",
        epilog=f"stories:\n{listing}\n\nexample: ./run bench stories 2 5",
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    numbers = f"{min(STORIES)} to {max(STORIES)}"
    parser.add_argument("story", nargs="*", type=int, help=f"some of {numbers} (default: all)")
    parser.add_argument(
        "--seed", type=int, default=None, help="where story 1 has its dip (default: at 19)"
    )
    parser.add_argument(
        "--json", action="store_true", help="the JSON object alone, no words beside"
    )
    asked = parser.parse_args(words)
    unknown = [str(number) for number in asked.story if number not in STORIES]
    if unknown:
        parser.error(f"no story {', '.join(unknown)}: they are {numbers}")
    return asked
