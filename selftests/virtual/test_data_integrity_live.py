"""Verified writes on a virtual rig, from `leadline hil`: power is cut in the middle of the load.

One drive loses its power by itself and one with its host.  In turn one of them ignores flushes
(V21, and what V12 looks like from outside); the other one loses, with the power, what was not
flushed, which it may (V13).  A third one misreads under queued load (V14).
"""

import json
import re
import subprocess
import sys
from dataclasses import dataclass
from pathlib import Path

import pytest

from leadline.inventory.rig import load_rig
from leadline.virtual import rig as virtual
from leadline.virtual.request_log import read_request_log
from leadline.virtual.state import State
from selftests.virtual.conftest import RIGS, MakeRig
from selftests.visit_world import kept

DEADLINE_S = 1200.0
PROFILES = {"scsi1": "vscsi-1.0.yaml", "ssd1": "vssd-1.0.yaml"}
CLAIMS = {
    "every_read_beside_queued_writes_returns_what_was_written": "read_back_at_once",
    "acknowledged_writes_outlast_a_graceful_power_cycle": "graceful",
    "flushed_writes_outlast_a_power_cut_in_the_middle_of_the_load": "cut",
}


@dataclass(frozen=True)
class Ran:
    """Outcomes and messages by (slot, test); the most requests in each drive's hands."""

    outcomes: dict[tuple[str, str], str]
    messages: dict[tuple[str, str], str]
    in_flight: dict[str, int]
    said: str


def faulty(folder: Path, name: str, faults: str) -> Path:
    path = folder / name
    path.write_text((RIGS / "profiles" / name).read_text() + f"\nfaults: {{{faults}}}\n")
    return path


def run(rig_file: Path, results: Path, which: str) -> Ran:
    """The suite's tests of data integrity, on the drives that `which` selects."""
    rig = load_rig(rig_file)
    words = [sys.executable, "-m", "leadline.cli", "hil", "--rig", str(rig_file), "--json"]
    words += ["--results", str(results), "--allow-writes", "-m", "acceptance"]
    words += ["-k", f"data_integrity and ({which})"]
    with virtual.running(rig):
        done = subprocess.run(
            words, capture_output=True, text=True, timeout=DEADLINE_S, check=False
        )
        in_flight = {
            slot: max(
                request.in_flight
                for request in read_request_log(State(rig.name).medium(slot) / "requests.jsonl")
            )
            for slot in PROFILES
        }
    print(done.stderr)
    outcomes, messages = {}, {}
    for row in json.loads(done.stdout)["outcomes"]:
        key = row["cell"].split("-")[-3], CLAIMS[row["claim"]]
        outcomes[key], messages[key] = row["outcome"], row["message"]
    return Ran(outcomes, messages, in_flight, done.stderr)


@pytest.mark.long
@pytest.mark.parametrize("slot", PROFILES)
def test_a_drive_that_ignores_flushes_fails_and_a_healthy_one_beside_it_passes(
    make_rig: MakeRig, tmp_path: Path, slot: str
) -> None:
    name = PROFILES[slot]
    profile = faulty(tmp_path, name, "ignore_flush: true")
    rig = make_rig(f"flush-{slot}", (f"{RIGS}/profiles/{name}", str(profile)))
    ran = run(rig, tmp_path / "results", "VSCSI or VSSD-1.0")
    other = next(each for each in PROFILES if each != slot)
    assert ran.outcomes == {
        (slot, "read_back_at_once"): "pass",
        (slot, "graceful"): "fail",
        (slot, "cut"): "fail",
        (other, "read_back_at_once"): "pass",
        (other, "graceful"): "pass",
        (other, "cut"): "pass",
    }
    for when in ("graceful", "cut"):
        assert re.search(
            r"(\d+) of \1 sectors are wrong\. The first: LBA 2048 holds what is no write of ours",
            ran.messages[slot, when],
        )
    for each in PROFILES:
        assert ran.in_flight[each] >= 4, "requests were in the drive's hands side by side"
    found = [row for row in kept(tmp_path, "environment") if "read back at once" in row["name"]]
    sent = {row["name"].split("-")[-3]: row["value"] for row in found}
    assert re.search(r"\d+ WRITE FPDMA QUEUED", sent["ssd1"])
    assert re.search(r"\d+ WRITE_1[06]", sent["scsi1"])


def test_a_drive_that_returns_another_sectors_data_fails(make_rig: MakeRig, tmp_path: Path) -> None:
    name = PROFILES["scsi1"]
    profile = faulty(tmp_path, name, "wrong_data: {one_in: 50}")
    rig = make_rig("misreads", (f"{RIGS}/profiles/{name}", str(profile)))
    ran = run(rig, tmp_path / "results", "VSCSI and every_read")
    assert ran.outcomes == {("scsi1", "read_back_at_once"): "fail"}
    assert re.search(r"wrong sectors: LBA \d+ holds ", ran.messages["scsi1", "read_back_at_once"])
