"""From a fresh clone with nothing cached to the summary table.

System packages are not removed first, so their installation is not in the figure where
they are there already; `./run` prints what it installs.
"""

import os
import subprocess
import sys
import tempfile
import time
from pathlib import Path

LIMIT_S = 360.0
REPOSITORY = Path(__file__).resolve().parent.parent


def measure() -> dict[str, object]:
    """Clone, make the environment, build the guest, run the suite; wall seconds."""
    with tempfile.TemporaryDirectory(prefix="leadline-cold-") as scratch:
        clone = Path(scratch, "clone")
        subprocess.run(["git", "clone", "--quiet", REPOSITORY, clone], check=True)
        environment = {**os.environ, "XDG_CACHE_HOME": str(Path(scratch, "cache"))}
        begun = time.monotonic()
        done = subprocess.run(
            [clone / "run", "hil"],
            cwd=clone,
            env=environment,
            stdout=sys.stderr,  # its table is none of the figures
            check=False,
            timeout=1800,
        )
        wall = time.monotonic() - begun
    return {
        "exit_code": done.returncode,
        "wall_s": round(wall, 1),
        "limit_s": LIMIT_S,
        "within_limits": done.returncode == 0 and wall <= LIMIT_S,
    }
