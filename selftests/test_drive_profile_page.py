"""docs/reference/drive-profile.md against the profile that Leadline reads."""

import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any, get_args

import pytest
from pydantic.fields import FieldInfo

from leadline.inventory.fields import Entry
from leadline.virtual.profile import Profile

PAGE = Path(__file__).parent.parent / "docs" / "reference" / "drive-profile.md"


def entries(name: str, model: type[Entry]) -> Iterator[tuple[str, type[Entry]]]:
    """A mapping of the profile and those within it, by the heading that each has on the page."""
    yield name or "Top level", model
    for field, info in model.model_fields.items():
        for inner in mappings(info.annotation):
            yield from entries(f"{name}.{field}" if name else field, inner)


def mappings(annotation: Any) -> Iterator[type[Entry]]:
    if isinstance(annotation, type) and issubclass(annotation, Entry):
        yield annotation
    for part in get_args(annotation):
        yield from mappings(part)


def default(info: FieldInfo) -> str:
    """As the page writes it."""
    if info.is_required():
        return "required"
    if info.default is None or info.default == () or isinstance(info.default, Entry):
        return "none"
    if isinstance(info.default, bool):
        return str(info.default).lower()
    if isinstance(info.default, float):
        return f"{info.default:g}"
    return str(info.default)


def tables() -> dict[str, list[tuple[str, str]]]:
    """The fields and defaults below each heading of the page."""
    found: dict[str, list[tuple[str, str]]] = {}
    for section in PAGE.read_text().split("\n## ")[1:]:
        rows = re.findall(r"^\| `(\w+)` \|[^|]*\| ([^|]+) \|", section, re.MULTILINE)
        found[section.splitlines()[0]] = rows
    return found


@pytest.mark.parametrize(("heading", "model"), list(entries("", Profile)))
def test_the_page_has_every_field_with_its_default(heading: str, model: type[Entry]) -> None:
    assert tables()[heading] == [(name, default(info)) for name, info in model.model_fields.items()]


def test_the_page_has_nothing_else() -> None:
    assert set(tables()) == {heading for heading, _ in entries("", Profile)}
