"""The benchmark of the five stories, without a rig: what it asks for, and what it concludes."""

import json
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path
from types import MappingProxyType
from typing import Any

import pytest

from bench import __main__ as front
from bench import fault_size, faults, knee, queued_streams, stories, told
from bench.fault_rig import Ran, Seeded, write_files
from bench.told import SLOT, Asked, Told
from leadline.drive.request_limits import MIB, RequestLimits
from leadline.inventory.matrix import load_matrix
from leadline.inventory.rig import load_rig
from leadline.virtual.machine import attachments
from leadline.virtual.profile import load_profile

LIMITS = RequestLimits(1280, 32767, 126, 4 * MIB)
"""Of a virtio-scsi controller with a queue of 128."""
DIP = "FAIL: dip at depth 19: random_mix.curve(offered=128) has no dip does not hold on r"
CURVE = {"cause": "dip at depth 19", "explanation": f"{DIP}\n  note: the sweep: knee at depth 9; b"}
SLOWER = """\
FAIL: streams slower with NCQ: sequential_read.at(depth=32, threads=4) >= 0.95 * sequential_read
  note: where the time went: the device takes 18 times longer per command when queued: 190 ms"""


def came(
    asked: Asked,
    verdicts: Mapping[str, Mapping[str, Any]],
    said: Mapping[str, str] = MappingProxyType({}),
    outcomes: Mapping[str, str] = MappingProxyType({}),
) -> Told:
    """What comes of `asked` where each test ends as it must, but for `outcomes`."""
    rows = [
        {
            "cell": f"r-{SLOT}-M-1.0",
            "claim": claim,
            "outcome": outcomes.get(claim, outcome),
            "message": said.get(claim, ""),
        }
        for claim, (outcome, _) in asked.right.items()
    ]
    settled = [{"claim": claim, **verdict} for claim, verdict in verdicts.items()]
    return Told(asked, Ran(0, {"outcomes": rows, "verdicts": settled}))


def of_sweep(
    ratio: float = 7.6, curve: Mapping[str, Any] = CURVE, said: str = DIP, **outcomes: str
) -> dict[str, Any]:
    disaster = {"estimate": ratio, "low": ratio - 0.1, "high": ratio + 0.1}
    shallow, swept = knee.asked(19)
    return knee.figures_of(
        came(shallow, {knee.DISASTER: disaster}, outcomes=outcomes),
        came(swept, {knee.NO_DIP: curve}, {knee.NO_DIP: said}, outcomes),
        19,
    )


def test_the_sweeps_knee_dip_and_disaster_are_told() -> None:
    found = of_sweep()
    assert (found["knee"], found["dip"], found["wrong"]) == (9, 19, [])
    assert found["found"] == "depth 8 is 7.6 [7.5, 7.7] times depth 1; knee at 9; dip at 19"
    assert found["within_limits"] is True


@pytest.mark.parametrize(
    ("changed", "said"),
    [
        ({"ratio": 3.4}, "depth 8 is 3.4 times depth 1, expected 4 or more"),
        (
            {"curve": {**CURVE, "explanation": "the sweep: knee at depth 12"}},
            "the knee is at 12, expected 8 to 10",
        ),
        (
            {"curve": {"explanation": "no knee: flat or straight; best 900"}},
            "the knee is at None, expected 8 to 10",
        ),
        (
            {"said": DIP.replace("19", "20", 1)},
            "random_mix_no_dip: fail without '^FAIL: dip at depth 19: ': FAIL: dip at depth 20",
        ),
        ({knee.NO_DIP: "pass"}, "random_mix_no_dip: pass, expected fail"),
        ({knee.DISASTER: "fail"}, "random_mix_depth_8_over_depth_1: fail, expected pass"),
    ],
)
def test_what_the_sweep_does_not_show_is_told(changed: dict[str, Any], said: str) -> None:
    found = of_sweep(**changed)
    assert found["within_limits"] is False
    assert found["wrong"][0].startswith(said)


def test_the_dip_is_where_the_story_has_it_or_drawn_by_the_seed_off_the_knee() -> None:
    assert knee.depth_of(None) == 19
    drawn = [knee.depth_of(seed) for seed in range(60)]
    assert drawn == [knee.depth_of(seed) for seed in range(60)]
    assert len(set(drawn)) > 10
    assert min(drawn) > max(knee.KNEES) + 1, "a neighbour of the knee's is no dip's"
    assert max(drawn) <= 30, "the deepest has one neighbour alone"


@pytest.mark.parametrize(
    "drive",
    [knee.drive(19), Seeded(SLOT, queued_streams.PROFILE), fault_size.DRIVE],
    ids=["knee", "queued_streams", "fault_size"],
)
def test_a_storys_rig_matrix_and_profile_can_be_read(tmp_path: Path, drive: Seeded) -> None:
    rig_file, matrix_file = write_files(tmp_path, "r", [drive])
    assert len(attachments(load_rig(rig_file))) == len(load_matrix(matrix_file).models) == 1
    assert load_profile(tmp_path / f"{SLOT}.yaml").is_scsi == drive.is_scsi


def of_streams(
    threads: float = 7.5, streams: float = 0.24, said: str = SLOWER, **outcomes: str
) -> dict[str, Any]:
    gained = {"estimate": threads, "low": threads - 1, "high": None}
    lost, given = {"estimate": streams}, {queued_streams.STREAMS: said}
    return queued_streams.figures_of(
        came(queued_streams.GAINED, {queued_streams.THREADS: gained}, outcomes=outcomes),
        came(queued_streams.LOST, {queued_streams.STREAMS: lost}, given, outcomes),
    )


def test_threads_gain_streams_lose_and_the_layer_is_named() -> None:
    found = of_streams()
    assert (found["layer"], found["times_longer"], found["wrong"]) == ("device", 18, [])
    assert found["found"].endswith("the device takes 18 times longer per command when queued")
    assert found["within_limits"] is True


@pytest.mark.parametrize(
    ("changed", "said"),
    [
        ({"threads": 1.1}, "threads: 1.1 times, expected 2 or more"),
        ({"streams": 0.8}, "streams: 0.8 times, expected 0.5 or less"),
        ({"streams": 0.0}, "streams: 0 times, expected 0.5 or less"),
        (
            {"said": SLOWER.replace("18 times", "3.1 times")},
            "device: 3.1 times longer, expected 10 to 25",
        ),
        (
            {"said": SLOWER.replace("the device", "the driver")},
            "streams_ncq_on_over_off: fail without ",
        ),
        ({"said": "FAIL"}, "streams_ncq_on_over_off: fail without "),
        ({queued_streams.STREAMS: "pass"}, "streams_ncq_on_over_off: pass, expected fail"),
    ],
)
def test_what_the_streams_do_not_show_is_told(changed: dict[str, Any], said: str) -> None:
    found = of_streams(**changed)
    assert found["within_limits"] is False
    assert found["wrong"][0].startswith(said)


def of_size(
    limits: RequestLimits = LIMITS, reached: float = 504, huge: float = 1024, **outcomes: str
) -> dict[str, Any]:
    """The words are those of the promise itself: what it says is what the story looks for."""
    explained = f"PASS: random_read of 1 MiB arrives as promised\n  {limits.promise(MIB)}"
    cut = {"estimate": reached, "explanation": explained, "count": 60}
    whole = {"estimate": huge, "explanation": "", "count": 149}
    return fault_size.figures_of(
        came(fault_size.CUT, {fault_size.CLAIM: cut}, outcomes=outcomes),
        came(fault_size.WHOLE, {fault_size.CLAIM: whole}),
    )


def test_the_size_predicted_and_reached_and_the_limit_that_binds_are_told() -> None:
    found = of_size()
    assert (found["asked_kib"], found["predicted_kib"], found["reached_kib"]) == (1024, 504, 504)
    assert found["binding"].startswith("max_segments is 126, one for each page of 4 KiB")
    assert (found["from_hugepages_kib"], found["requests_from_hugepages"]) == (1024, 149)
    assert (found["wrong"], found["within_limits"]) == ([], True)


@pytest.mark.parametrize(
    ("changed", "said"),
    [
        ({"reached": 1024}, "1024 KiB reached, expected 448 to 576"),
        ({"reached": None}, "0 KiB reached, expected 448 to 576"),
        ({"huge": 512}, "512 KiB from hugepages, expected 1024"),
        (
            {"limits": replace(LIMITS, max_segments=32)},
            "128 KiB predicted, expected 448 to 576",
        ),
        (
            {"limits": replace(LIMITS, max_sectors_kb=480, max_hw_sectors_kb=480)},
            "max_segments is not named as the limit that binds",
        ),
        ({fault_size.CLAIM: "fail"}, "request_size: fail, expected pass"),
    ],
)
def test_what_the_requests_do_not_show_is_told(changed: dict[str, Any], said: str) -> None:
    found = of_size(**changed)
    assert found["wrong"][0].startswith(said)
    assert found["within_limits"] is False


def gains(low: float | None, count: int = 9) -> dict[str, Any]:
    one = {"mean": 0.09, "count": 3} if low is None else {"mean": 0.09, "low": low, "high": 0.2}
    return {"gain": one, "traces": {f"t{number}": {"gain": one} for number in range(count)}}


def test_the_desktop_has_nine_gains_with_intervals_for_each_drive() -> None:
    found = stories.of_desktop({"drives": {"a": gains(0.05)}, "within_limits": True})
    assert found["within_limits"] is True
    assert found["found"].startswith("a: +9.0% [+5.0%, +20.0%] over all, t0 +9.0% [+5.0%")
    assert found["found"].count(", t") == 9
    for short in (gains(0.05, count=8), gains(None)):
        drives = {"a": gains(0.05), "b": short}
        found = stories.of_desktop({"drives": drives, "within_limits": True})
        assert (found["without_nine_gains"], found["within_limits"]) == (["b"], False)
    found = stories.of_desktop({"drives": {"a": gains(0.05)}, "within_limits": False})
    assert found["within_limits"] is False, "the benchmark's own limits hold, too"


def test_the_twins_tell_their_ratio_and_what_is_not_so() -> None:
    told = stories.of_twins({"refill_off_over_on": 5.2, "wrong": [], "within_limits": True})
    assert told["found"] == (
        "a refill takes 5.2 times as long without NCQ; all else is as it must be"
    )
    assert told["within_limits"] is True
    told = stories.of_twins({"refill_off_over_on": 1.1, "wrong": ["x"], "within_limits": False})
    assert told["found"].endswith("1.1 times as long without NCQ; x")


@pytest.fixture
def by_hand(monkeypatch: pytest.MonkeyPatch) -> list[int | None]:
    """Stories 1 and 2 without a rig: the first holds, the second does not; the seeds are kept."""
    seeds: list[int | None] = []

    def holds(seed: int | None) -> dict[str, Any]:
        seeds.append(seed)
        return of_sweep()

    told = {1: holds, 2: lambda _: of_streams(threads=1.0)}
    made = {number: replace(stories.STORIES[number], tell=tell) for number, tell in told.items()}
    monkeypatch.setattr(stories, "STORIES", made)
    return seeds


@pytest.mark.parametrize(("words", "code"), [(["1"], 0), (["1", "2"], 1), ([], 1)])
def test_the_exit_code_says_whether_all_stories_hold(
    by_hand: list[int | None],
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
    words: list[str],
    code: int,
) -> None:
    monkeypatch.setattr("sys.argv", ["bench", "stories", *words, "--seed", "7"])
    assert front.main() == code
    out, err = capsys.readouterr()
    found = json.loads(out)
    assert (found["benchmark"], found["seed"], by_hand) == ("stories", 7, [7])
    assert list(found["stories"]) == (words or ["1", "2"])
    assert "story 1, the depth sweep (0 s)\n  concluded: below about 8 it is disastrous" in err
    assert "  found: depth 8 is 7.6 [7.5, 7.7] times depth 1; knee at 9; dip at 19\n" in err
    assert ("  within limits: no\n    threads: 1 times, expected 2" in err) == (code == 1)


def test_with_json_there_are_no_words_beside_the_object(
    by_hand: list[int | None], capsys: pytest.CaptureFixture[str]
) -> None:
    assert stories.measure(["1", "--json"])["within_limits"] is True
    assert capsys.readouterr().err == ""
    assert by_hand == [None]


def test_a_story_that_nobody_told_is_refused(capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit):
        stories.measure(["6"])
    assert "no story 6: they are 1 to 5" in capsys.readouterr().err


@pytest.mark.parametrize(("void", "tries"), [(0, 1), (2, 3), (9, 3)])
def test_what_is_void_is_asked_again_with_the_rig_as_it_was(
    monkeypatch: pytest.MonkeyPatch, void: int, tries: int
) -> None:
    @contextmanager
    def running(folder: Path, drives: object) -> Iterator[tuple[Any, Path]]:
        yield "the rig", folder

    entered: list[object] = []

    @contextmanager
    def meanwhile(rig: object) -> Iterator[None]:
        entered.append(rig)
        yield

    asked = replace(queued_streams.LOST, meanwhile=meanwhile)
    ends = iter(["inconclusive"] * void + ["fail"] * 9)
    monkeypatch.setattr(told, "running", running)
    monkeypatch.setattr(
        told, "hil", lambda *_: came(asked, {}, outcomes={queued_streams.STREAMS: next(ends)}).ran
    )
    (found,) = told.tell(Seeded(SLOT), [asked])
    assert (found.tries, len(entered)) == (tries, tries)
    assert found.is_unsettled is (void > 2)


def test_what_voids_the_evidence_is_told_with_the_outcome() -> None:
    said = "INCONCLUSIVE (void): a on b\n  rate: 3\n  void: busy: the rig had other work"
    claim = queued_streams.THREADS
    found = came(queued_streams.GAINED, {}, {claim: said}, {claim: "inconclusive"})
    (wrong,) = found.wrong()
    assert wrong == (
        f"{claim}: inconclusive, expected pass: INCONCLUSIVE (void): a on b; "
        "void: busy: the rig had other work"
    )
    assert list(found.wrong_in_full()) == [f"{claim}: inconclusive, expected pass:\n{said}"]


def test_another_slot_than_the_one_that_is_looked_at_is_refused() -> None:
    with pytest.raises(ValueError, match="the drive is in 'other'"):
        told.tell(Seeded("other"), [])


def test_the_sizes_are_a_line_of_the_faults_too(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(faults, "tell_of_size", of_size)
    assert faults.measure(["size"])["binding"] == of_size()["binding"]
