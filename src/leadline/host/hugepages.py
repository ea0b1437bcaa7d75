"""Hugepages of a rig's memory, reserved for as long as they are used.

Documentation/admin-guide/mm/hugetlbpage.rst of the Linux kernel: `vm.nr_hugepages` is how many
the pool has, and a kernel that finds no room for more makes fewer, without a word.
"""

import re
from collections.abc import Iterator
from contextlib import contextmanager

from leadline.errors import RigTrouble
from leadline.host import lease
from leadline.host.connection import Host
from leadline.host.journal import Journal

POOL = "/proc/sys/vm/nr_hugepages"
MEMINFO = "/proc/meminfo"
PATIENCE_S = 120.0
"""The pool is one for all runs on a rig: each waits until the one before has given back."""


def page_bytes(host: Host) -> int:
    """The size of a hugepage, 0 where the kernel has none."""
    return _meminfo(host).get("Hugepagesize", 0) << 10


@contextmanager
def reserved(host: Host, journal: Journal, pages: int) -> Iterator[None]:
    """So many free hugepages, added to the pool through the journal and given back at the end.

    Raises RigTrouble when the rig has no memory for them: what is asked of the drive would
    come from other memory, or from none.  Without any pages it does nothing.
    """
    if not pages:
        yield
        return
    lock = f"{lease.DIRECTORY}/hugepages.lock"
    handle = host.lock_file(lock, shared=True, patience=PATIENCE_S)
    if isinstance(handle, bytes):
        raise RigTrouble(f"{host.name}: another run has held {lock} for {PATIENCE_S:g} s")
    try:
        pool = int(journal.borrow(POOL, lock))
        try:
            journal.change(POOL, str(pool + max(0, pages - _free(host))))
            _check(host, pages)
            yield
        finally:
            journal.restore(POOL)
    finally:
        host.unlock_file(handle)


def _check(host: Host, pages: int) -> None:
    free = _free(host)
    if free < pages:
        size = page_bytes(host) >> 10
        raise RigTrouble(
            f"{host.name}: {pages} free hugepages of {size} KiB are needed, and the kernel has "
            f"memory for {free}: it is short, or in pieces; end what uses it, or reserve them at "
            f"boot with hugepages={pages} on the kernel's command line"
        )


def _free(host: Host) -> int:
    """Pages that nobody has and nobody has been promised."""
    found = _meminfo(host)
    return found.get("HugePages_Free", 0) - found.get("HugePages_Rsvd", 0)


def _meminfo(host: Host) -> dict[str, int]:
    """Its figures: pages where it counts pages, else KiB."""
    text = host.read_file(MEMINFO).decode("ascii", "replace")
    return {name: int(number) for name, number in re.findall(r"(?m)^(\w+): +(\d+)", text)}
