"""Others' programs between Leadline and a PDU: started for one test, on loopback, and stopped."""

import shutil
import socket
import subprocess
from collections.abc import Iterator
from contextlib import contextmanager

import pytest

STARTS_S = 10.0
"""How long one may take until it can be spoken to."""


def needs(*programs: str) -> pytest.MarkDecorator:
    """Skip where one of `programs` is not installed; `./run selftest` installs them all."""
    missing = [name for name in programs if found(name) is None]
    return pytest.mark.skipif(bool(missing), reason=f"not installed: {', '.join(missing)}")


def found(program: str) -> str | None:
    return shutil.which(program, path="/usr/sbin:/usr/bin:/sbin:/bin")


def free_port() -> int:
    """A loopback port that nobody listens on just now."""
    with socket.create_server(("127.0.0.1", 0)) as probe:
        port: int = probe.getsockname()[1]
    return port


@contextmanager
def running(*command: str) -> Iterator[None]:
    """A program in the foreground, for as long as the block takes."""
    path = found(command[0])
    assert path is not None
    program = subprocess.Popen(
        [path, *command[1:]], stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL
    )
    try:
        yield
    finally:
        program.terminate()
        program.wait(10)
