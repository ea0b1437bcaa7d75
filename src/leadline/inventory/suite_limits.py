"""Which limits the claims of the suite have, and what cannot be one of them.

A claim of somebody else's may have any: a test may hold no more than 0 errors against it.
"""

import math
import re
from collections.abc import Iterator
from typing import Literal

from leadline.inventory.document import Document, Location, Problem, shown

Side = Literal["at_least", "at_most"]
SIDES: dict[str, Side] = {
    "depth_8_over_depth_1": "at_least",
    "drives_over_linear": "at_least",
    "few_threads_ncq_on_over_off": "at_least",
    "multitasking_gain": "at_least",
    "ncq_off_over_on": "at_most",
    "random_mix_depth_8_over_depth_1": "at_least",
    "random_mix_ncq_off_over_on": "at_most",
    "random_write_depth_8_over_depth_1": "at_least",
    "read_mb_per_s": "at_least",
    "ready_s": "at_most",
    "refill_16_gb_s": "at_most",
    "regression": "at_most",
    "streams_ncq_on_over_off": "at_least",
    "streams_over_linear": "at_least",
    "threads_ncq_on_over_off": "at_least",
}
"""The side that the suite's test asks for: `expected.Expected` has a property of each."""
SHARES = ("multitasking_gain", "regression")
DEPTH_RATIO = re.compile(r"(?P<load>[a-z_]*?)depth_(?P<top>\d+)_over_depth_(?P<bottom>\d+)")
"""A claim about the rates at two depths, which `leadline judge` knows by its name."""


def limit_problems(document: Document, limits: Location) -> Iterator[Problem]:
    """What is wrong with one limit, at a location that ends in its claim, and on other kernels."""
    claim = str(limits[-1])
    for at in (limits, *document.spread(*limits, "kernels", "*")):
        for side in ("at_least", "at_most"):
            text = document.get((*at, side))
            if not isinstance(text, str) or not _is_number(text):
                continue  # the model says so
            if expected := _expected(claim, side, float(text)):
                yield Problem((*at, side), shown(text), expected)


def _expected(claim: str, side: str, value: float) -> str:
    """What a bound should be instead; "" where it is one."""
    asked = SIDES.get(claim)
    if asked is not None and side != asked:
        return (
            f"{asked} alone, for the test of {claim} asks for no other; a test that asks for "
            f"{side} has a claim of its own"
        )
    if claim in SHARES and not 0.0 < value < 1.0:
        return "a share, above 0 and below 1: 0.03 for 3 %"
    if value <= 0.0 and (asked or DEPTH_RATIO.fullmatch(claim)):
        return "a number above 0"
    return ""


def _is_number(text: str) -> bool:
    try:
        return math.isfinite(float(text))
    except ValueError:
        return False
