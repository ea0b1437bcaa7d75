"""A rig's memory in pieces, as that of a server is that has been up for long.

Fresh memory is so much in one piece that a request of 1 MiB needs few segments, and passes whole.
"""

from collections.abc import Iterator
from contextlib import contextmanager

from leadline.host.connection import Host

HUGE = "/sys/kernel/mm/transparent_hugepage/enabled"
"""Where "never" keeps a program's ordinary memory of ordinary pages."""
IN_PIECES_S = 120.0
# Takes what memory there is but SPARE, and gives every other page of it back.
TO_PIECES = """
import mmap, sys, time

PAGE, SPARE = 4096, 96 << 20
free = next(line for line in open("/proc/meminfo") if line.startswith("MemFree:"))
size = ((int(free.split()[1]) << 10) - SPARE) // PAGE * PAGE
memory = mmap.mmap(-1, size, flags=mmap.MAP_PRIVATE | mmap.MAP_ANONYMOUS)
for at in range(0, size, PAGE):
    memory[at] = 1
for at in range(0, size, 2 * PAGE):
    memory.madvise(mmap.MADV_DONTNEED, at, PAGE)
print("in pieces", flush=True)
time.sleep(3600)
"""


@contextmanager
def in_pieces(host: Host) -> Iterator[None]:
    """The rig's free memory has no two pages that are neighbours, or hardly any."""
    with host.start(["python3", "-c", TO_PIECES]) as holding:
        assert holding.lines(IN_PIECES_S) == ["in pieces"], holding.stderr
        yield
