"""The front door: ./run, in a plain POSIX shell, with programs present and missing."""

import os
import shutil
import subprocess
from pathlib import Path

import pytest

REPOSITORY = Path(__file__).resolve().parent.parent
# What the script itself runs; everything else is missing in these tests.
TOOLS = [
    "sh",
    "cat",
    "cut",
    "grep",
    "dirname",
    "pwd",
    "cksum",
    "id",
    "printf",
    "python3",
    "readlink",
]


@pytest.fixture
def bare(tmp_path: Path) -> Path:
    """A directory for PATH with next to nothing in it."""
    folder = tmp_path / "bin"
    folder.mkdir()
    for tool in TOOLS:
        found = shutil.which(tool)
        if found:
            (folder / tool).symlink_to(found)
    return folder


def run(path: Path | None, *arguments: str) -> "subprocess.CompletedProcess[str]":
    environment = dict(os.environ) if path is None else {**os.environ, "PATH": str(path)}
    return subprocess.run(
        [REPOSITORY / "run", *arguments],
        env=environment,
        capture_output=True,
        text=True,
        check=False,
        timeout=60,
    )


def test_help_names_the_commands_with_examples() -> None:
    done = run(None, "--help")
    assert done.returncode == 0
    for word in ("hil", "selftest", "bench", "shell", "--no-install", "Examples:"):
        assert word in done.stdout


@pytest.mark.parametrize("arguments", [(), ("frobnicate",)])
def test_wrong_usage_is_2(arguments: tuple[str, ...]) -> None:
    assert run(None, *arguments).returncode == 2


def test_no_install_lists_what_is_missing_and_why_and_installs_nothing(bare: Path) -> None:
    (bare / "apt-get").write_text("#!/bin/sh\necho installed >&2; exit 1\n")
    (bare / "apt-get").chmod(0o755)
    done = run(bare, "--no-install", "hil")
    assert done.returncode == 3
    assert "openssh-client: reaches rigs" in done.stderr
    assert "qemu-system-x86: runs the virtual rig" in done.stderr
    assert "installed" not in done.stderr


def test_a_rig_of_ones_own_needs_no_virtual_machine(bare: Path) -> None:
    done = run(bare, "--no-install", "hil", "--rig", "rigs/example-bench.yaml")
    assert "openssh-client" in done.stderr
    assert "qemu" not in done.stderr


@pytest.mark.parametrize("form", ["--rig={}", "--rig {}"])
def test_one_that_is_played_needs_it_by_whichever_name(bare: Path, form: str) -> None:
    words = form.format(REPOSITORY / "rigs/three-models/rig.yaml").split()
    assert "qemu" in run(bare, "--no-install", "hil", *words).stderr


def test_fedora_has_its_own_names(bare: Path) -> None:
    (bare / "dnf").write_text("#!/bin/sh\nexit 1\n")
    (bare / "dnf").chmod(0o755)
    done = run(bare, "--no-install", "hil")
    assert "qemu-system-x86-core" in done.stderr
    assert "openssh-clients" in done.stderr


def is_user(bare: Path, number: int) -> None:
    (bare / "id").unlink()
    (bare / "id").write_text(f"#!/bin/sh\necho {number}\n")
    (bare / "id").chmod(0o755)


@pytest.mark.parametrize(("manager", "package"), [("apt-get", "uidmap"), ("dnf", "shadow-utils")])
def test_only_an_ordinary_user_needs_what_builds_the_guest_without_root(
    bare: Path, manager: str, package: str
) -> None:
    """mmdebstrap only recommends it, and is installed without what it recommends."""
    (bare / manager).write_text("#!/bin/sh\nexit 1\n")
    (bare / manager).chmod(0o755)
    wanted = f"{package}: builds the guest without root"
    is_user(bare, 1000)
    assert wanted in run(bare, "--no-install", "hil").stderr
    assert wanted in run(bare, "--no-install", "selftest").stderr
    bench = run(bare, "--no-install", "hil", "--rig", "rigs/example-bench.yaml")
    assert wanted not in bench.stderr
    is_user(bare, 0)
    assert wanted not in run(bare, "--no-install", "hil").stderr


def test_packages_ask_nothing_while_they_are_installed_with_sudo(bare: Path) -> None:
    """sudo hands on none of its caller's variables."""
    says = 'echo "$1: $DEBIAN_FRONTEND" >&2; [ "$1" = update ]'
    (bare / "apt-get").write_text(f"#!/bin/sh\n{says}\n")
    (bare / "apt-get").chmod(0o755)
    (bare / "env").symlink_to(shutil.which("env") or "/usr/bin/env")
    (bare / "sudo").write_text('#!/bin/sh\nunset DEBIAN_FRONTEND\nexec "$@"\n')
    (bare / "sudo").chmod(0o755)
    is_user(bare, 1000)
    assert "install: noninteractive" in run(bare, "hil").stderr


def test_without_root_and_sudo_it_says_so(bare: Path) -> None:
    is_user(bare, 1000)
    (bare / "apt-get").write_text("#!/bin/sh\nexit 1\n")
    (bare / "apt-get").chmod(0o755)
    done = run(bare, "hil")
    assert done.returncode == 3
    assert "needs root and there is no sudo" in done.stderr


def test_packages_that_cannot_be_installed_end_it_plainly(bare: Path) -> None:
    (bare / "apt-get").write_text("#!/bin/sh\necho E: no network >&2; exit 100\n")
    (bare / "apt-get").chmod(0o755)
    (bare / "sudo").write_text('#!/bin/sh\nexec "$@"\n')
    (bare / "sudo").chmod(0o755)
    done = run(bare, "hil")
    assert done.returncode == 3
    assert "E: no network" in done.stderr
    assert "could not be installed" in done.stderr


def test_the_readme_leads_to_every_page() -> None:
    readme = (REPOSITORY / "README.md").read_text()
    found = [page.relative_to(REPOSITORY) for page in (REPOSITORY / "docs").glob("*/*.md")]
    pages = [page for page in found if page.parent.name != "decisions"]
    assert len(pages) > 20
    assert [str(page) for page in pages if f"({page})" not in readme] == []
