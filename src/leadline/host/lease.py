"""Leases: one run at a time for a drive, and for a PDU's port.

A lease is a kernel lock (flock) on the machine that owns the resource, held by the
agent there.  It needs no clean-up: it is free when the agent ends, however it ends.
"""

from __future__ import annotations

import getpass
import hashlib
import json
import os
import socket
from contextlib import suppress
from datetime import UTC, datetime
from typing import Self
from urllib.parse import quote

from leadline.errors import RigTrouble
from leadline.host.connection import FileTrouble, Host, HostLost
from leadline.host.trouble import printable

DIRECTORY = "/run/lock/leadline"
# Where others than root may not make the first: no /run/lock on some, 0755 on Fedora.
FALLBACK = "/tmp/leadline-lock"
NAME_LIMIT = 200
# An agent whose network went away holds on until it has heard nothing for a minute.
OLD_AGENT_S = 75.0


class LeaseTaken(RigTrouble):
    """Another run has the resource; ``holder`` is who it says it is."""

    def __init__(self, message: str, holder: str) -> None:
        super().__init__(message)
        self.holder = holder


def holder_text(run_id: str) -> str:
    """Who we are, for whoever finds the resource taken: user, machine, process, run."""
    try:
        user = getpass.getuser()
    except (KeyError, OSError):  # a container's user may have no name
        user = f"uid {os.getuid()}"
    return f"{user}@{socket.gethostname()} process {os.getpid()} run {run_id}"


def file_name(resource: str) -> str:
    """A resource as a file name: ``pdu:/dev/ttyS0`` is ``pdu:%2Fdev%2FttyS0.lock``."""
    name = quote(resource, safe=":")
    if len(name) > NAME_LIMIT:
        name = name[: NAME_LIMIT - 65] + "-" + hashlib.sha256(resource.encode()).hexdigest()
    return name + ".lock"


class Lease:
    """A resource that is ours until ``release`` or the connection's end; a context manager.

    After ``Host.reconnect`` it is taken again, which raises LeaseTaken when another run
    was quicker; the connection is closed then, and with it whatever was to be done there.
    """

    def __init__(
        self, host: Host, resource: str, holder: str, directory: str, patience: float
    ) -> None:
        self.resource = resource
        self._host, self._holder = host, holder
        self._path = f"{directory}/{file_name(resource)}"
        self._handle = self._lock(patience)
        host.after_reconnect.append(self._take_again)

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.release()

    def release(self) -> None:
        """Let others have it."""
        self._host.after_reconnect.remove(self._take_again)
        with suppress(HostLost):  # then it is free already
            self._host.append(self._handle, b"", replace=True)
            self._host.unlock_file(self._handle)

    def _lock(self, patience: float) -> int:
        answer = self._host.lock_file(self._path, shared=True, patience=patience)
        if isinstance(answer, bytes):
            raise _taken(self._host.name, self.resource, answer)
        since = datetime.now(UTC).isoformat(timespec="seconds")
        record = {"resource": self.resource, "holder": self._holder, "since": since}
        self._host.append(answer, json.dumps(record).encode(), replace=True)
        return answer

    def _take_again(self) -> None:
        try:
            self._handle = self._lock_again()
        except RigTrouble:
            self._host.close()  # nobody goes on with what another run may have now
            raise

    def _lock_again(self) -> int:
        try:
            return self._lock(patience=0.0)
        except LeaseTaken as taken:
            if taken.holder != printable(self._holder):
                raise
        return self._lock(patience=OLD_AGENT_S)  # our own, before the line was cut


def take(
    host: Host,
    resource: str,
    holder: str,
    *,
    directory: str | None = None,
    patience: float = 0.0,
) -> Lease:
    """Take the lease on ``resource``, a WWN or a PDU's port, on the machine that owns it.

    ``holder``: what others are told, see ``holder_text``.  Raises LeaseTaken, after so many
    seconds of ``patience``.
    """
    if directory is not None:
        return Lease(host, resource, holder, directory, patience)
    try:
        return Lease(host, resource, holder, DIRECTORY, patience)
    except FileTrouble as trouble:
        if host.is_root():
            raise
        first = trouble
    try:
        return Lease(host, resource, holder, FALLBACK, patience)
    except FileTrouble as second:
        raise RigTrouble(
            f"{host.name}: no place for leases: {first}; {second}; as root there, once: "
            f"install -d -m 1777 {DIRECTORY}"
        ) from None


def _taken(host_name: str, resource: str, written: bytes) -> LeaseTaken:
    try:
        record = json.loads(written)
        holder, since = printable(str(record["holder"])), printable(str(record["since"]))
    except (ValueError, KeyError, TypeError):
        holder, since = "somebody who did not sign", "unknown"
    return LeaseTaken(
        f"{host_name}: {printable(resource)} is in use by {holder}, since {since}; "
        "wait for it to end, or end it: the lease is then free by itself",
        holder,
    )
