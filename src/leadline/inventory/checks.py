"""What one entry of a file cannot know of another: names used twice, or not at all."""

from collections.abc import Callable, Iterator

from leadline.inventory.document import Document, Location, Problem, shown


def unique(
    document: Document,
    pattern: tuple[str | int, ...],
    what: str,
    normal: Callable[[str], str] = str,
    *,
    remedy: str = "",
) -> Iterator[Problem]:
    """A problem for each text at ``pattern`` that stands there already.

    ``normal`` gives texts that mean the same thing the same form; ``remedy`` ends the message.
    """
    first: dict[str, Location] = {}
    for where, text in document.texts(*pattern):
        key = normal(text)
        if key in first:
            line = document.line(first[key])
            expected = f"each {what} once; it is given already on line {line}{remedy}"
            yield Problem(where, shown(text), expected)
        elif key:
            first[key] = where


def known(
    document: Document, pattern: tuple[str | int, ...], choices: tuple[str | int, ...], what: str
) -> Iterator[Problem]:
    """A problem for each text at ``pattern`` that is not among those at ``choices``."""
    names = [text for _, text in document.texts(*choices) if text]
    expected = f"{what}: {', '.join(map(shown, names))}" if names else f"{what}; there is none"
    for where, text in document.texts(*pattern):
        if text not in names:
            yield Problem(where, shown(text), expected)
