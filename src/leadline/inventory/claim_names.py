"""Claims that a matrix names and that no test settles: a letter is soon left out.

A known issue of such a claim excuses nothing, and a limit of one keeps the test that was meant
from being collected; neither fails, so that nobody would know.  A test of somebody else's may have
any name, and its file is not looked for: what is said here are warnings.
"""

import ast
from collections.abc import Iterable, Iterator, Mapping, Sequence
from difflib import get_close_matches
from functools import cache

from leadline.inventory.document import Location, shown, some
from leadline.inventory.fields import packaged
from leadline.inventory.issues import placed
from leadline.inventory.matrix import Matrix
from leadline.inventory.suite_limits import DEPTH_RATIO, SIDES

_SLIP = 0.85
"""How much alike two names of limits are (difflib's ratio) for one to be a slip of the other; those
that a suite of one's own has are less so."""


@cache
def suite_claims() -> Mapping[str, str]:
    """Each claim that a test of the suite settles, and the limit that it has, by its files alone.

    A test without a mark settles the claim of its own name.
    """
    found: dict[str, str] = {}
    for path in sorted(packaged("suite").glob("test_*.py")):
        for test in ast.parse(path.read_text(encoding="utf-8")).body:
            if isinstance(test, ast.FunctionDef) and test.name.startswith("test_"):
                found.update([_claim(test)])
    return found


def _claim(test: ast.FunctionDef) -> tuple[str, str]:
    for mark in test.decorator_list:
        if isinstance(mark, ast.Call) and ast.unparse(mark.func) == "pytest.mark.claim":
            name = str(ast.literal_eval(mark.args[0]))
            other = {key.arg: key.value for key in mark.keywords}.get("limit")
            return name, name if other is None else str(ast.literal_eval(other))
    own = test.name.removeprefix("test_")
    return own, own


def unknown_claims(matrix: Matrix) -> Iterator[str]:
    """A message for each claim of a known issue that no test is known to settle, and each limit
    that no test is known to have: file, line and field, what was found, what may be meant."""
    limits = [(location, str(location[-1])) for location in _limits(matrix)]
    names = [*suite_claims(), *(claim for _, claim in limits if claim not in _shared())]
    for location, issue in placed(matrix):
        if issue.claim not in names:
            expected = _meant_by_issue(issue.claim, names)
            yield (
                f"{matrix.field(*location, 'claim')}: found {shown(issue.claim)}, expected "
                f"{expected}; it excuses nothing: correct it, unless a test of your own settles "
                "that claim"
            )
    for location, claim in limits:
        if meant := _meant_by_limit(claim):
            yield (
                f"{matrix.field(*location)}: found a limit for {shown(claim)}, expected {meant}; "
                "no test of the suite has it: correct it, unless a test of your own does"
            )


def _shared() -> Mapping[str, list[str]]:
    """Limits that are no claim themselves, and the claims of the suite that have them."""
    claims = suite_claims()
    shared: dict[str, list[str]] = {}
    for claim, limit in claims.items():
        if limit not in claims:
            shared.setdefault(limit, []).append(claim)
    return shared


def _meant_by_issue(claim: str, names: Sequence[str]) -> str:
    if having := _shared().get(claim):
        return f"one of the claims that have this limit: {some(having)}"
    near = get_close_matches(claim, names, 1)
    such = f", such as {shown(near[0])}" if near else ""
    return f"a claim of the suite, or one with a limit here{such}"


def _meant_by_limit(claim: str) -> str:
    """What a limit is a slip of; "" where it may be what is meant."""
    if claim in SIDES or DEPTH_RATIO.fullmatch(claim):
        return ""
    limit = suite_claims().get(claim, claim)
    if limit != claim:
        return f"{shown(limit)}, which is the limit of that claim"
    near = get_close_matches(claim, SIDES, 1, _SLIP)
    return shown(near[0]) if near else ""


def _limits(matrix: Matrix) -> Iterator[Location]:
    """Where each limit stands."""
    levels: list[tuple[Location, Iterable[str]]] = [
        (("classes", name), limits) for name, limits in matrix.limits_by_class.items()
    ]
    for n, kind in enumerate(matrix.controllers):
        for name, limits in kind.limits_by_class.items():
            levels.append((("controllers", n, "classes", name), limits))
    for n, model in enumerate(matrix.models):
        levels.append((("models", n, "limits"), model.limits))
        for k, firmware in enumerate(model.firmware):
            levels.append((("models", n, "firmware", k, "limits"), firmware.limits))
    for place, claims in levels:
        yield from ((*place, claim) for claim in claims)
