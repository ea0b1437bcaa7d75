"""The benchmark of healthy drives, without a rig: what it makes, and what it takes for an alarm."""

import shutil
import tempfile
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path

import pytest

from bench import acceptance
from bench.acceptance import KINDS, MATE, SLOT, healthy, measure, once
from bench.fault_rig import Ran, Seeded, write_files
from leadline.inventory.matrix import load_matrix
from leadline.inventory.plan import plan
from leadline.inventory.rig import Rig, load_rig
from leadline.virtual.profile import load_profile
from leadline.virtual.state import State
from selftests.virtual.conftest import RIGS

SHIPPED = {"ssd": "vssd-1.0", "disk": "vdisk-1.0", "sas": "vscsi-1.0", "pair": "vssd-1.0"}


@pytest.mark.parametrize("kind", KINDS)
def test_a_healthy_drive_is_that_of_its_shipped_profile(tmp_path: Path, kind: str) -> None:
    drives = healthy(kind)
    rig_file, matrix_file = write_files(tmp_path, "r", drives)
    rig, matrix = load_rig(rig_file), load_matrix(matrix_file)
    visits = plan([rig], matrix)
    assert [visit.cell.slot for visit in visits] == [drive.slot for drive in drives]
    assert {visit.cell.model for visit in visits} == {visits[0].cell.model}, "a pair is alike"
    assert len(drives) == (2 if kind == "pair" else 1)
    cell = visits[0].cell
    assert matrix.model(cell.model).class_ == ("hdd" if kind == "disk" else "ssd")
    assert "ready_s" in matrix.limits_for(cell.model, cell.firmware, cell.controller)
    shipped = load_profile(RIGS / "profiles" / f"{SHIPPED[kind]}.yaml").model_dump()
    own = {"model", "vendor", "product", "serial", "wwn"}
    own |= set() if kind == "disk" else {"capacity_bytes"}
    for drive in drives:
        made = load_profile(tmp_path / f"{drive.slot}.yaml").model_dump()
        assert {key for key in made if made[key] != shipped[key]} == own - (
            {"model"} if kind == "sas" else {"vendor", "product"}
        )


def ran(*outcomes: str, code: int = 0, seconds: float = 60.0) -> Ran:
    rows = [
        {
            "cell": f"r-{SLOT}-BENCH_SSD-1.0",
            "claim": f"claim-{n}",
            "outcome": o,
            "message": "said\nx",
        }
        for n, o in enumerate(outcomes)
    ]
    return Ran(code, {"outcomes": rows, "seconds": seconds})


@pytest.mark.parametrize(
    ("came", "right"),
    [
        (ran("pass", "skipped", "recorded"), True),
        (ran("pass", "fail", code=1), False),
        (ran("pass", "inconclusive", code=4), False),
        (ran("error", code=3), False),
        (ran("pass", code=70), False),
        (ran("pass", seconds=1201.0), False),
    ],
)
def test_everything_but_a_pass_in_time_is_an_alarm(came: Ran, right: bool) -> None:
    assert once(came).is_right == right


def of_drives(*came: tuple[str, str, str], seconds: float = 60.0) -> Ran:
    """A run by (slot, claim, outcome)."""
    rows = [
        {"cell": f"r-{slot}-BENCH_SSD-1.0", "claim": claim, "outcome": outcome, "message": "said"}
        for slot, claim, outcome in came
    ]
    return Ran(0, {"outcomes": rows, "seconds": seconds})


def test_an_alarm_is_told_though_another_test_of_its_claim_passed_later() -> None:
    found = once(of_drives((SLOT, "request_size", "fail"), (SLOT, "request_size", "pass")))
    assert (found.alarms, found.is_right) == (("request_size: fail: said",), False)


def test_an_alarm_says_what_voids_the_evidence() -> None:
    came = of_drives((SLOT, "request_size", "inconclusive"), (SLOT, "no_dip", "pass"))
    came.summary["outcomes"][0]["message"] = "INCONCLUSIVE (void)\n  rate: 3\n  void: overlap: x"
    assert once(came).alarms == (
        "request_size: inconclusive: INCONCLUSIVE (void); void: overlap: x",
    )


def test_a_claim_that_is_left_out_is_an_alarm_but_where_tests_were_chosen() -> None:
    needed = sorted(acceptance.NEEDED["ssd"])
    came = of_drives(*((SLOT, claim, "pass") for claim in needed[1:]))
    assert once(came, "ssd").alarms == (f"{needed[0]}: did not pass",)
    assert once(came, "ssd", chosen=True).is_right
    assert once(of_drives(), "ssd", chosen=True).alarms == ("no test passed",)


def test_of_a_pair_each_drive_is_asked_for_and_what_only_two_can_show() -> None:
    needed = sorted(acceptance.NEEDED["pair"])
    came = [(slot, claim, "pass") for slot in (SLOT, MATE) for claim in needed]
    both = [(MATE, claim, "pass") for claim in sorted(acceptance.OF_BOTH)]
    assert once(of_drives(*came, *both), "pair").is_right
    found = once(of_drives(*came[:-1], both[1], (MATE, needed[-1], "fail")), "pair")
    assert found.alarms == (
        f"{needed[-1]}: did not pass on {MATE}",
        f"{both[0][1]}: did not pass on either",
        f"{needed[-1]} on {MATE}: fail: said",
    )


def test_twenty_minutes_are_for_one_drive_and_not_for_a_soak() -> None:
    came = of_drives((SLOT, "c", "pass"), seconds=1300.0)
    assert not once(came, "ssd", chosen=True).is_right
    assert once(came, "pair", chosen=True).is_right
    soak = once(came, "ssd", "soak", chosen=True)
    assert (soak.is_right, soak.figures()["limit_minutes"]) == (True, None)


@pytest.mark.parametrize("kind", KINDS)
def test_what_is_needed_of_a_drive_are_claims_of_the_suite(kind: str) -> None:
    text = "".join(path.read_text() for path in (RIGS.parent / "suite").glob("test_*.py"))
    for claim in acceptance.NEEDED[kind] | acceptance.OF_BOTH:
        assert f'"{claim}"' in text or f"def test_{claim}(" in text, claim


@pytest.fixture
def runs(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> Iterator[list[tuple[list[str], float]]]:
    """Runs of which the second has an alarm; what each was asked for is kept."""
    asked: list[tuple[list[str], float]] = []
    monkeypatch.setattr(tempfile, "tempdir", str(tmp_path))
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))

    @contextmanager
    def up(folder: Path, drives: Sequence[Seeded]) -> Iterator[tuple[Rig, str]]:
        rig = load_rig(write_files(folder, "r", drives)[0])
        state = State(rig.name)
        state.log.mkdir(parents=True)
        (state.log / "console.log").write_text("guest: stuck")
        yield rig, "matrix"
        shutil.rmtree(state.root)

    def hil(rig: Rig, matrix: str, results: Path, words: Sequence[str], deadline_s: float) -> Ran:
        asked.append((list(words), deadline_s))
        results.mkdir(exist_ok=True)
        (results / "run.txt").write_text(f"run {len(asked)}")
        return ran("pass", "fail", code=1) if len(asked) == 2 else ran("pass")

    monkeypatch.setattr(acceptance, "running", up)
    monkeypatch.setattr(acceptance, "hil", hil)
    monkeypatch.setattr(acceptance, "NEEDED", dict.fromkeys(KINDS, frozenset()))
    yield asked


def test_an_alarm_is_said_by_its_claim_and_each_run_has_its_figures(
    runs: list[tuple[list[str], float]], capsys: pytest.CaptureFixture[str]
) -> None:
    figures = measure(["ssd", "--runs", "2"])
    drives = figures["drives"]
    assert isinstance(drives, Mapping)
    assert (drives["ssd"]["right"], drives["ssd"]["false_alarms"]) == (1, 1)
    assert drives["ssd"]["each"][1] == {
        "purpose": "acceptance",
        "exit_code": 1,
        "outcomes": {"pass": 1, "fail": 1},
        "minutes": 1.0,
        "limit_minutes": 20.0,
        "false_alarms": ["claim-1: fail: said"],
    }
    assert not figures["within_limits"]
    said = capsys.readouterr().err
    assert "ssd 2: exit 1, 1 fail, 1 pass in 1.0 min\n  claim-1: fail: said" in said


def test_what_a_run_with_an_alarm_left_outlives_its_rig(
    runs: list[tuple[list[str], float]], capsys: pytest.CaptureFixture[str]
) -> None:
    measure(["ssd", "--runs", "3"])
    (line,) = (line for line in capsys.readouterr().err.splitlines() if "kept in" in line)
    kept = Path(line.rpartition(" ")[2])
    assert kept.name.startswith("leadline-acceptance-ssd-2-")
    assert (kept / "results" / "run.txt").read_text() == "run 2"
    assert (kept / "log" / "console.log").read_text() == "guest: stuck"


def test_a_soak_comes_after_the_runs_and_has_its_time(
    runs: list[tuple[list[str], float]], capsys: pytest.CaptureFixture[str]
) -> None:
    measure(["disk", "--runs", "1", "--soak", "-k", "dip or ladder"])
    chosen = ["-k", "dip or ladder"]
    assert [words for words, _ in runs] == [
        ["--allow-writes", "-m", purpose, *chosen] for purpose in ("acceptance", "soak")
    ]
    assert [hangs_s for _, hangs_s in runs] == [7200.0, 36_000.0]
    assert "disk 2 (soak): exit 1" in capsys.readouterr().err


@pytest.mark.parametrize("words", [["floppy"], ["--runs", "0"]])
def test_what_is_no_drive_is_usage(words: list[str]) -> None:
    with pytest.raises(SystemExit) as ended:
        measure(words)
    assert ended.value.code == 2
