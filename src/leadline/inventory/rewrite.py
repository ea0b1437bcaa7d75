"""Change the `outlets` of a rig file and nothing else of it: comments and layout stay.

The values are replaced where they stand in the text.  What comes out is read again, and is
not written unless it says what it was to say.
"""

import copy
import os
import tempfile
from collections.abc import Iterator, Sequence
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import yaml

from leadline.errors import Misuse
from leadline.inventory.document import read
from leadline.inventory.rig import load_rig

HOST = "host"
_Change = tuple[int, int, str]
"""Where in the text, from and to, and what is to stand there."""


@dataclass(frozen=True)
class OutletEdit:
    """An entry of `outlets` as it is to be; `index` is its place in the list, None: a new one.

    `feeds` are slots, or `host` alone.
    """

    index: int | None
    name: str
    pdu: str
    outlet: int
    feeds: tuple[str, ...]


def shown_feeds(feeds: Sequence[str]) -> str:
    """Slots, or `host` alone, as `feeds` in a rig file."""
    return HOST if HOST in feeds else f"[{', '.join(feeds)}]"


def text_of(path: Path) -> str:
    """A rig file as it stands, line ends and all; Misuse when it cannot be read."""
    try:
        return path.read_bytes().decode()
    except (OSError, UnicodeDecodeError) as error:
        raise Misuse(f"{path}: cannot be read: {error}") from None


def with_outlets(text: str, edits: Sequence[OutletEdit]) -> str:
    """The text of a rig file with these entries of `outlets`."""
    outlets = _child(yaml.compose(text, Loader=yaml.BaseLoader), "outlets")
    changes: list[_Change] = []
    for edit in edits:
        if edit.index is not None and isinstance(outlets, yaml.SequenceNode):
            changes += _entry_changes(text, outlets.value[edit.index], edit)
    new = [edit for edit in edits if edit.index is None]
    if new:
        changes.append(_addition(text, outlets, new))
    for start, end, put in sorted(changes, reverse=True):
        text = text[:start] + put + text[end:]
    return text


def write_outlets(path: Path, before: str, edits: Sequence[OutletEdit]) -> str:
    """Write a rig file with these entries of `outlets`, in one step; gives its new text.

    `before` is what it held when it was read.  Raises Misuse, and leaves the file alone,
    when it holds something else by now, cannot be written, or is laid out so that the
    change would do anything else.
    """
    real = path.resolve()  # a link stays one
    after = with_outlets(before, edits)
    try:
        with tempfile.NamedTemporaryFile(
            dir=real.parent, prefix=f".{real.name}.", suffix=".yaml", delete=False
        ) as fresh:
            try:
                fresh.write(after.encode())
                fresh.flush()
                _keep_owner(fresh.fileno(), real)
                os.fsync(fresh.fileno())
                _check(path, Path(fresh.name), edits)
                if text_of(path) != before:
                    raise Misuse(f"{path}: it was changed meanwhile, and was not written")
                Path(fresh.name).replace(real)
            finally:
                Path(fresh.name).unlink(missing_ok=True)
        _sync_directory(real.parent)
    except OSError as error:
        raise Misuse(f"{path}: cannot be written: {error.strerror}; nothing was changed") from None
    return after


def _entry_changes(text: str, entry: yaml.Node, edit: OutletEdit) -> Iterator[_Change]:
    for key, value in (("pdu", edit.pdu), ("outlet", str(edit.outlet))):
        node = _child(entry, key)
        if isinstance(node, yaml.ScalarNode) and node.value != value:
            yield _span(node, value)
    feeds = _child(entry, "feeds")
    if feeds is not None and _feeds_of(feeds) != edit.feeds:
        yield from _feeds_changes(text, feeds, edit.feeds)


def _feeds_changes(text: str, node: yaml.Node, feeds: Sequence[str]) -> Iterator[_Change]:
    if not isinstance(node, yaml.SequenceNode) or node.flow_style:
        yield _span(node, shown_feeds(feeds))
        return
    items: list[yaml.Node] = node.value
    if HOST in feeds:
        yield node.start_mark.index, _end(items[-1]), HOST
        return
    for item, slot in zip(items, feeds, strict=False):
        yield _span(item, slot)
    for item in items[len(feeds) :]:
        start = text.rfind("\n", 0, item.start_mark.index)
        yield start, _line_end(text, _end(item)), ""
    if more := feeds[len(items) :]:
        at = _line_end(text, _end(items[-1]))
        indent = _newline(text) + " " * node.start_mark.column
        yield at, at, "".join(f"{indent}- {slot}" for slot in more)


def _addition(text: str, outlets: yaml.Node | None, new: Sequence[OutletEdit]) -> _Change:
    """New entries, laid out as those that are there."""
    line = _newline(text)
    if outlets is None:
        gap = "" if text.endswith("\n") else line
        return len(text), len(text), f"{gap}outlets:" + _entries(new, line + "  ") + line
    entries: list[yaml.Node] = outlets.value
    if isinstance(outlets, yaml.SequenceNode) and outlets.flow_style:
        at = _end(entries[-1]) if entries else outlets.start_mark.index + 1
        listed = ", ".join(f"{{{', '.join(_fields(edit))}}}" for edit in new)
        return at, at, (", " if entries else "") + listed
    at = _line_end(text, _end(entries[-1]))
    return at, at, _entries(new, line + " " * outlets.start_mark.column)


def _entries(new: Sequence[OutletEdit], indent: str) -> str:
    return "".join(f"{indent}- {f'{indent}  '.join(_fields(edit))}" for edit in new)


def _fields(edit: OutletEdit) -> list[str]:
    return [
        f"name: {edit.name}",
        f"pdu: {edit.pdu}",
        f"outlet: {edit.outlet}",
        f"feeds: {shown_feeds(edit.feeds)}",
    ]


def _child(node: yaml.Node | None, key: str) -> yaml.Node | None:
    pairs = node.value if isinstance(node, yaml.MappingNode) else ()
    return next((value for name, value in pairs if name.value == key), None)


def _feeds_of(node: yaml.Node) -> tuple[str, ...]:
    if isinstance(node, yaml.SequenceNode):
        return tuple(item.value for item in node.value)
    return (node.value,)


def _span(node: yaml.Node, put: str) -> _Change:
    return node.start_mark.index, node.end_mark.index, put


def _end(node: yaml.Node) -> int:
    """Where its text ends; a block's own mark stands before the next thing, comments between."""
    block = isinstance(node, yaml.CollectionNode) and not node.flow_style and node.value
    if not block:
        return int(node.end_mark.index)
    last = node.value[-1]
    return _end(last[1] if isinstance(last, tuple) else last)


def _line_end(text: str, at: int) -> int:
    found = text.find("\n", at)
    end = len(text) if found < 0 else found
    return end - 1 if text[at:end].endswith("\r") else end


def _newline(text: str) -> str:
    return "\r\n" if "\r\n" in text else "\n"


def _check(path: Path, fresh: Path, edits: Sequence[OutletEdit]) -> None:
    """Raise Misuse unless the fresh file is a rig file that says the edits, and else the same."""
    wanted: dict[str, Any] = copy.deepcopy(read(path).data)
    outlets = wanted.setdefault("outlets", [])
    for edit in edits:
        feeds = HOST if HOST in edit.feeds else list(edit.feeds)
        entry = {"pdu": edit.pdu, "outlet": str(edit.outlet), "feeds": feeds}
        if edit.index is None:
            outlets.append({"name": edit.name, **entry})
        else:
            outlets[edit.index] |= entry
    by_hand = "; ".join(f"{edit.name}: {', '.join(_fields(edit)[1:])}" for edit in edits)
    try:
        load_rig(fresh)
    except Misuse as wrong:
        said = str(wrong).replace(str(fresh), str(path))
        raise Misuse(
            f"{said}\n  So it would be wrong, and was not written. What was to be written is "
            f"{by_hand}"
        ) from None
    if read(fresh).data != wanted:
        raise Misuse(
            f"{path}: it is laid out in a way that only a person can change: nothing was written. "
            f"Write into `outlets`: {by_hand}"
        )


def _keep_owner(descriptor: int, model: Path) -> None:
    status = model.stat()
    os.fchmod(descriptor, status.st_mode & 0o7777)
    with suppress(PermissionError):
        os.fchown(descriptor, status.st_uid, status.st_gid)


def _sync_directory(folder: Path) -> None:
    descriptor = os.open(folder, os.O_RDONLY | os.O_DIRECTORY)
    try:
        os.fsync(descriptor)
    finally:
        os.close(descriptor)
