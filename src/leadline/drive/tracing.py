"""A place of our own in the kernel's tracing, so that a user's is left alone."""

import re
from collections.abc import Iterator
from contextlib import contextmanager

from leadline.drive.bind import Drive
from leadline.errors import RigTrouble
from leadline.host.connection import Host

_TRACING = ("/sys/kernel/tracing", "/sys/kernel/debug/tracing")
_INSTANCE = "leadline-"


class TracingMissing(RigTrouble):
    """The rig's kernel offers no such tracepoints, so nothing can be said."""


@contextmanager
def instance(host: Host, drive: Drive) -> Iterator[str]:
    """The directory of a tracing instance named after the drive, removed at the end.

    The drive is leased, so one that is there already is a dead run's: it is begun anew.
    Raises TracingMissing where the kernel has no tracing.
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
    finally:
        host.remove_dir(path)


def forget(host: Host) -> list[str]:
    """Remove the tracing instances that dead runs left; the names of those removed.

    To be called with every drive of the rig leased, for a live one would go too.
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
