"""Reading a YAML file so that every error can name its line.

The file is parsed once, and every scalar stays text: only the
models know that a serial number ``00123456`` is not a number and a firmware
``0007`` not 7.  What is wrong with a file is said all at once, as
``file:line: field: found this, expected that``.
"""

import json
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import TypeAlias

import yaml

from leadline.errors import Misuse

Location = tuple[str | int, ...]
"""Keys and list positions from the top of a file down to a value."""

Marks: TypeAlias = "int | tuple[int, dict[str, Marks] | list[Marks]]"
"""The line of a value, and with it, for a mapping or a list, those of what is in it."""

LARGEST = 16 << 20
"""Bytes of a file: a matrix of ten thousand firmware with their hashes is 3 MB."""
LEVELS = 20
_LISTED = 10
_DEEP = "exceeded maximum nesting depth"
"""What libyaml says, from some version on, of what it scans ahead and finds too deep to hold."""
_NAMES = ("slot", "name", "model", "revision", "claim")
_LOADER: type[yaml.CBaseLoader | yaml.BaseLoader] = getattr(yaml, "CBaseLoader", yaml.BaseLoader)
_USUAL_TAGS = {f"tag:yaml.org,2002:{kind}" for kind in ("str", "seq", "map")} | {"!"}


@dataclass(frozen=True)
class Problem:
    """One thing wrong with a file: where, what was found, what is expected."""

    where: Location
    found: str
    expected: str
    line: int | None = None


def shown(value: object) -> str:
    """A value of a file as an error message shows it: short, with no control characters."""
    if isinstance(value, str):
        text = json.dumps(value) if value else "nothing"
        return text if len(text) <= 80 else text[:76] + '..."'
    return "a list" if isinstance(value, list) else "a mapping"


def some(names: Iterable[str]) -> str:
    """Names of a file as an error message lists them: each once, and the first ten of many."""
    each = [shown(name) for name in dict.fromkeys(names)]
    return ", ".join([*each[:_LISTED], *(["..."] if len(each) > _LISTED else [])])


@dataclass
class Document:
    """A file's data (mappings, lists and text) and the line of each key and value."""

    path: Path
    data: dict[str, object]
    marks: Marks = 1
    problems: list[Problem] = field(default_factory=list)

    def where(self, *location: str | int) -> str:
        """``file:line`` of a location, or of the nearest thing around it."""
        return f"{self.path}:{self.line(location)}"

    def line(self, location: Location) -> int:
        """The line of a location, or of the nearest thing around it."""
        mark = self.marks
        for step in location:
            inner = _below(mark, step)
            if inner is None:
                break
            mark = inner
        return _first_line(mark)

    def get(self, location: Location) -> object:
        """The value at a location; None when there is none."""
        value: object = self.data
        for step in location:
            value = _inside(value, step)
        return value

    def texts(self, *pattern: str | int) -> Iterator[tuple[Location, str]]:
        """Every text at ``pattern``, where ``*`` stands for each entry of a list or mapping.

        ``texts("drives", "*", "serial")`` gives the serial numbers.  Whatever
        has another shape is passed over: the models complain of that.
        """
        for location, value in self._reach(pattern):
            if isinstance(value, str):
                yield location, value

    def spread(self, *pattern: str | int) -> list[Location]:
        """Every location that ``pattern`` stands for, whether or not anything is there."""
        return [location for location, _ in self._reach(pattern)]

    def _reach(self, pattern: tuple[str | int, ...]) -> list[tuple[Location, object]]:
        found: list[tuple[Location, object]] = [((), self.data)]
        for step in pattern:
            if step == "*":
                found = [((*at, key), below) for at, value in found for key, below in _items(value)]
            else:
                found = [((*at, step), _inside(value, step)) for at, value in found]
        return found

    def field_name(self, location: Location) -> str:
        """A location in words: ``drives[slot1].serial``, by an entry's name where it has one."""
        words = ""
        for end, step in enumerate(location, 1):
            if isinstance(step, str):
                words += f".{_part(step)}" if words else _part(step)
                continue
            entry = self.get(location[:end])
            names = [entry.get(key) for key in _NAMES] if isinstance(entry, dict) else []
            label = next((name for name in names if isinstance(name, str) and name), str(step + 1))
            words += f"[{_part(label)}]"
        return words

    def refuse(self, problems: Iterable[Problem]) -> None:
        """Raise Misuse with every problem, in the order of the file's lines, if there is one."""
        found = sorted({*problems}, key=lambda problem: (self._line_of(problem), str(problem)))
        if found:
            raise Misuse("\n".join(self._say(problem) for problem in found))

    def _line_of(self, problem: Problem) -> int:
        return problem.line or self.line(problem.where)

    def _say(self, problem: Problem) -> str:
        name = self.field_name(problem.where)
        place = f"{self.path}:{self._line_of(problem)}: " + (f"{name}: " if name else "")
        return f"{place}found {problem.found}, expected {problem.expected}"


def _part(text: str) -> str:
    """A key or a name in a location: short, with no control characters."""
    return shown(text)[1:-1] if text else ""


def _first_line(mark: Marks) -> int:
    return mark if isinstance(mark, int) else mark[0]


def _inside(value: object, step: str | int) -> object:
    if isinstance(step, int):
        return value[step] if isinstance(value, list) and step < len(value) else None
    return value.get(step) if isinstance(value, dict) else None


def _items(value: object) -> Iterable[tuple[str | int, object]]:
    if isinstance(value, list):
        return enumerate(value)
    return value.items() if isinstance(value, dict) else ()


def _below(mark: Marks, step: str | int) -> "Marks | None":
    inner = None if isinstance(mark, int) else mark[1]
    if isinstance(step, int):
        return inner[step] if isinstance(inner, list) and step < len(inner) else None
    return inner.get(step) if isinstance(inner, dict) else None


def read(path: Path) -> Document:
    """Read a YAML file whose top is a mapping.

    Raises Misuse, with file and line, for what cannot be read at all.  Doubtful
    spots (a key given twice, an alias, a tag) are left in ``problems``, to be
    reported together with what the models find.
    """
    text = _text(path)
    document = Document(path, {})
    try:
        data = _Builder(document, yaml.parse(text, Loader=_LOADER)).top()
    except yaml.MarkedYAMLError as error:
        raise Misuse(_syntax(path, text, error)) from None
    except yaml.YAMLError as error:
        reason = getattr(error, "reason", None) or "broken YAML"
        raise Misuse(f"{path}: found {reason}, expected YAML") from None
    if not isinstance(data, dict):
        found = "an empty file" if data is None else shown(data)
        raise Misuse(f"{path}:{document.line(())}: found {found}, expected `key: value` lines")
    document.data = data
    return document


def _text(path: Path) -> str:
    try:
        if path.exists() and not path.is_file():
            raise Misuse(f"{path}: found something that is not a file, expected a YAML file")
        with path.open("rb") as stream:
            raw = stream.read(LARGEST + 1)
    except FileNotFoundError:
        raise Misuse(f"{path}: found no such file, expected a YAML file; check the path") from None
    except OSError as error:
        raise Misuse(f"{path}: cannot be read: {error.strerror}; check its permissions") from None
    if len(raw) > LARGEST:
        raise Misuse(f"{path}: found more than {LARGEST >> 20} MiB, expected a short YAML file")
    try:
        return raw.decode("utf-8-sig")
    except UnicodeDecodeError as error:
        line = raw.count(b"\n", 0, error.start) + 1
        raise Misuse(
            f"{path}:{line}: found a byte {raw[error.start]:#04x}, expected UTF-8 text"
        ) from None


def _syntax(path: Path, text: str, error: yaml.MarkedYAMLError) -> str:
    mark = error.problem_mark or error.context_mark
    if mark is None:
        return f"{path}: found broken YAML ({error.problem}), expected `key: value` lines"
    if error.problem == _DEEP:
        return _too_deep(path, mark.line + 1)
    lines = text.splitlines()
    line = lines[mark.line] if mark.line < len(lines) else ""
    if "\t" in line[: len(line) - len(line.lstrip())] or "\t" in line[mark.column :][:1]:
        return f"{path}:{mark.line + 1}: found a tab, expected spaces: YAML indents with spaces"
    problem = " ".join(part for part in (error.context, error.problem) if part)
    return f"{path}:{mark.line + 1}: found broken YAML ({problem}), expected `key: value` lines"


def _too_deep(path: Path, line: int) -> str:
    return f"{path}:{line}: found more than {LEVELS} levels, expected a few"


class _Builder:
    """Turns a file's events into data, noting lines and doubtful spots in the document.

    Events and not composed nodes: libyaml's composer overflows its stack, and
    takes the process with it, on a few thousand brackets.
    """

    def __init__(self, document: Document, events: Iterator[yaml.Event]) -> None:
        self._document = document
        self._events = events
        self._at: list[str | int] = []

    def top(self) -> object:
        """The value of the only document; None when there is none."""
        data: object = None
        documents = 0
        for event in self._events:
            if isinstance(event, yaml.DocumentStartEvent):
                documents += 1
                if documents > 1:
                    line = _line(event)
                    raise Misuse(
                        f"{self._document.path}:{line}: found a second document, expected one"
                    )
            elif isinstance(event, yaml.NodeEvent):
                data, self._document.marks = self._value(event)
        return data

    def _value(self, event: yaml.Event) -> tuple[object, Marks]:
        line = _line(event)
        if isinstance(event, yaml.AliasEvent):
            self._doubt(f"an alias, *{event.anchor}", "the value itself", line)
            return "", line
        tag = getattr(event, "tag", None)
        if tag is not None and tag not in _USUAL_TAGS:
            self._doubt(f"a tag {shown(tag)}", "a value without a tag", line)
        if isinstance(event, yaml.ScalarEvent):
            return str(event.value), line
        if len(self._at) > LEVELS:
            raise Misuse(_too_deep(self._document.path, line))
        if isinstance(event, yaml.MappingStartEvent):
            data, marks = self._mapping()
            return data, (line, marks)
        items, places = self._sequence()
        return items, (line, places)

    def _next(self) -> yaml.Event | None:
        """The next event, or None at the end of a list or mapping."""
        event = next(self._events)
        return None if isinstance(event, yaml.CollectionEndEvent) else event

    def _sequence(self) -> tuple[list[object], list[Marks]]:
        items: list[object] = []
        marks: list[Marks] = []
        self._at.append(0)
        for event in iter(self._next, None):
            value, mark = self._value(event)
            items.append(value)
            marks.append(mark)
            self._at[-1] = len(items)
        self._at.pop()
        return items, marks

    def _mapping(self) -> tuple[dict[str, object], dict[str, Marks]]:
        data: dict[str, object] = {}
        marks: dict[str, Marks] = {}
        for event in iter(self._next, None):
            line = _line(event)
            self._at.append("?")
            key, _ = self._value(event)
            if isinstance(key, str):
                self._at[-1] = key
                if key in data:
                    first = _first_line(marks[key])
                    found = f"the key a second time (the first is on line {first})"
                    self._doubt(found, "each key once", line)
            value, mark = self._value(next(self._events))
            self._at.pop()
            if not isinstance(key, str):
                self._doubt("a key that is a list or a mapping", "text", line)
            elif key not in data:
                data[key] = value
                # A value is found by its key, so it is the key's line that counts.
                marks[key] = line if isinstance(mark, int) else (line, mark[1])
        return data, marks

    def _doubt(self, found: str, expected: str, line: int) -> None:
        self._document.problems.append(Problem((*self._at,), found, expected, line))


def _line(event: yaml.Event) -> int:
    return event.start_mark.line + 1 if event.start_mark is not None else 1
