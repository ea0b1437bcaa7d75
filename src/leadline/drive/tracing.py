"""The kernel's tracepoints, recorded in a tracing instance of our own: a user's is left alone.

Documentation/trace/ftrace.rst and events.rst of the kernel.
"""

import re
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from typing import NamedTuple

from leadline.drive.bind import Drive
from leadline.errors import RigTrouble
from leadline.host.connection import Host

_TRACING = ("/sys/kernel/tracing", "/sys/kernel/debug/tracing")
_INSTANCE = "leadline-"
_EVENT = re.compile(r"\s(?P<time>\d+\.\d+): (?P<event>\w+): (?P<fields>.*)")


class TracingMissing(RigTrouble):
    """The rig's kernel offers no such tracepoints, so nothing can be said."""


class TraceEvent(NamedTuple):
    """One line of a trace: seconds of the trace's clock, the tracepoint's name, what it printed."""

    time: float
    name: str
    fields: str


@contextmanager
def instance(host: Host, drive: Drive) -> Iterator[str]:
    """The path of a tracing instance named after the drive, removed at the end.

    The drive is leased, so one that is there already is a dead run's: it is begun anew.
    Raises TracingMissing where tracing is not mounted.
    """
    tracing = next((path for path in _TRACING if host.exists(f"{path}/instances")), None)
    if tracing is None:
        raise TracingMissing(
            f"{host.name}: the kernel's tracing is not there "
            "(`mount -t tracefs nodev /sys/kernel/tracing` as root makes it so)"
        )
    name = _INSTANCE + re.sub(r"[^A-Za-z0-9]", "_", drive.identity.serial)
    path = f"{tracing}/instances/{name}"
    if host.exists(path):
        host.remove_dir(path)
    host.make_dir(path)
    try:
        yield path
    except BaseException:
        # Whatever was under way may still have it open.  That would hide why it was broken off,
        # a Ctrl-C too; the next run removes what is left.
        with suppress(RigTrouble):
            host.remove_dir(path)
        raise
    host.remove_dir(path)


def forget(host: Host) -> list[str]:
    """Remove the tracing instances that dead runs left; the names of those removed.

    To be called with every drive of the rig leased, for a live probe's would go too.
    """
    removed = []
    for tracing in _TRACING:
        if not host.exists(f"{tracing}/instances"):
            continue
        for name in host.list_dir(f"{tracing}/instances"):
            if name.startswith(_INSTANCE):
                host.remove_dir(f"{tracing}/instances/{name}")
                removed.append(name)
        break  # the second is the same file system under its old name
    return removed


def watch(host: Host, path: str, event: str, only: str, *, optional: bool = False) -> None:
    """Record `event` (`libata:ata_qc_issue`) in the instance, where its fields fit `only`.

    Raises TracingMissing where the kernel does not have it, unless it is `optional`.
    """
    folder = f"{path}/events/{event.replace(':', '/')}"
    if host.exists(folder):
        host.write_value(f"{folder}/filter", only)
        host.write_value(f"{folder}/enable", "1")
    elif not optional:
        raise TracingMissing(
            f"{host.name}: the kernel has no tracepoint {event} (libata has had its own "
            "since 4.2; the kernel must be built with CONFIG_TRACING)"
        )


def ata_place(drive: Drive) -> tuple[int, int]:
    """Port and device by which libata's tracepoints name a drive whose link is known."""
    assert drive.link is not None
    port, device = drive.link.device.removeprefix("ata").split(".")
    return int(port), int(device)


def events(text: str) -> Iterator[TraceEvent]:
    """The events of a trace, as the file `trace` prints it; what is no event is passed over."""
    for line in text.splitlines():
        if found := _EVENT.search(line):
            yield TraceEvent(float(found["time"]), found["event"], found["fields"])
