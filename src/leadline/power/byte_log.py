"""Every byte to and from the PDUs of a run, kept in files: one a PDU, `NAME.log`.

`byte_log_line` says what is in them.  A file grows to 4 MiB, is renamed `NAME.log.old` then,
in place of an earlier one, and begun anew: a run keeps the last 4 to 8 MiB of each PDU.  What
is written is in the file at once, so that a killed run loses none of it.  Other processes of
the same run have files of their own (`NAME~1.log`).
"""

import fcntl
import os
import shutil
import time
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path
from typing import Self

from leadline.inventory.fields import user_state
from leadline.inventory.pdu import PduSpec
from leadline.power.byte_log_line import HEARD, SENT, begin, escaped, session_line
from leadline.power.session import ByteLog, Chunk
from leadline.run_id import RUN_ID

SUFFIXES = (".log.old", ".log")
LIMIT = 4 * 1024 * 1024
JOIN_S = 0.02  # chunks that came closer together stand in one line
KEPT_COMMANDS = 500


def folder_of_run(results: Path, run_id: str) -> Path:
    """Where the logs of a run are, beside its results."""
    return results / "serial" / run_id


def folder_of_command(run_id: str) -> Path:
    """Where those of one `leadline power` are, and room for it: the last 500 are kept."""
    parent = folder_of_commands()
    with suppress(OSError):
        old = sorted(each for each in parent.iterdir() if RUN_ID.fullmatch(each.name))
        for each in old[: 1 - KEPT_COMMANDS]:
            shutil.rmtree(each, ignore_errors=True)
    return parent / run_id


def folder_of_commands() -> Path:
    """Where those of all `leadline power` are."""
    return user_state() / "leadline" / "serial"


class ByteLogs:
    """The byte logs of one run, in `folder`; a context manager.

    No file is made before there is something to keep.  One that cannot be written is said
    once, with `tell`, and left: that must not keep an outlet off.
    """

    def __init__(self, folder: Path, tell: Callable[[str], None]) -> None:
        self._folder = folder
        self._tell = tell
        self._files: dict[tuple[str, str], _PduFile] = {}

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        for file in self._files.values():
            file.close()

    def of(self, spec: PduSpec) -> ByteLog:
        """The log of one session with that PDU, which has begun or is about to."""
        key = (spec.name, spec.port)
        if key not in self._files:
            self._files[key] = _PduFile(self._folder, spec, self._tell)
        return ByteLog(self._files[key].new_session())


class _PduFile:
    """One PDU's file.  A PDU's port is locked, so one session at a time writes it."""

    def __init__(self, folder: Path, spec: PduSpec, tell: Callable[[str], None]) -> None:
        self._folder = folder
        self._spec = spec
        self._tell = tell
        self._path = folder
        self._handle: int | None = None
        self._size = 0
        self._failed = False
        self._epoch: float | None = None  # the wall clock when the session's was 0
        self._line: tuple[bool, float] | None = None  # its way and its time

    def new_session(self) -> Callable[[Chunk], None]:
        """What keeps the chunks of a session that begins."""
        self._epoch = None
        return self._keep

    def close(self) -> None:
        """End the file in a whole line."""
        if self._handle is not None and not self._failed:
            with suppress(OSError):
                os.write(self._handle, b"\n")
        self._let_go()

    def _keep(self, chunk: Chunk) -> None:
        if self._failed:
            return
        try:
            self._write(chunk)
        except OSError as error:
            self._failed = True
            self._let_go()
            self._tell(
                f"{self._path}: the byte log of PDU {self._spec.name} cannot be written "
                f"({error.strerror or error}); what follows is not kept"
            )

    def _write(self, chunk: Chunk) -> None:
        new_session = self._epoch is None
        if self._epoch is None:
            self._epoch = time.time() - chunk.at
        at = self._epoch + chunk.at
        text = escaped(chunk.data)
        if not new_session and self._line is not None:
            sent, began = self._line
            if sent == chunk.sent and at - began < JOIN_S:
                self._append(text)
                return
        if self._handle is None or self._size > LIMIT:
            self._begin_file()
            new_session = True
        if new_session:
            self._append(("\n" if self._size else "") + session_line(at, self._facts()))
        self._line = (chunk.sent, at)
        self._append("\n" + begin(at, SENT if chunk.sent else HEARD) + text)

    def _append(self, text: str) -> None:
        assert self._handle is not None
        self._size += os.write(self._handle, text.encode("ascii"))

    def _begin_file(self) -> None:
        if self._handle is None:
            self._folder.mkdir(parents=True, exist_ok=True)
        else:
            self._path.replace(self._path.with_suffix(".log.old"))
            self._let_go()
        number = 0
        while self._handle is None:
            self._path = self._folder / f"{self._spec.name}{f'~{number}' if number else ''}.log"
            flags = os.O_WRONLY | os.O_APPEND | os.O_CREAT | os.O_NOFOLLOW
            handle = os.open(self._path, flags, 0o666)
            try:
                fcntl.flock(handle, fcntl.LOCK_EX | fcntl.LOCK_NB)
                self._handle = handle
            except BlockingIOError:
                os.close(handle)
                number += 1
        self._size = os.fstat(self._handle).st_size

    def _let_go(self) -> None:
        handle, self._handle = self._handle, None
        if handle is not None:
            os.close(handle)

    def _facts(self) -> dict[str, object]:
        spec = self._spec
        facts = {"pdu": spec.name, "port": spec.port, "family": spec.family, "baud": spec.baud}
        return facts | {"pid": os.getpid()}
