"""Firmware is put on a drive by the rig file's program: where, with what, and what comes back."""

import stat
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest

from leadline import flashing
from leadline.drive.bind import Drive
from leadline.errors import Misuse
from leadline.flashing import flash
from leadline.host.connection import Host, HostLost
from leadline.host.trouble import ProgramFailed
from leadline.inventory.rig import DriveSpec
from leadline.visiting import OpenVisit
from selftests.power_world import drive
from selftests.visit_world import MATRIX, RIG, Bench, bench, kept, make_run, open_station

__all__ = ["bench"]  # a fixture

SHA256 = "2c26b46b68ffc68ff99b453c1d30413413422d706483bfa0f98a5e886266e7ae"  # of b"foo"
OUTLET = """\
pdus: [{name: p, family: baytech-rpc3, port: /dev/not-there}]
outlets: [{name: a, pdu: p, outlet: 2, feeds: [a]}]
"""
FLASHER = """\
#!/bin/sh
printf '%s\\n' "$@" > {told}
exit {code}
"""


def flashable(runs_on: str, activates: str, program: str | Path) -> str:
    """The bench's rig file, with a program that flashes drive a."""
    words = '"{rig}", "{slot}", "{device}", "{image}"'
    spec = f"{{command: [{program}, {words}], runs_on: {runs_on}, activates: {activates}}}"
    first, rest = RIG.split("protocol: sata}\n", 1)
    return f"{first}protocol: sata, flash: {spec}}}\n{rest}{OUTLET}"


class Flasher:
    """A program that notes how it was called; and the drive, which then has the new firmware."""

    def __init__(self, bench: Bench) -> None:
        self.bench = bench
        self.told = bench.folder / "told"
        self.program = bench.folder / "flasher"
        self.image = bench.folder / "image 1.1.bin"
        self.image.write_bytes(b"foo")
        (bench.folder / "image 1.0.bin").write_bytes(b"foo")
        self.asked: dict[str, Any] = {}
        self.ends_with(0)

    def ends_with(self, code: int) -> None:
        self.program.write_text(FLASHER.format(told=self.told, code=code))
        self.program.chmod(self.program.stat().st_mode | stat.S_IXUSR)

    @contextmanager
    def visit(
        self, runs_on: str = "here", activates: str = "at-once", program: str | Path = ""
    ) -> Iterator[OpenVisit]:
        """A visit for firmware 1.1, to a drive that has 1.0."""
        text = flashable(runs_on, activates, program or self.program)
        matrix = MATRIX
        for revision in ("1.0", "1.1"):
            end = f'revision: "{revision}", '
            matrix = matrix.replace(end, f"{end}image: image {revision}.bin, sha256: {SHA256}, ")
        run = make_run(self.bench.folder, text, matrix)
        with open_station(self.bench, run) as station:
            visit = OpenVisit(station, run.visits[1])
            assert visit.visit.cell.firmware == "1.1"
            visit.rebound(self.bench.drive)
            yield visit

    def bind(self, host: Host, spec: DriveSpec, **wanted: Any) -> Drive:
        self.bench.did.append("bound")
        self.asked = wanted
        return drive(spec.slot, node="/dev/sdz")


@pytest.fixture
def flasher(bench: Bench, monkeypatch: pytest.MonkeyPatch) -> Flasher:
    made = Flasher(bench)
    bench.drive = drive("a")
    monkeypatch.setattr(flashing, "bind", made.bind)
    return made


def test_the_program_is_told_rig_slot_node_and_image_while_the_drive_is_held(
    flasher: Flasher, bench: Bench
) -> None:
    with flasher.visit() as visit:
        bench.did.clear()
        assert flash(visit) is None
        assert visit.drive.node == "/dev/sdz"
    assert flasher.told.read_text().splitlines() == ["bench", "a", "/dev/sda", str(flasher.image)]
    assert bench.did == ["admitted a to change a setting", "bound", "released a"]
    assert flasher.asked == {"firmware": "1.1"}, "and no other"
    (phase,) = kept(bench.folder, "phases")
    assert (phase["cell"], phase["name"]) == ("bench-a-MODEL-1.1", "flash")
    assert phase["seconds"] > 0


@pytest.mark.parametrize(("runs_on", "away"), [("here", "host"), ("rig", "here")])
def test_it_runs_where_the_rig_file_says(flasher: Flasher, runs_on: str, away: str) -> None:
    with flasher.visit(runs_on) as visit:
        other: Host = getattr(visit.station, away)
        other.close()
        flash(visit)
        assert flasher.told.exists()
        visit.station.lost = HostLost("closed by this test")


def test_a_power_cycle_activates_it_where_the_rig_file_says_so(
    flasher: Flasher, bench: Bench, monkeypatch: pytest.MonkeyPatch
) -> None:
    cycles: list[dict[str, Any]] = []
    done = object()

    def cycle(visit: OpenVisit, **wanted: Any) -> object:
        cycles.append(wanted)
        return done

    monkeypatch.setattr(flashing, "cycle", cycle)
    with flasher.visit(activates="power-cycle") as visit:
        bench.did.clear()
        assert flash(visit) is done
    assert cycles == [{"expected_firmware": "1.1"}]
    assert bench.did == ["admitted a to change a setting"], "and the cycle takes that over"


def test_a_program_beside_our_own_python_is_found_though_it_is_not_in_the_path(
    flasher: Flasher, monkeypatch: pytest.MonkeyPatch
) -> None:
    with flasher.visit(program="flasher") as visit:
        monkeypatch.setattr(sys, "executable", str(flasher.program.parent / "python"))
        flash(visit)
    assert flasher.told.exists()


def test_a_program_that_fails_leaves_the_drive_unbound(flasher: Flasher, bench: Bench) -> None:
    flasher.ends_with(7)
    with flasher.visit() as visit, pytest.raises(ProgramFailed, match="exit code 7"):
        flash(visit)
    assert "bound" not in bench.did


def test_without_a_program_or_an_image_it_is_said_which_is_lacking(bench: Bench) -> None:
    run = make_run(bench.folder)
    with open_station(bench, run) as station:
        visit = OpenVisit(station, run.visits[0])
        visit.rebound(bench.drive)
        with pytest.raises(Misuse, match=r"slot a: .* and the matrix has no image of it"):
            flash(visit)


def test_an_image_alone_is_not_enough(flasher: Flasher) -> None:
    with flasher.visit() as visit:
        visit.spec = visit.spec.model_copy(update={"flash": None})
        with pytest.raises(Misuse, match=r"firmware 1\.0, 1\.1 is to be tested, and the rig file"):
            flash(visit)
    assert not flasher.told.exists()
