"""A drive model on this machine whose first block cannot be read, as a file."""

import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

PROFILE = """
model: LEADLINE VSSD
serial: VSSD0009
firmware: "1.0"
capacity_bytes: 8388608
channels: 8
read_ms: 1
write_ms: 1
faults:
  bad_lbas: [0]
"""


@contextmanager
def drive_model(directory: Path) -> Iterator[Path]:
    """A drive model whose first block cannot be read, as a file; its log is there at the end."""
    if not Path("/dev/fuse").exists():
        pytest.skip("no FUSE on this machine")
    profile = directory / "profile.yaml"
    profile.write_text(PROFILE)
    argv = [sys.executable, "-m", "leadline.virtual.medium", "--profile", str(profile)]
    argv += ["--state", str(directory), "--mount", str(directory / "mnt")]
    with subprocess.Popen(argv, stdout=subprocess.PIPE, text=True) as process:
        assert process.stdout is not None
        try:
            assert process.stdout.readline().strip() == "ready"
            yield directory / "mnt" / "medium"
        finally:
            process.terminate()
