"""The benchmark of healthy drives, without a rig: what it makes, and what it takes for an alarm."""

from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path

import pytest

from bench import acceptance
from bench.acceptance import KINDS, SLOT, healthy, measure, once
from bench.fault_rig import Ran, Seeded, write_files
from leadline.inventory.matrix import load_matrix
from leadline.inventory.plan import plan
from leadline.inventory.rig import load_rig
from leadline.virtual.profile import load_profile
from selftests.virtual.conftest import RIGS

SHIPPED = {"ssd": "vssd-1.0", "disk": "vdisk-1.0", "sas": "vscsi-1.0"}


@pytest.mark.parametrize("kind", KINDS)
def test_a_healthy_drive_is_that_of_its_shipped_profile(tmp_path: Path, kind: str) -> None:
    rig_file, matrix_file = write_files(tmp_path, "r", [healthy(kind)])
    rig, matrix = load_rig(rig_file), load_matrix(matrix_file)
    (visit,) = plan([rig], matrix)
    cell = visit.cell
    assert matrix.model(cell.model).class_ == ("hdd" if kind == "disk" else "ssd")
    assert "ready_s" in matrix.limits_for(cell.model, cell.firmware, cell.controller)
    made = load_profile(tmp_path / f"{SLOT}.yaml").model_dump()
    shipped = load_profile(RIGS / "profiles" / f"{SHIPPED[kind]}.yaml").model_dump()
    own = {"model", "vendor", "product", "serial", "wwn"}
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


def test_an_alarm_is_told_though_another_test_of_its_claim_passed_later() -> None:
    came = ran("fail", "pass", code=1)
    for row in came.summary["outcomes"]:
        row["claim"] = "request_size"
    found = once(came, ["request_size"])
    assert (found.alarms, found.is_right) == (("request_size: fail: said",), False)


def test_a_claim_that_is_left_out_is_an_alarm() -> None:
    came = ran("pass", "skipped")
    assert once(came, ["claim-0"]).is_right
    left_out = once(came, ["claim-0", "claim-1", "claim-2"])
    assert left_out.alarms == ("claim-1: did not pass", "claim-2: did not pass")


@pytest.mark.parametrize("kind", KINDS)
def test_what_is_needed_of_a_drive_are_claims_of_the_suite(kind: str) -> None:
    text = "".join(path.read_text() for path in (RIGS.parent / "suite").glob("test_*.py"))
    for claim in acceptance.NEEDED[kind]:
        assert f'"{claim}"' in text or f"def test_{claim}(" in text, claim


def test_an_alarm_is_said_by_its_claim(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    answers = iter([ran("pass"), ran("pass", "fail", code=1)])

    @contextmanager
    def up(folder: Path, drives: Sequence[Seeded]) -> Iterator[tuple[str, str]]:
        yield "rig", "matrix"

    def hil(rig: str, matrix: str, results: Path, words: Sequence[str]) -> Ran:
        return next(answers)

    monkeypatch.setattr(acceptance, "running", up)
    monkeypatch.setattr(acceptance, "hil", hil)
    monkeypatch.setattr(acceptance, "NEEDED", {"ssd": frozenset()})
    figures = measure(["ssd", "--runs", "2"])
    drives = figures["drives"]
    assert isinstance(drives, Mapping)
    assert (drives["ssd"]["right"], drives["ssd"]["alarms"]) == (1, ["claim-1: fail: said"])
    assert not figures["within_limits"]
    assert "ssd 2: exit 1, 1 fail, 1 pass in 60 s\n  claim-1: fail: said" in capsys.readouterr().err


@pytest.mark.parametrize("words", [["floppy"], ["--runs", "0"]])
def test_what_is_no_drive_is_usage(words: list[str]) -> None:
    with pytest.raises(SystemExit) as ended:
        measure(words)
    assert ended.value.code == 2
