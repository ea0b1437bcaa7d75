"""A run that is killed at any moment leaves nothing that the next run does not mend."""

import os
import random
import select
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest

from leadline.host.connection import Host
from leadline.host.journal import replay
from selftests.local_hosts import AWAIT_S, directory, next_host

__all__ = ["directory", "next_host"]  # fixtures

RUN = """
import sys
from leadline.host.connection import open_host
from leadline.host.journal import Journal
from leadline.inventory.rig import HostSpec
host = open_host(HostSpec(reach="local"))
agent = host.run(["sh", "-c", "echo $PPID"], deadline=10).stdout.decode().strip()
print(agent, flush=True)
while True:
    with Journal(host, "run", directory=sys.argv[1]) as journal:
        for value in "8", "1":
            for path in sys.argv[2:]:
                journal.change(path, value)
"""


@pytest.mark.parametrize("victim", ["run", "agent"])
def test_a_run_killed_at_any_moment_is_mended(
    victim: str, next_host: Host, directory: str, tmp_path: Path
) -> None:
    """Fifteen kills of each, at moments drawn over several rounds of change and giving back."""
    moments = random.Random(victim)
    paths = [tmp_path / f"attribute{number}" for number in range(4)]
    left_behind = 0
    for _ in range(15):
        for path in paths:
            path.write_text("32")
        argv = [sys.executable, "-c", RUN, directory, *map(str, paths)]
        with subprocess.Popen(argv, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL) as run:
            assert run.stdout
            agent = int(run.stdout.readline())
            agent_end = os.pidfd_open(agent)
            time.sleep(moments.uniform(0.0, 0.06))  # the moment is what is tried
            os.kill(run.pid if victim == "run" else agent, signal.SIGKILL)
            assert select.select([agent_end], [], [], AWAIT_S)[0]
            os.close(agent_end)
            run.kill()
        left_behind += any(path.read_text() != "32" for path in paths)
        replay(next_host, run_id="run", patience=AWAIT_S, directory=directory)
        assert [path.read_text() for path in paths] == ["32"] * len(paths)
        assert not Path(directory).exists() or next_host.list_dir(directory) == []
    assert left_behind > 0  # else nothing was tried
