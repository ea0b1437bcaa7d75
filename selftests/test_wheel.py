"""The wheel in somebody else's repository: fixtures by installing it, the suite by its name."""

import os
import subprocess
import sys
import zipfile
from collections.abc import Sequence
from pathlib import Path

import pytest

REPOSITORY = Path(__file__).resolve().parent.parent
OWN_TEST = """
def test_of_the_vendors_own(random_read, expected):
    assert random_read.at(depth=32) >= 2 * random_read.at(depth=1)
"""


def run(argv: Sequence[str | Path], cwd: Path) -> str:
    """A program's output; its failure is this test's, with what it said."""
    bare = {name: value for name, value in os.environ.items() if not name.startswith("PYTHON")}
    done = subprocess.run(
        argv, cwd=cwd, env=bare, capture_output=True, text=True, check=False, timeout=300
    )
    assert done.returncode == 0, f"{argv}\n{done.stdout}\n{done.stderr}"
    return done.stdout


@pytest.fixture(scope="module")
def wheel(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Built as a release is: an sdist first, and the wheel from that."""
    out = tmp_path_factory.mktemp("dist")
    run([sys.executable, "-m", "build", "--no-isolation", "--outdir", out], REPOSITORY)
    (built,) = out.glob("*.whl")
    return built


def test_wheel_carries_fixtures_suite_rigs_and_matrix(wheel: Path) -> None:
    names = set(zipfile.ZipFile(wheel).namelist())
    for needed in (
        "leadline/fixtures/load.py",
        "leadline/suite/test_queue_depth.py",
        "leadline/rigs/virtual.yaml",
        "leadline/rigs/profiles/vssd-1.1.yaml",
        "leadline/firmware_matrix.yaml",
        "leadline/load/batch.sh",
        "leadline/virtual/guest/init",
        "leadline/py.typed",
    ):
        assert needed in names
    assert any(name.endswith("licenses/LICENSE") for name in names)


def test_vendors_repository_has_fixtures_and_suite(wheel: Path, tmp_path: Path) -> None:
    run([sys.executable, "-m", "venv", "env"], tmp_path)
    python = tmp_path / "env" / "bin" / "python"
    run([python, "-m", "pip", "install", "--quiet", "--no-compile", wheel], tmp_path)
    vendor = tmp_path / "vendor"
    vendor.mkdir()
    (vendor / "test_own.py").write_text(OWN_TEST)
    rig = run([python, "-c", "import leadline; print(leadline.__path__[0])"], vendor).strip()
    assert not Path(rig).is_relative_to(REPOSITORY)
    collect: list[str | Path] = [python, "-m", "pytest", "--collect-only", "-q"]
    collect.append("--import-mode=importlib")
    asked_for = ["--rig", f"{rig}/rigs/virtual.yaml", "test_own.py", "--pyargs", "leadline.suite"]
    listing = run([*collect, *asked_for], vendor)
    assert "test_of_the_vendors_own[virtual-ssd1-LEADLINE_VSSD-1.0]" in listing
    assert "test_depth_8_is_at_least_three_times_depth_1[virtual-ssd1-" in listing
    planned = run([tmp_path / "env" / "bin" / "leadline", "plan", "--json"], vendor)
    assert "LEADLINE_VSSD-1.1" in planned
