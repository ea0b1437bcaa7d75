"""The journal: every setting that we change on a rig is written down there first, and given back.

One file a run, ``<state>/journal/<run>.jsonl``, on the machine where the setting is.  The
agent holds its lock (flock) while the run lives: a journal without a holder is a dead
run's, and ``replay`` mends what that run left.  A record is on the medium before the write
that it tells of, so a run may be killed at any point.

A record is one JSON object on a line of its own; a line that is cut short was never acted
on, and is ignored.  There are five:

* ``{path, old, new, ...}``     a setting's value before its first change
* ``{restored}``                that setting is as before, and is nobody's to give back
* ``{entry, kind, data, ...}``  something that is not a file, such as an outlet to be switched on;
                                the last one of an entry counts
* ``{closed}``                  that entry is settled
* ``{given_back: true}``        every setting above this line has been given back
"""

from __future__ import annotations

import errno
import json
import re
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field
from datetime import UTC, datetime
from typing import Any, Self
from urllib.parse import quote

from leadline.errors import RigTrouble
from leadline.host.connection import FileTrouble, Host
from leadline.host.trouble import DeadlinePassed, printable

Record = dict[str, Any]

SUFFIX = ".jsonl"
OLD_AGENT_S = 75.0  # see lease.py
TURN_S = 120.0  # for what another run does with a setting that has a lock
GONE = (errno.ENOENT, errno.ENODEV, errno.ENXIO)


@dataclass(frozen=True, slots=True)
class DeadEntry:
    """An entry that a dead run left open; ``close_dead_entry`` when it is settled."""

    journal: str
    entry: str
    kind: str
    data: Record
    run: str
    time: str


@dataclass(slots=True)
class _Contents:
    """What a journal's records come to."""

    settings: dict[str, Record] = field(default_factory=dict)
    entries: dict[str, Record] = field(default_factory=dict)

    @classmethod
    def of(cls, data: bytes) -> Self:
        contents = cls()
        for line in data.split(b"\n"):
            with suppress(ValueError):
                if isinstance(record := json.loads(line), dict):
                    contents.add(record)
        return contents

    def add(self, record: Record) -> None:
        if "path" in record:
            self.settings.setdefault(record["path"], record)
        elif "restored" in record:
            self.settings.pop(record["restored"], None)
        elif "entry" in record:
            self.entries[record["entry"]] = record
        elif "closed" in record:
            self.entries.pop(record["closed"], None)
        elif "given_back" in record:
            self.settings.clear()


class Journal:
    """One run's journal on one host; its file is made by the first record.

    Use it from one thread, as a context manager: leaving gives everything back.
    """

    def __init__(self, host: Host, run_id: str, *, directory: str | None = None) -> None:
        self._host, self.run = host, run_id
        self._directory = directory or default_directory(host)
        self._path: str | None = None
        self._handle = 0
        self._entry_count = 0
        self._contents = _Contents()
        host.after_reconnect.append(self._reopen)

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.give_back()

    def change(self, path: str, value: str) -> None:
        """Write ``value`` to a kernel attribute, its old value being on record before.

        Writes even what it reads already: 32 over 32 may mean something to a driver.
        """
        self._record_setting(path, value)
        self._host.write_value(path, value)

    def borrow(self, path: str, lock: str | None = None) -> str:
        """Put a setting's value on record, for something else to change; returns that value.

        A setting that runs change by turns has a `lock`, a file that the caller holds until
        `restore`; whoever gives the setting back after that waits for its turn.
        """
        return self._record_setting(path, None, lock)

    def _record_setting(self, path: str, new: str | None, lock: str | None = None) -> str:
        data, real_path = self._host.read_with_path(path)
        old = _value(data)
        if real_path not in self._contents.settings:
            turn = {"lock": lock} if lock else {}
            self._append({"path": real_path, "old": old, "new": new, **turn})
        return old

    def restore(self, path: str) -> None:
        """Restore one setting before the others: from here on it may be another run's."""
        real_path = self._host.read_with_path(path)[1]
        if record := self._contents.settings.get(real_path):
            _restore_one(self._host, real_path, record)
            self._append({"restored": real_path})

    def open_entry(self, kind: str, data: Record) -> str:
        """Put on record that something is about to be changed; returns the entry's id."""
        self._entry_count += 1
        entry = str(self._entry_count)
        self._append({"entry": entry, "kind": kind, "data": data})
        return entry

    def amend_entry(self, entry: str, data: Record) -> None:
        """Put on record how far it has come; what was on record of it before is replaced."""
        kind = self._contents.entries[entry]["kind"]
        self._append({"entry": entry, "kind": kind, "data": data})

    def close_entry(self, entry: str) -> None:
        """Put on record that it is back as it was."""
        self._append({"closed": entry})

    def give_back(self) -> None:
        """Restore every setting, the last changed first, and remove the journal.

        A setting whose file is gone (the drive was removed) needs nothing.  Raises
        RigTrouble, after all were tried, when one cannot be restored; the journal stays.
        Open entries stay on record, too, for the next run to settle.
        """
        if self._path is None:
            return
        _restore(self._host, self._contents.settings, self._path)
        if self._contents.entries:
            self._append({"given_back": True})
            return
        self._contents.settings.clear()
        self._host.remove_file(self._path)
        self._host.unlock_file(self._handle)
        self._path = None

    def _append(self, record: Record) -> None:
        if self._path is None:
            self._path, self._handle = self._create()
        record = {
            **record,
            "boot_id": self._host.boot_id(),
            "run": self.run,
            "time": datetime.now(UTC).isoformat(timespec="milliseconds"),
        }
        _append(self._host, self._handle, record)
        self._contents.add(record)

    def _create(self) -> tuple[str, int]:
        """A file that nobody has: other processes of this run have journals of their own."""
        number = 0
        while True:
            tail = f"~{number}" if number else ""
            path = f"{self._directory}/{quote(self.run, safe=':')}{tail}{SUFFIX}"
            handle = self._host.lock_file(path, shared=False)
            if isinstance(handle, int):
                if not self._host.read_file(path):
                    return path, handle
                self._host.unlock_file(handle)  # a dead run's of the same name: replay's to mend
            number += 1

    def _reopen(self) -> None:
        """On a new connection: hold the journal again; after a reboot, settings are as at boot."""
        if self._path is None:
            return
        handle = self._host.lock_file(self._path, shared=False, patience=OLD_AGENT_S)
        if isinstance(handle, bytes):
            raise RigTrouble(f"{self._host.name}: {self._path} is held by another process")
        self._handle = handle
        written = _Contents.of(self._host.read_file(self._path))
        boot = self._host.boot_id()
        if any(record["boot_id"] != boot for record in written.settings.values()):
            written.settings.clear()
            _append(self._host, handle, {"given_back": True})
        for entry, record in self._contents.entries.items():
            if entry not in written.entries:
                _append(self._host, handle, record)  # mended by another run; ours to settle again
        self._contents.settings = written.settings


def default_directory(host: Host) -> str:
    """``/var/lib/leadline/journal`` for root, else below the user's state directory."""
    return f"{host.state_directory()}/journal"


def replay(
    host: Host, *, run_id: str | None = None, patience: float = 0.0, directory: str | None = None
) -> list[str]:
    """Give back what dead runs changed on this host; one sentence for each thing done.

    Settings made before the last reboot are void, and are discarded.  With ``run_id`` only
    that run's journals, waiting up to ``patience`` seconds for its agents to end.  Raises
    RigTrouble, after all were tried, when a setting cannot be restored.
    """
    said: list[str] = []
    failed: list[str] = []
    for path in _journals(host, directory, run_id):
        with _held(host, path, patience) as handle:
            if handle is None:
                continue
            contents = _Contents.of(host.read_file(path))
            try:
                said += _mend(host, contents, path)
            except RigTrouble as trouble:
                failed.append(str(trouble))
                continue
            contents.settings.clear()
            _tidy(host, path, handle, contents)
    if failed:
        raise RigTrouble("; ".join([*failed, *said]))
    return said


def dead_entries(host: Host, kind: str, *, directory: str | None = None) -> list[DeadEntry]:
    """What dead runs left open of one kind, the last opened first; a reboot settles none of it.

    A record may be damaged: its data is for the caller to check.
    """
    found: list[DeadEntry] = []
    for path in _journals(host, directory, None):
        with _held(host, path) as handle:
            if handle is None:
                continue
            for entry, record in _Contents.of(host.read_file(path)).entries.items():
                if record.get("kind") == kind:
                    run, time = (str(record.get(name, "unknown")) for name in ("run", "time"))
                    found.append(DeadEntry(path, entry, kind, record.get("data", {}), run, time))
    return sorted(found, key=lambda dead: dead.time, reverse=True)


def close_dead_entry(host: Host, dead: DeadEntry) -> None:
    """Put on record that a dead run's entry is settled."""
    with _held(host, dead.journal) as handle:
        if handle is not None:
            _append(host, handle, {"closed": dead.entry})
            _tidy(host, dead.journal, handle, _Contents.of(host.read_file(dead.journal)))


def _journals(host: Host, directory: str | None, run_id: str | None) -> list[str]:
    directory = directory or default_directory(host)
    try:
        names = host.list_dir(directory)
    except FileTrouble as trouble:
        if trouble.errno == errno.ENOENT:
            return []
        raise
    stem = None if run_id is None else quote(run_id, safe=":")
    mine = (name for name in names if name.endswith(SUFFIX))
    return [
        f"{directory}/{name}"
        for name in mine
        if stem is None or re.sub(r"(~\d+)?\.jsonl$", "", name) == stem
    ]


@contextmanager
def _held(host: Host, path: str, patience: float = 0.0) -> Iterator[int | None]:
    """The handle of a dead run's journal, or None: its run lives, or another mends it now."""
    handle = host.lock_file(path, shared=False, patience=patience)
    if isinstance(handle, bytes):
        yield None
        return
    try:
        yield handle
    finally:
        host.unlock_file(handle)


def _tidy(host: Host, path: str, handle: int, contents: _Contents) -> None:
    """Remove a dead journal in which nothing is left."""
    if not contents.settings and not contents.entries:
        host.remove_file(path)
    elif not contents.settings:
        _append(host, handle, {"given_back": True})


def _append(host: Host, handle: int, record: Record) -> None:
    # The newline in front ends a line that a killed writer or a full disk cut short.
    host.append(handle, b"\n" + json.dumps(record).encode() + b"\n")


def _mend(host: Host, contents: _Contents, path: str) -> list[str]:
    boot = host.boot_id()
    of_this_boot = {p: r for p, r in contents.settings.items() if r["boot_id"] == boot}
    said = _restore(host, of_this_boot, path)
    if len(of_this_boot) < len(contents.settings):
        count = len(contents.settings) - len(of_this_boot)
        said.append(f"{host.name}: {count} settings of a dead run are void: it has booted since")
    return said


def _restore(host: Host, settings: dict[str, Record], journal: str) -> list[str]:
    said: list[str] = []
    failed: list[str] = []
    for path, record in reversed(settings.items()):
        try:
            with _turn(host, record.get("lock")):
                said += _restore_one(host, path, record)
        except FileTrouble as trouble:
            if trouble.errno not in GONE:
                failed.append(f"{trouble}; write {record['old']!r} there by hand, remove {journal}")
        except DeadlinePassed as late:  # a drive that hangs holds its own attributes alone
            failed.append(f"{late}; write {record['old']!r} to {path} by hand, remove {journal}")
    if failed:
        raise RigTrouble("; ".join(failed))
    return said


@contextmanager
def _turn(host: Host, lock: str | None) -> Iterator[None]:
    """Hold the lock of a setting that runs change by turns, if it has one."""
    if lock is None:
        yield
        return
    handle = host.lock_file(lock, shared=True, patience=TURN_S)
    if isinstance(handle, bytes):
        raise DeadlinePassed(f"{host.name}: another run has held {lock} for {TURN_S:g} s")
    try:
        yield
    finally:
        host.unlock_file(handle)


def _restore_one(host: Host, path: str, record: Record) -> list[str]:
    now, old = _value(host.read_file(path)), str(record["old"])
    if now == old:
        return []
    host.write_value(path, old)
    return [printable(f"{host.name}: {path}: {now} -> {old}, as before run {record['run']}")]


def _value(data: bytes) -> str:
    """An attribute's value; of a choice such as ``none [mq-deadline]`` the chosen one."""
    text = data.decode("utf-8", "surrogateescape").strip()
    chosen = re.search(r"\[([^\]]+)\]", text)
    return chosen.group(1) if chosen else text
