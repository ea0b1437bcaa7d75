"""Preconditioning: the span is filled twice, then the workload runs until it is steady."""

import json
import shutil
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from leadline.errors import DriveFault, Misuse, RigTrouble
from leadline.host.connection import Finished, Host, open_host
from leadline.inventory.rig import HostSpec
from leadline.load import precondition as module
from leadline.load.precondition import MOST_ROUNDS, Preconditioned, precondition, price
from leadline.load.workload import random_read, random_write
from leadline.verdict.steady_state import steady_state

MIB = 1 << 20


class Rig:
    """A host whose fio writes at such rates, round after round; the last one goes on."""

    name = "rig"

    def __init__(self, *rates: float, exit_code: int = 0, error: int = 0) -> None:
        self.rates, self.exit_code, self.error = list(rates), exit_code, error
        self.ran: list[dict[str, str]] = []
        self.deadlines: list[float] = []

    def exists(self, path: str) -> bool:
        return path == "/sys/block/sdx/inflight"

    def run(
        self, argv: list[str], *, deadline: float, check: bool, sample: tuple[str, float] | None
    ) -> Finished:
        assert argv[0] == "fio"
        assert sample is not None
        words = (word.removeprefix("--").partition("=") for word in argv[1:])
        options = {name: value for name, _, value in words}
        self.ran.append(options)
        self.deadlines.append(deadline)
        job: dict[str, Any] = {"jobname": "j", "error": self.error, "job_runtime": 2000}
        job["read"] = {"total_ios": 0}
        rate = 1.0 if options["name"] == "fill" else self._rate()
        job["write"] = {"total_ios": int(2 * rate)}
        out = "a note of fio's\n" + json.dumps({"fio version": "fio-3.33", "jobs": [job]})
        return Finished(tuple(argv), self.exit_code, out.encode(), b"", 2.0)

    def _rate(self) -> float:
        return self.rates.pop(0) if len(self.rates) > 1 else self.rates[0]


@pytest.fixture(autouse=True)
def _has_fio(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(module, "require", lambda host, program: "3.33")


def done(rig: Rig, span: tuple[int, int] = (0, 64 * MIB), **more: Any) -> Preconditioned:
    host: Host = rig  # type: ignore[assignment]
    return precondition(host, "/dev/sdx", random_write(), span, depth=32, **more)


def test_the_span_is_filled_twice_in_sequence_before_the_workload_runs() -> None:
    rig = Rig(1000)
    result = done(rig, (MIB, 64 * MIB + 4096))
    fill, *rounds = rig.ran
    assert (fill["rw"], fill["bs"], fill["loops"]) == ("write", "131072", "2")
    assert (fill["offset"], fill["size"]) == (str(MIB), str(64 * MIB)), "whole blocks of its own"
    assert {(each["rw"], each["bs"], each["iodepth"]) for each in rounds} == {
        ("randwrite", "4096", "32")
    }
    assert {each["runtime"] for each in rounds} == {"10000ms"}
    for each in rig.ran:
        assert each["filename"] == "/dev/sdx"
        assert (each["direct"], each["refill_buffers"]) == ("1", "1")
        assert (each["allow_mounted_write"], each["allow_file_create"]) == ("0", "0")
    assert result.fill_s == 2.0


def test_five_steady_rounds_are_enough() -> None:
    result = done(Rig(1000))
    assert result.rounds == (1000.0,) * 5
    assert (result.finding.name, result.finding.outcome) == ("not-preconditioned", "ok")
    assert result.drive_s == 2.0 + 5 * 10.0


def test_a_drive_that_is_full_is_not_filled_again() -> None:
    rig = Rig(1000)
    result = done(rig, fill=False)
    assert [each["rw"] for each in rig.ran] == ["randwrite"] * 5
    assert result.drive_s == 5 * 10.0
    assert result.finding.found.startswith("filled before, and now 5 rounds of 10 s, the last at ")
    assert price(8 * 10**9, fill=False) == (
        "about 5 min to 25 min: 5 to 25 rounds of 60 s until the rate is steady"
    )


@pytest.mark.parametrize(
    ("span_bytes", "seconds"),
    [(64 * MIB, 10.0), (10**9, 10.0), (5 << 28, 13.0), (6 * 10**9, 60.0), (10**12, 60.0)],
)
def test_a_round_is_a_minute_but_on_a_drive_that_is_filled_in_less(
    span_bytes: int, seconds: float
) -> None:
    rig = Rig(1000)
    assert done(rig, (0, span_bytes)).round_s == seconds
    assert {each["runtime"] for each in rig.ran[1:]} == {f"{seconds * 1000:.0f}ms"}
    assert f"rounds of {seconds:g} s" in price(span_bytes)


def test_rounds_go_on_until_the_last_five_are_steady() -> None:
    result = done(Rig(9000, 5000, 2000, 1000))
    assert result.rounds == (9000.0, 5000.0, 2000.0, *[1000.0] * 5)
    assert result.state == steady_state(result.rounds)


def test_a_drive_that_never_settles_is_given_up_and_said_not_to_be_steady() -> None:
    result = done(Rig(*[1000.0 * (1 + n % 2) for n in range(40)]))
    assert len(result.rounds) == MOST_ROUNDS
    assert result.finding.outcome == "void"
    assert "not steady: the last 5 rounds differ by" in result.finding.found


def test_a_workload_of_a_part_runs_there() -> None:
    rig = Rig(1000)
    host: Host = rig  # type: ignore[assignment]
    span = (8 * MIB, 16 * MIB)
    precondition(host, "/dev/sdx", random_write(span), span, depth=4, round_s=1.5)
    assert {(each["offset"], each["size"]) for each in rig.ran} == {(str(8 * MIB), str(16 * MIB))}
    assert rig.ran[1]["runtime"] == "1500ms"


def test_a_workload_that_only_reads_has_no_steady_state_of_writes() -> None:
    host: Host = Rig(1000)  # type: ignore[assignment]
    with pytest.raises(Misuse, match=r"random_read.*only reads"):
        precondition(host, "/dev/sdx", random_read(), (0, MIB), depth=1)


@pytest.mark.parametrize("broken", [Rig(1000, exit_code=1), Rig(1000, error=22), Rig(0)])
def test_a_fio_that_fails_is_trouble_and_no_rate(broken: Rig) -> None:
    with pytest.raises(RigTrouble, match="/dev/sdx"):
        done(broken)


def test_writes_that_fail_are_the_drives_fault() -> None:
    with pytest.raises(DriveFault, match=r"preconditioning failed .*requests failed"):
        done(Rig(1000, exit_code=1, error=5))


def test_the_price_is_said_with_what_it_is_made_of() -> None:
    assert price(8 * 10**9) == (
        "about 6 min to 26 min at 200 MB/s: 8 GB are written 2 times, then 5 to 25 rounds of "
        "60 s until the rate is steady"
    )


@pytest.fixture(scope="module")
def here() -> Iterator[Host]:
    with open_host(HostSpec(reach="local")) as host:
        yield host


@pytest.mark.skipif(shutil.which("fio") is None, reason="fio is not installed")
def test_a_real_fio_takes_these_options(here: Host, tmp_path: Path) -> None:
    drive = tmp_path / "drive"
    drive.write_bytes(bytes(MIB))
    workload = random_write()
    result = precondition(here, str(drive), workload, (0, MIB), depth=2, round_s=0.2, most_rounds=1)
    assert len(result.rounds) == 1
    assert result.rounds[0] > 0
    assert not result.state.steady
    assert b"\0" * 4096 not in drive.read_bytes(), "every block was written"
