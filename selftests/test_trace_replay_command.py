"""`leadline trace replay` as a user meets it, before and after its run."""

import json
import sqlite3
import subprocess
import sys
from argparse import Namespace
from contextlib import closing
from pathlib import Path

import pytest

from leadline.cli import main
from leadline.commands import hil
from leadline.commands.trace_replay import pytest_words
from leadline.results.record import FILE_NAME, Record
from leadline.trace.asked import Answer, Asked
from leadline.trace.rounds import Replayed, ReplayedTrace, Round, Times
from selftests.traces import few, kept
from selftests.vendor import MATRIX, RIG
from selftests.visit_world import MATRIX as MATRIX_TEXT
from selftests.visit_world import RIG as RIG_TEXT


@pytest.fixture
def trace(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> Path:
    """A trace, a rig and a matrix in the current directory."""
    monkeypatch.chdir(tmp_path)
    Path("bench.yaml").write_text(RIG_TEXT)
    Path("matrix.yaml").write_text(MATRIX_TEXT)
    return kept(tmp_path, few())


def replayed(reads_ms: float, writes_ms: float) -> Replayed:
    return Replayed(Times(3, reads_ms / 1e3), Times(1, writes_ms / 1e3), 1.0)


def answer(*names: str, ncq: bool = True) -> Answer:
    rounds = tuple(
        Round(off=replayed(10.0, 20.0 + n), on=replayed(9.0, 16.0) if ncq else None)
        for n in range(2)
    )
    traces = tuple(
        ReplayedTrace(
            trace=name,
            requests=4,
            in_flight=4,
            seconds=2.0,
            notes=("SCALED: so",),
            rounds=rounds,
            ncq_on="NCQ on is 32" if ncq else "",
        )
        for name in names
    )
    return Answer(drive="a: MODEL S", depth=32 if ncq else None, wrote=True, traces=traces)


def conducted(
    monkeypatch: pytest.MonkeyPatch, said: Answer | None, code: int = 0
) -> tuple[list[Namespace], list[Asked]]:
    """In the place of a run: it leaves an answer, and ends with `code`."""
    words: list[Namespace] = []
    asked: list[Asked] = []

    def conduct(arguments: Namespace, command: str) -> tuple[int, Record]:
        words.append(arguments)
        option = next(word for word in arguments.rest if word.startswith("--trace-replay="))
        asked.append(Asked.model_validate_json(Path(option.partition("=")[2]).read_bytes()))
        if said is not None:
            asked[-1].answer.write_text(said.model_dump_json())
        record = Record(arguments.results.absolute(), "run-7")
        record.start(command, "0")
        return code, record

    monkeypatch.setattr(hil, "conduct", conduct)
    return words, asked


USUAL = ["--rig", "bench.yaml", "--matrix", "matrix.yaml", "--drive", "a"]


def test_the_table_has_times_gains_and_what_was_done_to_the_trace(
    trace: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    conducted(monkeypatch, answer("dual-copy", "media-mail-import"))
    assert main(["trace", "replay", str(trace), *USUAL]) == 0
    first, head, row, _, whole, *notes = capsys.readouterr().out.splitlines()
    assert first == "a: MODEL S; NCQ on: depth 32; reads and writes"
    assert head.split() == ["trace", "off,", "ms", "on,", "ms", "gain", "reads", "writes"]
    assert row.startswith("dual-copy          12.62 +-1.6  10.75 +-0  +14.8% [")
    assert "+10.0% [+10.0%, +10.0%]" in row
    assert whole == "gain over 2 trace(s): +14.8% [+14.8%, +14.8%], (off - on) / off"
    done = ["note: dual-copy: SCALED: so", "note: media-mail-import: SCALED: so"]
    assert notes == ["note: NCQ on is 32", *done]


def test_a_baseline_has_its_time_and_no_gain(
    trace: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    conducted(monkeypatch, answer("dual-copy", ncq=False))
    assert main(["trace", "replay", str(trace), *USUAL]) == 0
    out = capsys.readouterr().out
    assert "no NCQ: a baseline" in out
    assert out.splitlines()[2].split() == ["dual-copy", "12.62", "+-1.6", "-", "-", "-", "-"]
    assert "gain over" not in out


def test_json_is_one_object_with_every_round(
    trace: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    conducted(monkeypatch, answer("dual-copy"))
    assert main(["trace", "replay", str(trace), *USUAL, "--json"]) == 0
    found = json.loads(capsys.readouterr().out)
    assert (found["run"], found["exit_code"], found["ncq_depth"]) == ("run-7", 0, 32)
    assert found["gain"]["count"] == 1
    (one,) = found["traces"]
    assert one["gain"]["mean"] == pytest.approx(0.148, abs=0.001)
    assert one["writes"]["low"] < 0.218 < one["writes"]["high"]
    assert one["rounds"][1]["off"]["writes"] == {"count": 1, "mean_s": 0.021}


def test_a_run_that_did_not_end_has_its_exit_code_and_no_table(
    trace: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    conducted(monkeypatch, None, code=3)
    assert main(["trace", "replay", str(trace), *USUAL]) == 3
    assert capsys.readouterr().out == ""


def test_what_is_asked_reaches_the_run(trace: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    words, asked = conducted(monkeypatch, answer("few"))
    options = ["--rounds", "6", "--timing", "kept", "--requests", "5", "--in-flight", "7"]
    assert main(["trace", "replay", trace.name, *USUAL, *options, "--allow-writes"]) == 0
    wanted = asked[0]
    assert wanted.traces == (trace,)
    assert (wanted.rounds, wanted.timing, wanted.requests, wanted.in_flight) == (6, "kept", 5, 7)
    assert "--allow-writes" in words[0].rest
    assert words[0].rig == [Path("bench.yaml")]
    again = f"leadline trace replay {trace.name} --rig bench.yaml --drive a --timing kept "
    again += "--rounds 6 --requests 5 --in-flight 7 --matrix matrix.yaml --allow-writes"
    with closing(sqlite3.connect(Path("leadline-results", FILE_NAME))) as results:
        assert results.execute("select command from runs").fetchall() == [(again,)]
    assert main(["trace", "replay", trace.name, *USUAL]) == 0
    assert "--allow-writes" not in words[1].rest


def test_pytest_finds_the_packaged_test(tmp_path: Path) -> None:
    arguments = Namespace(
        files=[kept(tmp_path, few())],
        rig=RIG,
        matrix=MATRIX,
        drive="scsi1",
        rounds=2,
        timing="fast",
        requests=None,
        in_flight=None,
        allow_writes=False,
    )
    words = pytest_words(arguments, tmp_path / "asked.json", tmp_path / "answer.json")
    assert hil.names_tests(words), "or the whole suite would be run"
    command = [sys.executable, "-m", "pytest", "--collect-only", "--import-mode=importlib"]
    command += ["-p", "leadline.plugin", f"--rig={RIG}", f"--matrix={MATRIX}", *words]
    done = subprocess.run(
        command, cwd=tmp_path, capture_output=True, text=True, check=False, timeout=120
    )
    assert done.returncode == 0, done.stdout + done.stderr
    assert "replay_run.py::test_replay[" in done.stdout
    assert "1 test collected" in done.stdout


@pytest.mark.parametrize(
    ("words", "said"),
    [
        (["--rounds", "1"], "--rounds: found 1, expected 2 to 1000"),
        (["--requests", "0"], "--requests: found 0, expected 1 or more"),
        (["--in-flight", "257"], "--in-flight: found 257, expected 1 to 256"),
        (["--drive", "nine"], "found no slot 'nine'"),
    ],
)
def test_what_cannot_be_is_told_before_a_rig_is_touched(
    trace: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
    words: list[str],
    said: str,
) -> None:
    ran, _ = conducted(monkeypatch, answer("few"))
    assert main(["trace", "replay", str(trace), *USUAL, *words]) == 2
    assert said in capsys.readouterr().err
    assert ran == []


def test_an_unsound_trace_is_told_before_a_rig_is_touched(
    trace: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    ran, _ = conducted(monkeypatch, answer("few"))
    trace.write_bytes(trace.read_bytes()[:60])
    assert main(["trace", "replay", str(trace), *USUAL]) == 2
    assert "cut off or damaged" in capsys.readouterr().err
    assert ran == []


def test_a_drive_that_the_matrix_does_not_know_is_refused(
    trace: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    Path("bench.yaml").write_text(RIG_TEXT.replace("slot: a, model: MODEL", "slot: a, model: X"))
    assert main(["trace", "replay", str(trace), *USUAL]) == 2
    said = capsys.readouterr().err
    assert "bench.yaml: a: nothing is replayed on it: " in said
    assert 'has no model "X"' in said


def test_help_has_examples(capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit):
        main(["trace", "replay", "--help"])
    said = capsys.readouterr().out
    exits = ("Exit codes:", "4 too little evidence")
    deep = "as deep as the drive and its adapter go"
    for needed in ("examples:", "--allow-writes", "(off - on) / off", deep, *exits):
        assert needed in said
