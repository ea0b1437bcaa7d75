"""The whole suite on the virtual rig with everything installed: where does the time go?"""

import json
import subprocess
import sys
import tempfile
import time

WALL_LIMIT_S = 120.0
FRAMEWORK_LIMIT = 0.15
# What the framework waits for and does not cause: the rig's own time.
RIG_PHASES = ("boot", "drive", "off", "ready", "shutdown")


def measure() -> dict[str, object]:
    """Run `leadline hil` once; seconds by phase, and the framework's share of the wall time."""
    with tempfile.TemporaryDirectory() as results:
        begun = time.monotonic()
        argv = [sys.executable, "-m", "leadline.cli", "hil", "--json", "--results", results]
        done = subprocess.run(argv, stdout=subprocess.PIPE, check=False, timeout=900)
        wall = time.monotonic() - begun
    summary = json.loads(done.stdout)
    phases = summary["phases"]
    framework = wall - sum(phases.get(name, 0.0) for name in RIG_PHASES)
    share = framework / wall
    return {
        "exit_code": done.returncode,
        "wall_s": round(wall, 1),
        "wall_limit_s": WALL_LIMIT_S,
        "phases_s": phases,
        "framework_s": round(framework, 1),
        "framework_share": round(share, 3),
        "framework_limit": FRAMEWORK_LIMIT,
        "within_limits": done.returncode == 0 and wall <= WALL_LIMIT_S and share <= FRAMEWORK_LIMIT,
    }
