"""Names with ``*`` (any text, or none) and ``?`` (any one character), as in a shell.

Brackets stand for themselves: a drive may have them in its name.
"""

import re
from collections import deque
from collections.abc import Iterator, Sequence
from fnmatch import translate
from functools import lru_cache

ANY = "*"


def is_glob(text: str) -> bool:
    """Whether ``text`` stands for more than itself."""
    return "*" in text or "?" in text


def fits(glob: str, text: str) -> bool:
    """Whether ``text`` is one of those that ``glob`` stands for; case matters."""
    if not is_glob(glob):
        return glob == text
    return glob == ANY or _pattern(glob).match(text) is not None


@lru_cache(maxsize=4096)
def _pattern(glob: str) -> re.Pattern[str]:
    return re.compile(translate(glob.replace("[", "[[]")))


def meant(glob: str, names: Sequence[str]) -> list[int]:
    """Where in `names`, which may be globs themselves, stands what `glob` can be of.

    A name that stands there as it is goes before every glob that it fits, too.
    """
    if not is_glob(glob) and glob in names:
        return [names.index(glob)]
    return [n for n, name in enumerate(names) if overlap(glob, name)]


def overlap(one: str, other: str) -> bool:
    """Whether there is a text that fits both."""
    first, second = _beginning(one), _beginning(other)
    if not (first.startswith(second) or second.startswith(first)):
        return False  # most do not: there may be thousands of pairs
    if is_glob(one) and is_glob(other):
        return common(one, other) is not None
    return fits(one, other) or fits(other, one)


@lru_cache(maxsize=4096)
def _beginning(glob: str) -> str:
    """What each text that fits begins with."""
    return re.split(r"[*?]", glob, maxsplit=1)[0]


def common(one: str, other: str) -> str | None:
    """A text that fits both globs, with ``x`` where any character would; None if none does."""
    todo = deque([(0, 0, "")])
    seen = {(0, 0)}
    while todo:
        m, n, text = todo.popleft()
        if m == len(one) and n == len(other):
            return text
        for used_one, used_other, character in _steps(one[m : m + 1], other[n : n + 1]):
            state = (m + used_one, n + used_other)
            if state not in seen:
                seen.add(state)
                todo.append((*state, text + character))
    return None


def _steps(one: str, other: str) -> Iterator[tuple[int, int, str]]:
    """How much of each glob the next character of a common text uses up, and that character."""
    if one == "*":
        yield 1, 0, ""
        if other not in ("", "*"):
            yield 0, 1, _example(other)
    if other == "*":
        yield 0, 1, ""
        if one not in ("", "*"):
            yield 1, 0, _example(one)
    if "*" not in (one, other) and one and other and (one == other or "?" in (one, other)):
        yield 1, 1, _example(other if one == "?" else one)


def _example(character: str) -> str:
    return "x" if character == "?" else character
