"""A generated firmware matrix: how long its plan takes, and pytest's collection of its cells."""

import hashlib
import json
import os
import signal
import subprocess
import sys
import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from pathlib import Path
from statistics import median
from tempfile import TemporaryDirectory
from threading import Event, Timer

ROUNDS = 5
PLAN_LIMIT_S, PLAN_LIMIT_MB, COLLECT_LIMIT_S = 2.0, 300.0, 10.0
WORKERS = 2
DEADLINE_S = 300.0
"""Of one process: a plan or a collection that hangs is to end the benchmark, and nothing else."""


@dataclass(frozen=True)
class Size:
    """How large the matrix is, how many drives stand for it, and how many tests each has."""

    models: int = 200
    firmware: int = 50
    controllers: int = 10
    issues: int = 300
    drives: int = 500
    """Without `flash`, so that each has one visit: what is collected is drives x tests."""
    tests: int = 20


@dataclass(frozen=True)
class Planned:
    """One `leadline plan --json`, as a process of its own."""

    seconds: float
    cpu_s: float
    """Of them, those in which it computed: the others are a busy machine's."""
    peak_mb: float
    wanted: int
    visits: int


def measure() -> dict[str, object]:
    """Seconds and MB of a plan, seconds of a collection, and whether the workers agree."""
    size = Size()
    with TemporaryDirectory(prefix="leadline-bench-") as name:
        folder = Path(name)
        write_matrix(folder, size)
        flashing = write_rigs(folder / "flashing", size, size.models, flash=True)
        planned = [plan(folder, flashing) for _ in range(ROUNDS)]
        lying = write_rigs(folder / "lying", size, size.drives, flash=False)
        write_tests(folder, size)
        collecting = [collect(folder, lying) for _ in range(ROUNDS)]
        workers = worker_ids(folder, lying)
    plan_s, plan_mb = median(each.seconds for each in planned), max(p.peak_mb for p in planned)
    collect_s = median(seconds for seconds, _ in collecting)
    items = size.drives * size.tests
    same = len(workers) == WORKERS and set(workers) == {(items, workers[0][1])}
    whole = {(p.wanted, p.visits) for p in planned} == {
        (size.models * size.firmware * size.controllers, size.models * size.firmware)
    }
    return {
        "cells": planned[0].wanted,
        "visits": planned[0].visits,
        "known_issues": size.issues,
        "plan_s": round(plan_s, 2),
        "plan_worst_s": round(max(each.seconds for each in planned), 2),
        "plan_cpu_s": round(median(each.cpu_s for each in planned), 2),
        "plan_limit_s": PLAN_LIMIT_S,
        "plan_peak_mb": round(plan_mb),
        "plan_limit_mb": PLAN_LIMIT_MB,
        "collected": collecting[0][1],
        "collect_s": round(collect_s, 2),
        "collect_limit_s": COLLECT_LIMIT_S,
        "workers_collect_the_same": same,
        "within_limits": whole
        and plan_s <= PLAN_LIMIT_S
        and plan_mb <= PLAN_LIMIT_MB
        and collect_s <= COLLECT_LIMIT_S
        and {count for _, count in collecting} == {items}
        and same,
    }


def plan(folder: Path, rigs: Sequence[Path]) -> Planned:
    """`leadline plan --json`, from the start of its process to its end."""
    argv = [sys.executable, "-m", "leadline.cli", "plan", "--json", *_files(folder, rigs)]
    with (folder / "plan.json").open("wb") as out:
        begun = time.perf_counter()
        process = subprocess.Popen(argv, stdout=out, start_new_session=True)
        with _deadline(process, "leadline plan"):
            _, status, usage = os.wait4(process.pid, 0)
        seconds = time.perf_counter() - begun
    process.returncode = os.waitstatus_to_exitcode(status)
    if process.returncode != 0:
        raise RuntimeError(f"leadline plan ended with {process.returncode}")
    report = json.loads((folder / "plan.json").read_text())
    peak_mb = usage.ru_maxrss * 1024 / 1e6
    cpu_s = usage.ru_utime + usage.ru_stime
    return Planned(seconds, cpu_s, peak_mb, report["cells"]["wanted"], len(report["visits"]))


def collect(folder: Path, rigs: Sequence[Path]) -> tuple[float, int]:
    """Seconds and number of items of pytest's collection, as a process of its own."""
    begun = time.perf_counter()
    done = _pytest(folder, rigs, "--collect-only", "-qq")
    seconds = time.perf_counter() - begun
    last = done.stdout.strip().rpartition(" ")[2]  # -qq: `test_cells.py: 10000`
    if done.returncode != 0 or not last.isdecimal():
        raise RuntimeError(f"pytest ended with {done.returncode}: {done.stdout[-2000:]}")
    return seconds, int(last)


def worker_ids(folder: Path, rigs: Sequence[Path]) -> list[tuple[int, str]]:
    """How many items each xdist worker collects, and a hash of their ids in their order."""
    told = folder / "workers"
    told.unlink(missing_ok=True)
    _pytest(folder, rigs, "-n", str(WORKERS), "-q")
    lines = [line.split() for line in told.read_text().splitlines()]
    return [(int(count), digest) for count, digest in lines]


def _pytest(
    folder: Path, rigs: Sequence[Path], *arguments: str
) -> subprocess.CompletedProcess[str]:
    argv = [sys.executable, "-m", "pytest", "-p", "no:cacheprovider", *arguments]
    argv += [*_files(folder, rigs), str(folder / "tests")]
    with (
        subprocess.Popen(
            argv,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
            cwd=folder,
            start_new_session=True,
        ) as process,
        _deadline(process, "pytest"),
    ):
        said, _ = process.communicate()
    return subprocess.CompletedProcess(argv, process.returncode, said)


@contextmanager
def _deadline(
    process: subprocess.Popen[bytes] | subprocess.Popen[str], what: str
) -> Iterator[None]:
    """Kills a process and its children, a session of their own, when its time is up.

    Raises RuntimeError then.
    """
    late = Event()

    def kill() -> None:
        with suppress(ProcessLookupError):
            os.killpg(process.pid, signal.SIGKILL)

    def end() -> None:
        late.set()
        kill()

    timer = Timer(DEADLINE_S, end)
    timer.start()
    try:
        yield
    except BaseException:  # a Ctrl-C does not reach another session
        kill()
        raise
    finally:
        timer.cancel()
    if late.is_set():
        raise RuntimeError(f"{what} was not done in {DEADLINE_S:g} s")


def _files(folder: Path, rigs: Sequence[Path]) -> list[str]:
    words = [word for rig in rigs for word in ("--rig", str(rig))]
    return [*words, "--matrix", str(folder / "firmware_matrix.yaml")]


# What is generated.


def write_matrix(folder: Path, size: Size) -> None:
    """A matrix, with an image for each revision, which the models share."""
    images = folder / "images"
    images.mkdir()
    hashes = []
    for n in range(size.firmware):
        data = f"firmware {n}".encode()
        (images / f"{n}.bin").write_bytes(data)
        hashes.append(hashlib.sha256(data).hexdigest())
    lines = ["classes:", "  ssd:"]
    for claim in ("depth_8_over_depth_1", "threads_ncq_on_over_off", "read_mb_per_s"):
        lines += [f"    {claim}:", "      at_least: 3", "      source: a bench"]
    lines += ["controllers:", *_controllers(size), "known_issues:", *_issues(size), "models:"]
    for n in range(size.models):
        lines += _model(n, size, hashes)
    (folder / "firmware_matrix.yaml").write_text("\n".join(lines) + "\n")


def _controllers(size: Size) -> Iterator[str]:
    for n in range(size.controllers):
        yield f"  - {{name: controller-{n}, pci_id: '8086:{n:04x}', driver: ahci, ncq: required}}"


def _issues(size: Size) -> Iterator[str]:
    """Half of the known issues: those of several firmware, or of a controller."""
    for n in range(size.issues // 2):
        yield "  - claim: depth_8_over_depth_1"
        yield f"    summary: Issue {n} of a bench."
        yield f"    link: https://tracker.example.org/{n}"
        yield f"    model: MAKER {n % size.models:04d}*"
        yield f"    controller: controller-{n % size.controllers}"
        yield "    expires: 2099-12-31"


def _model(n: int, size: Size, hashes: Sequence[str]) -> Iterator[str]:
    """One in ten is a glob, and each has its share of the other known issues."""
    name = f"MAKER {n:04d}*" if n % 10 == 9 else f"MAKER {n:04d} SSD"
    yield from (f"  - model: {name}", "    class: ssd", "    protocol: sata")
    yield from ("    queue_depth: 32", "    firmware:")
    for k, digest in enumerate(hashes):
        yield f"      - revision: FW{k:04d}"
        yield f"        status: {'released' if k == 0 else 'candidate'}"
        yield f"        image: images/{k}.bin"
        yield f"        sha256: {digest}"
        if k:
            yield f"        predecessor: FW{k - 1:04d}"
        # The others, one a firmware, spread over the models.
        if n + k * size.models < size.issues - size.issues // 2:
            yield "        known_issues:"
            yield "          - claim: threads_ncq_on_over_off"
            yield f"            summary: Another of model {n}."
            yield f"            link: https://tracker.example.org/model/{n}"


def write_rigs(folder: Path, size: Size, drives: int, *, flash: bool) -> list[Path]:
    """A rig for each controller; the drives are dealt out to them, model by model."""
    folder.mkdir()
    paths = []
    for c in range(size.controllers):
        lines = [f"rig: bench-{c}", "host: {reach: local}", "controllers:"]
        lines += [f"  - {{name: hba, pci_id: '8086:{c:04x}', driver: ahci}}", "drives:"]
        for n in range(c, drives, size.controllers):
            lines += [f"  - slot: slot{n}", f"    model: MAKER {n % size.models:04d} SSD"]
            lines += [f"    serial: S{n:06d}", "    firmware: FW0000", "    controller: hba"]
            lines += ["    protocol: sata"]
            if flash:
                command = "{command: [flasher, '{image}'], runs_on: here, activates: at-once}"
                lines += [f"    flash: {command}"]
        paths.append(folder / f"bench-{c}.yaml")
        paths[-1].write_text("\n".join(lines) + "\n")
    return paths


CONFTEST = """\
import hashlib
from pathlib import Path


def pytest_xdist_node_collection_finished(node, ids):
    digest = hashlib.sha256("\\n".join(ids).encode()).hexdigest()
    with (Path(__file__).parents[1] / "workers").open("a") as told:
        told.write(f"{len(ids)} {digest}\\n")


def pytest_runtest_protocol(item, nextitem):
    return True  # and so nothing is run
"""


def write_tests(folder: Path, size: Size) -> None:
    """Tests that each drive of the rigs has; the claims of half of them have a limit."""
    tests = folder / "tests"
    tests.mkdir()
    (tests / "conftest.py").write_text(CONFTEST)
    (folder / "pytest.ini").write_text("[pytest]\n")
    lines = ["import pytest"]
    for n in range(size.tests):
        if n % 2:
            lines.append("@pytest.mark.claim('depth_8_over_depth_1')")
        lines.append(f"def test_{n}(visit): raise AssertionError('nothing is run here')")
    (tests / "test_cells.py").write_text("\n".join(lines) + "\n")
