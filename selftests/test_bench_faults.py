"""The benchmark of seeded faults, without a rig: what it makes, and what it finds wrong."""

import json
import random
import re
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from bench import __main__ as front
from bench import faults
from bench.fault_case import BESIDE, FAULTY, WORDS, Case
from bench.fault_cases import CASES, UNTRIED
from bench.fault_rig import Ran, write_files
from bench.faults import Tried, carry_out, drawn, measure, settled, wrong_of
from leadline.errors import RigTrouble
from leadline.evidence import LONGEST_SLICE_S, needed_seconds
from leadline.inventory.matrix import load_matrix
from leadline.inventory.plan import plan
from leadline.inventory.rig import load_rig
from leadline.virtual.machine import attachments
from leadline.virtual.profile import load_profile
from selftests.virtual.conftest import RIGS

TRANSPORT_MS = 2.0
"""What the way to a virtual drive takes on a busy host without hardware virtualisation."""
SAID = {
    "V1": "FAIL: not queueing: random_read.at(depth=8)",
    "V6": "a setting allows no queue: device queue depth is 1\nthe device queue depth is 1",
}


@pytest.mark.parametrize("name", CASES)
@pytest.mark.parametrize("seed", [1, 2, 3])
def test_a_cases_rig_matrix_and_profiles_can_be_read(tmp_path: Path, name: str, seed: int) -> None:
    case = drawn(name, seed)
    rig_file, matrix_file = write_files(tmp_path, "r", case.drives, case.kernel_arguments)
    rig, matrix = load_rig(rig_file), load_matrix(matrix_file)
    assert [visit.cell.slot for visit in plan([rig], matrix)] == [d.slot for d in case.drives]
    assert FAULTY in {drive.slot for drive in case.drives} <= {FAULTY, BESIDE}
    assert len(attachments(rig)) == len(case.drives)
    for drive in case.drives:
        profile = load_profile(tmp_path / f"{drive.slot}.yaml")
        spec = rig.drive(drive.slot)
        assert (profile.serial, profile.wwn, profile.firmware) == (
            spec.serial,
            spec.wwn,
            spec.firmware,
        )
        assert profile.is_scsi == (spec.protocol == "scsi")
    for _, words in case.right.values():
        re.compile(words)
    assert case.words[-1].count(" or ") == len(case.right) - 1


def test_every_fault_is_tried_or_said_not_to_be() -> None:
    numbered = {name for name in (*CASES, *UNTRIED) if re.fullmatch(r"V\d+", name)}
    assert numbered == {f"V{number}" for number in range(1, 26)}
    assert not CASES.keys() & UNTRIED.keys()
    assert "V10b" in UNTRIED, "a drive that is late is tried, one that is slow from then on is not"


@pytest.mark.parametrize("name", ["V12", "V14", "V21"])
def test_what_is_wrong_with_data_is_seeded_on_both_buses_and_found_by_the_same_test(
    name: str,
) -> None:
    on_scsi, on_sata = (made(random.Random(1)) for made in (CASES[name], CASES[f"{name}sata"]))
    assert [drive.bus for drive in (*on_scsi.drives, *on_sata.drives)] == [
        *["virtio-scsi"] * 2,
        *["ahci"] * 2,
    ]
    faulty, beside = on_sata.drives
    assert (faulty.profile, on_sata.right) == (on_scsi.drives[0].profile, on_scsi.right)
    assert (faulty.slot, beside.slot) == (FAULTY, BESIDE)
    assert "faults" in faulty.profile and "faults" not in beside.profile
    assert on_sata.right_for(BESIDE) == dict.fromkeys(on_sata.right, ("pass", ""))


@pytest.mark.parametrize("name", ["V22", "V23"])
@pytest.mark.parametrize("seed", [1, 2, 3])
def test_what_must_pass_though_it_is_hard_to_measure_is_not_far_above_its_limit(
    name: str, seed: int
) -> None:
    """Eight times depth 1, where 3 is asked for, is no trial of a judge."""
    (drive,) = drawn(name, seed).drives
    profile: Any = drive.profile
    gain = profile["channels"] * (1 + profile.get("overhead_ms", 0) / profile["read_ms"])
    assert 3 < gain < 4.5
    if name == "V23":
        warm_up = profile["warm_up"]
        a_minute = 60 / warm_up["seconds"] * (warm_up["factor"] - 1)
        assert a_minute >= 0.4, "that much of the time a cold one takes"
        assert warm_up["seconds"] >= 300, "it is not warm before the first slice"


@pytest.mark.parametrize("name", ["V1mix", "V2mix", "V3mix"])
@pytest.mark.parametrize("seed", range(20))
def test_a_busy_server_gets_slices_that_are_long_enough_at_every_depth(
    name: str, seed: int
) -> None:
    """With 128 offered, at depth 1 and at the fault: of 20 ms a read they would be too long."""
    case = drawn(name, seed)
    for drive in case.drives:
        profile: Any = drive.profile
        service_ms = 0.7 * profile["read_ms"] + 0.3 * profile["write_ms"] + TRANSPORT_MS
        rates = [1.0]
        for each in profile.get("faults", {}).get("slow_depths", []):
            served = min(each.get("at", 8), each.get("beyond", 8), profile["channels"])
            rates.append(served / each["factor"])
        assert needed_seconds(128, 1000 / service_ms * min(rates)) <= LONGEST_SLICE_S
    faulty, beside = case.drives
    assert "faults" in faulty.profile or faulty.profile["channels"] == 1
    assert "faults" not in beside.profile and beside.profile["channels"] == 8
    assert {drive.profile["read_ms"] for drive in case.drives} == {faulty.profile["read_ms"]}


@pytest.mark.parametrize("name", CASES)
def test_each_claim_of_a_case_has_its_test_among_those_of_its_purpose(name: str) -> None:
    """`-m acceptance` leaves out the curves of the mix, and whatever a case has chosen there."""
    case = drawn(name, 1)
    texts = [path.read_text() for path in (RIGS.parent / "suite").glob("test_*.py")]
    tests = [each for text in texts for each in text.split("\n\n\n") if "def test_" in each]
    for claim in case.right:
        word, _, more = WORDS[claim].strip("()").partition(" and ")
        unless = more.removeprefix("not ") if more.startswith("not ") else "nothing else"
        named = [
            each
            for each in tests
            if f'"{claim}"' in each or f"def test_{claim}(" in each
            if word in each and unless not in each
            if (case.purpose == "soak" or "mark.soak" not in each)
        ]
        assert len(named) == 1, claim


def test_a_miss_is_not_tried_again_because_another_verdict_was_void() -> None:
    case = drawn("V1", 1)
    claim = "depth_8_over_depth_1"

    def tried(changed: dict[tuple[str, str], str], code: int = 4) -> Tried:
        came = ran(case, changed, code=code)
        return Tried(case, came, tuple(wrong_of(case, came)), 1.0)

    assert tried({(FAULTY, claim): "inconclusive"}).is_unsettled
    assert tried({(BESIDE, claim): "inconclusive"}, code=1).is_unsettled
    assert not tried({(BESIDE, claim): "inconclusive", (FAULTY, claim): "pass"}).is_unsettled
    assert not tried({(FAULTY, claim): "pass"}).is_unsettled


def test_parameters_are_drawn_by_the_seed_and_by_nothing_else() -> None:
    assert drawn("V2", 1).seeded == drawn("V2", 1).seeded
    assert len({drawn("V2", seed).seeded for seed in range(20)}) > 15


def ran(case: Case, changed: Mapping[tuple[str, str], str] | None = None, code: int = 1) -> Ran:
    """What comes of a case where all is as it must be, but for the outcomes of (slot, claim)."""
    rows = [
        {
            "cell": f"r-{drive.slot}-M-1.0",
            "claim": claim,
            "outcome": (changed or {}).get((drive.slot, claim), outcome),
            "message": SAID[case.name] if outcome == "fail" else "",
        }
        for drive in case.drives
        for claim, (outcome, _) in case.right_for(drive.slot).items()
    ]
    return Ran(code, {"outcomes": rows, "verdicts": []})


@pytest.mark.parametrize("name", SAID)
def test_what_is_as_it_must_be_has_nothing_wrong(name: str) -> None:
    case = drawn(name, 1)
    assert list(wrong_of(case, ran(case))) == []


def test_whatever_is_not_as_it_must_be_is_told() -> None:
    case = drawn("V1", 1)
    claim = "depth_8_over_depth_1"
    for slot, outcome, said in (
        (FAULTY, "pass", f"faulty: {claim}: pass, expected fail: FAIL: not queueing"),
        (FAULTY, "inconclusive", f"faulty: {claim}: inconclusive, expected fail"),
        (BESIDE, "fail", f"beside: {claim}: fail, expected pass"),
    ):
        (wrong,) = wrong_of(case, ran(case, {(slot, claim): outcome}))
        assert wrong.startswith(said)
    other = {claim: ("fail", "^FAIL: dip"), **dict(list(case.right.items())[1:])}
    (wrong,) = wrong_of(replace(case, right=other), ran(case))
    assert wrong.startswith(f"faulty: {claim}: fail without '^FAIL: dip': FAIL: not queueing")
    fewer = ran(case)
    fewer.summary["outcomes"].pop()
    assert list(wrong_of(case, fewer)) == ["beside: ncq_off_over_on: not run, expected pass: "]
    assert list(wrong_of(case, ran(case, code=0))) == ["exit code 0, expected 1"]


@pytest.fixture
def without_a_rig(monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """V6 where all is as it must be; what was done is kept, and settings move when told to."""
    did: list[str] = []

    @contextmanager
    def running(folder: Path, drives: object, arguments: str) -> Iterator[tuple[Any, Path]]:
        yield None, folder

    def hil(rig: object, matrix: Path, results: Path, words: object, deadline_s: float) -> Ran:
        did.append("hil")
        return ran(drawn("V6", 1))

    def settings_of(rig: object) -> dict[str, str]:
        return {"faulty device/queue_depth": "32" if "moves" in did and "hil" in did else "1"}

    def left_at_one(chance: Any) -> Case:
        return replace(made(chance), before=lambda rig: did.append("before"))

    made = CASES["V6"]
    monkeypatch.setattr(faults, "running", running)
    monkeypatch.setattr(faults, "hil", hil)
    monkeypatch.setattr(faults, "settings_of", settings_of)
    monkeypatch.setattr(faults, "CASES", {**CASES, "V6": left_at_one})
    return did


def test_it_prints_a_row_a_fault_and_figures(
    without_a_rig: list[str], capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("sys.argv", ["bench", "faults", "V6", "--seed", "7"])
    assert front.main() == 0
    out, err = capsys.readouterr()
    found = json.loads(out)
    assert (found["benchmark"], found["seed"], found["tried"]) == ("faults", 7, 1)
    assert found["faults"]["V6"]["outcomes"]["beside"]["ncq_ladder_holds"]["outcome"] == "pass"
    assert "| V6 | device queue depth left at 1 | ncq_ladder_holds: fail: a setting" in err
    assert "| 3 pass | yes | " in err
    assert without_a_rig == ["before", "hil"]


@pytest.mark.parametrize(("unsettled", "tries"), [(0, 1), (2, 3), (9, 3)])
def test_what_is_inconclusive_is_tried_again_and_what_is_wrong_is_not(
    without_a_rig: list[str], monkeypatch: pytest.MonkeyPatch, unsettled: int, tries: int
) -> None:
    case = drawn("V6", 1)
    claim = "ncq_ladder_holds"
    came = iter(["inconclusive"] * unsettled + ["pass"] * 9)
    monkeypatch.setattr(faults, "hil", lambda *_: ran(case, {(FAULTY, claim): next(came)}))
    found = settled(case)
    assert found.tries == tries
    assert [each.partition(",")[0] for each in found.wrong] == [
        f"faulty: {claim}: {'inconclusive' if unsettled > 2 else 'pass'}"
    ]


def test_what_is_not_given_back_is_wrong(without_a_rig: list[str]) -> None:
    without_a_rig.append("moves")
    found = measure(["V6"])
    assert found["wrong"] == ["V6: faulty device/queue_depth was '1' and is '32'"]
    assert found["within_limits"] is False


def test_what_goes_wrong_beside_the_tests_is_not_lost(without_a_rig: list[str]) -> None:
    def meanwhile(rig: object) -> None:
        raise RuntimeError("no slice began")

    with pytest.raises(RuntimeError, match="no slice began"):
        carry_out(replace(drawn("V6", 1), meanwhile=meanwhile))


def test_a_fault_that_nobody_knows_is_refused(capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit):
        measure(["V99"])
    assert "unknown: V99; some of V1, V1mix, V2" in capsys.readouterr().err


def test_a_rig_that_does_not_come_up_is_no_limit_that_was_missed(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    def measure(words: object) -> dict[str, object]:
        raise RigTrouble("qemu-system-x86_64 is not installed")

    monkeypatch.setattr(faults, "measure", measure)
    monkeypatch.setattr("sys.argv", ["bench", "faults", "V6"])
    assert front.main() == 3
    out, err = capsys.readouterr()
    assert (out, err) == ("", "bench faults: qemu-system-x86_64 is not installed\n")
