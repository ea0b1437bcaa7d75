"""Record what a drive of a rig is sent, while it is used, by blktrace."""

import gzip
import re
from importlib.resources import files
from typing import TYPE_CHECKING

from leadline.errors import RigTrouble
from leadline.host.programs import require
from leadline.host.trouble import last_lines
from leadline.trace.blkparse import Recorded, read_blkparse

if TYPE_CHECKING:
    from leadline.host.connection import Host

MOST_S = 86_400
_BESIDE_S = 120.0  # for blktrace to start and to end
_AFTER = 3.0
"""How long at most blkparse and gzip are with the events of a second, on a slow processor: of a
drive of 100,000 requests a second they are 200,000, and what was recorded is lost with them."""
_DROPPED = re.compile(r"You have +(\d+) .*dropped events")


def record(host: "Host", node: str, seconds: int) -> Recorded:
    """What `node` is sent for so long.  It is not touched: what is recorded is others' work.

    Raises RigTrouble where blktrace is missing, may not trace, or could not keep up; Misuse
    where the drive was sent nothing.
    """
    for program in ("blktrace", "blkparse"):
        require(host, program)
    script = files("leadline.trace").joinpath("record.sh").read_text("ascii")
    argv = ["sh", "-c", script, "leadline-record", node, str(seconds)]
    done = host.run(argv, deadline=_BESIDE_S + (1 + _AFTER) * seconds, check=False)
    said = done.stderr.decode("utf-8", "replace")
    where = f"{host.name}: {node}"
    if done.exit_code != 0:
        raise RigTrouble(
            f"{where}: blktrace recorded nothing (exit code {done.exit_code}); it needs root and a "
            f"kernel with CONFIG_BLK_DEV_IO_TRACE. It said:{last_lines(said) or ' nothing'}"
        )
    if dropped := _DROPPED.search(said):
        raise RigTrouble(
            f"{where}: blktrace lost {dropped[1]} events: the trace would have holes; record "
            "again while the rig's processors are less busy"
        )
    return read_blkparse(gzip.decompress(done.stdout).splitlines(keepends=True), where)
