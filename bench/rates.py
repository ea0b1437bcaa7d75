"""Rates of slices against the same fio job run by hand on the same rig, interleaved."""

import json
import tempfile
from pathlib import Path
from statistics import median

from bench.virtual_drive import under_test
from leadline.drive import queue_depth
from leadline.drive.bind import Drive
from leadline.host.connection import Host
from leadline.load.fio import run_slices
from leadline.load.slices import SliceSetting, offered_for
from leadline.load.workload import random_read

PROFILE = """\
channels: 8
read_ms: 10
write_ms: 3
"""
DEPTHS = (1, 8)
ROUNDS = 8
# Long enough that what a job by hand loses at its start and end is no part of the figure.
SECONDS = 6.0
LIMIT = 0.02


def measure() -> dict[str, object]:
    """Median rates both ways and their ratio, by device queue depth."""
    with tempfile.TemporaryDirectory() as folder, under_test(Path(folder), PROFILE) as one:
        figures = {depth: _compare(one.host, one.drive, depth) for depth in DEPTHS}
    ratios = [float(each["ratio"]) for each in figures.values()]
    return {
        "requests_per_second": figures,
        "limit": LIMIT,
        "within_limits": all(abs(ratio - 1) <= LIMIT for ratio in ratios),
    }


def _compare(host: Host, drive: Drive, depth: int) -> dict[str, float]:
    host.write_value(queue_depth.path(drive), str(depth))
    pairs = []
    for n in range(ROUNDS):
        # Order alternates, as in a claim.
        if n % 2:
            by_hand, ours = _by_hand(host, drive, depth), _ours(host, drive, depth)
        else:
            ours, by_hand = _ours(host, drive, depth), _by_hand(host, drive, depth)
        pairs.append((ours, by_hand))
    return {
        "slices": round(median(ours for ours, _ in pairs), 1),
        "by_hand": round(median(by_hand for _, by_hand in pairs), 1),
        "ratio": round(median(ours / by_hand for ours, by_hand in pairs), 4),
    }


def _ours(host: Host, drive: Drive, depth: int) -> float:
    setting = SliceSetting(device_depth=depth, offered_depth=offered_for(depth), seconds=SECONDS)
    (measured,) = run_slices(
        host,
        drive.node,
        random_read(),
        [setting],
        depth_path=queue_depth.path(drive),
        seeds=[1],
    )
    return measured.rate


def _by_hand(host: Host, drive: Drive, depth: int) -> float:
    argv = ["fio", "--name=by-hand", f"--filename={drive.node}", "--readonly", "--direct=1"]
    argv += ["--ioengine=libaio", f"--iodepth={offered_for(depth)}", "--rw=randread", "--bs=4k"]
    argv += ["--norandommap", "--randrepeat=0", "--time_based", f"--runtime={SECONDS:g}"]
    done = host.run([*argv, "--output-format=json"], deadline=60)
    text = done.stdout.decode()
    return float(json.loads(text[text.index("{") :])["jobs"][0]["read"]["iops"])
