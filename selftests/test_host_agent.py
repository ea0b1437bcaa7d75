"""The agent itself: on which Pythons its source runs, and what it makes of its requests."""

import ast
import json
import os
import shutil
import subprocess
import threading
import time
from importlib.resources import files

import pytest

from leadline.host import agent_bytes
from leadline.host.agent import Agent
from leadline.host.wire import BOOTSTRAP, PARTS, agent_source
from selftests.local_hosts import AWAIT_S


def answers(python: str) -> bool:
    return subprocess.run([python, "-V"], capture_output=True, check=False).returncode == 0


class TestAgentSource:
    @pytest.mark.parametrize("part", PARTS)
    def test_is_python_3_8(self, part: str) -> None:
        source = files("leadline.host").joinpath(f"{part}.py").read_text()
        ast.parse(source, feature_version=(3, 8))

    @pytest.mark.parametrize("python", ["python3.8", "python3.9", "python3.13"])
    def test_runs_on(self, python: str) -> None:
        program = shutil.which(python)
        if not program or not answers(program):
            pytest.skip(f"{python} is not installed")
        source = agent_source()
        request = b'{"id":7,"op":"run","argv":["echo","hi"],'
        request += b'"input":{"b":""},"deadline":9,"handle":null,"sample":null}\n'
        with subprocess.Popen(
            [program, "-IS", "-c", BOOTSTRAP], stdin=subprocess.PIPE, stdout=subprocess.PIPE
        ) as process:
            assert process.stdin
            assert process.stdout
            process.stdin.write(b"%d\n%s" % (len(source), source))
            process.stdin.flush()
            assert process.stdout.readline().startswith(b'{"hello":')
            process.stdin.write(request)
            process.stdin.flush()
            assert process.stdout.readline() == b'{"id":7,"stdout":{"b":"aGkK"}}\n'
            assert b'"code":0' in process.stdout.readline()
            process.stdin.close()
            assert process.wait(AWAIT_S) == 0

    def test_an_old_python_is_told_apart(self) -> None:
        program = shutil.which("python2.7")
        if not program or not answers(program):
            pytest.skip("no old Python here")
        done = subprocess.run([program, "-c", BOOTSTRAP], capture_output=True, check=False)
        assert b"python3 too old: 2.7" in done.stderr or b"no attribute 'buffer'" in done.stderr


@pytest.mark.parametrize("data", [b"", b"x", bytes(range(256)) * 8, bytes(5000)])
def test_bytes_survive_the_wire(data: bytes) -> None:
    assert agent_bytes.unpack(agent_bytes.pack(data)) == data


def test_a_long_request_takes_time_as_it_is_long() -> None:
    """A firmware image is one line, in some hundred pieces: not each is joined to all before it."""
    reading, writing = os.pipe()
    line = json.dumps({"id": 1, "data": "A" * (1 << 25)}).encode() + b'\n{"id": 2}\n'

    def feed() -> None:
        agent_bytes.write_all(writing, line)
        os.close(writing)

    feeder = threading.Thread(target=feed, daemon=True)
    feeder.start()
    begun = time.thread_time()
    long, short = Agent(reading, writing)._requests()
    spent_s = time.thread_time() - begun
    os.close(reading)
    assert (len(long["data"]), short) == (1 << 25, {"id": 2})
    assert spent_s < 1.5, "of this thread's processor time, whatever else runs here"
