"""Kernels that a matrix names and that no machine can run, by the form of their release.

``KERNELVERSION`` of Linux's Makefile is VERSION.PATCHLEVEL.SUBLEVEL and what a build adds to it, so
that ``uname -r`` never prints two numbers alone, nor a word before them.  Whether a release exists
is not known here: only what could be none is told.
"""

import re
from collections.abc import Iterator, Sequence
from difflib import get_close_matches

from leadline.inventory.document import Document, Location, Problem, shown
from leadline.inventory.globs import is_glob

_RELEASE = re.compile(r"\d+\.\d+\.\d.*")
_BEGINS_ONE = re.compile(r"(\d+(\.(\d+(\.(\d.*)?)?)?)?)?")
_ISSUES = (("known_issues", "*"), ("models", "*", "firmware", "*", "known_issues", "*"))


def kernel_problems(document: Document, limits: Sequence[Location]) -> Iterator[Problem]:
    """Kernels of known issues, and of the limits at these locations, that are no release's name
    and no glob that fits one: what they say would never hold."""
    patterns = [*_ISSUES, *((*at, "kernels", "*") for at in limits)]
    kernels = [each for pattern in patterns for each in document.texts(*pattern, "kernel")]
    right = [text for _, text in kernels if _may_be(text)]
    for at, text in kernels:
        if text and not _may_be(text):
            form = "a kernel's release as uname -r prints it, or a glob that fits one"
            yield Problem(
                at, shown(text), f"{form}: {shown(_meant(text, right))}; no kernel has it"
            )


def _may_be(text: str) -> bool:
    if is_glob(text):
        return _BEGINS_ONE.fullmatch(re.split(r"[*?]", text, maxsplit=1)[0]) is not None
    return _RELEASE.fullmatch(text) is not None


def _meant(text: str, right: Sequence[str]) -> str:
    """The two numbers that it has, as a glob; else the nearest that the matrix has."""
    if numbers := re.search(r"\d+\.\d+(?!\d)", text):
        return f"{numbers[0]}.*"
    near = get_close_matches(text, right, 1)
    return near[0] if near else "6.1.*"
