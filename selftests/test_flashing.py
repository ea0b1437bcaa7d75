"""Firmware is put on a drive: by what, when it is activated, and with which leave."""

import hashlib
import sys
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from leadline import flashing
from leadline.builds import Build, keep, path_of
from leadline.errors import DriveFault, Misuse, RigTrouble
from leadline.flashing import flash, runs
from leadline.host.connection import Host, ProgramMissing
from leadline.visiting import OpenVisit
from selftests.flasher import IMAGE, OUTLET, SHA256, Flasher, flashable, flasher
from selftests.local_hosts import next_host
from selftests.visit_world import MATRIX, Bench, bench, kept, make_run, open_station

__all__ = ["bench", "flasher", "next_host"]  # fixtures


def test_the_program_is_told_rig_slot_node_and_image_while_the_drive_is_held(
    flasher: Flasher, bench: Bench
) -> None:
    with flasher.visit() as visit:
        assert flash(visit) is None
        assert visit.drive.node == "/dev/sdz"
        assert visit.station.put_on == {"a": "1.1"}
    image = str(flasher.images["1.1"])
    assert flasher.told.read_text().splitlines() == ["bench", "a", "/dev/sda", image]
    assert bench.did == ["admitted a to flash", "bound", "released a"]
    (phase,) = kept(bench.folder, "phases")
    assert (phase["cell"], phase["name"]) == ("bench-a-MODEL-1.1", "flash")
    assert phase["seconds"] > 0


@pytest.mark.parametrize(("runs_on", "away"), [("here", "host"), ("rig", "here")])
def test_it_runs_where_the_rig_file_says(flasher: Flasher, runs_on: str, away: str) -> None:
    with flasher.visit(flasher.by_program(runs_on)) as visit:
        ran: list[str] = []
        for name in ("host", "here"):
            host: Host = getattr(visit.station, name)
            host_run = host.run

            def run(argv: Any, *, name: str = name, real: Any = host_run, **rest: Any) -> Any:
                if str(argv[0]).endswith("sg_write_buffer"):
                    ran.append(name)
                return real(argv, **rest)

            host.run = run  # type: ignore[method-assign]
        flash(visit)
    assert ran == [{"here": "here", "rig": "host"}[runs_on]]
    assert away not in ran


@pytest.mark.parametrize(
    ("written", "mode", "chunks"),
    [
        ("allowed", 7, ["--bpw=4096"]),
        ("{mode: 0x5}", 5, []),
        ("{mode: 0x7, chunk_kib: 64}", 7, ["--bpw=65536"]),
    ],
)
def test_write_buffer_sends_a_copy_on_the_rig_that_is_gone_afterwards(
    flasher: Flasher, written: str, mode: int, chunks: list[str], tmp_path: Path
) -> None:
    with flasher.visit(written) as visit:
        flash(visit)
        folder = visit.station.host.state_directory()
    words = flasher.told.read_text().splitlines()
    assert {f"--mode={mode}", f"--length={len(IMAGE)}", *chunks} <= set(words)
    assert [word for word in words if word.startswith("--bpw")] == chunks
    assert words[-1] == "/dev/sda"
    assert flasher.sent.read_bytes() == IMAGE
    (sent,) = [Path(word.removeprefix("--in=")) for word in words if word.startswith("--in=")]
    assert sent.parent == Path(folder, "images")
    assert not sent.exists()


@pytest.mark.parametrize(
    ("written", "seconds"),
    [
        ("{mode: 0x5}", 670),
        ("allowed", 690),  # 9000 bytes: three pieces of 4 KiB
        ("{chunk_kib: 1}", 750),
        ("{chunk_kib: 16}", 670),
        ("program here", 690),
        ("program rig", 690),
    ],
)
def test_a_download_may_take_so_long_for_each_of_its_pieces(
    flasher: Flasher, written: str, seconds: float
) -> None:
    method, _, runs_on = written.partition(" ")
    given: list[float] = []
    with flasher.visit(flasher.by_program(runs_on) if method == "program" else written) as visit:
        for host in (visit.station.host, visit.station.here):

            def run(argv: Any, *, real: Any = host.run, **rest: Any) -> Any:
                if str(argv[0]).endswith("sg_write_buffer") and "-V" not in argv:
                    given.append(rest["deadline"])
                return real(argv, **rest)

            host.run = run  # type: ignore[method-assign]
        flash(visit)
    assert given == [seconds]


def test_each_copy_of_an_image_has_a_name_of_its_own(flasher: Flasher) -> None:
    """Two drives of one rig that are flashed at once: one is done before the other."""
    names = []
    for _ in range(2):
        with flasher.visit("allowed") as visit:
            flash(visit)
        words = flasher.told.read_text().splitlines()
        names += [word for word in words if word.startswith("--in=")]
    assert len(set(names)) == 2
    assert all("image 1.1.bin" in name for name in names)


def test_what_was_saved_only_is_activated_by_a_command_of_its_own(flasher: Flasher) -> None:
    with flasher.visit("{mode: 0xe, activates: at-once}") as visit:
        flash(visit)
    words = flasher.told.read_text().splitlines()
    assert [word for word in words if word.startswith("--mode")] == ["--mode=14", "--mode=15"]


@pytest.mark.parametrize(
    ("written", "of_the_image"),
    [
        ("{mode: 0xd}", ""),
        ("{activates: power-cycle}", ""),
        ("allowed", "activation: power-cycle,"),
    ],
)
def test_a_power_cycle_activates_it_where_rig_file_or_matrix_say_so(
    flasher: Flasher,
    bench: Bench,
    monkeypatch: pytest.MonkeyPatch,
    written: str,
    of_the_image: str,
) -> None:
    cycles: list[dict[str, Any]] = []
    done = object()

    def cycle(visit: OpenVisit, **wanted: Any) -> object:
        cycles.append(wanted)
        return done

    monkeypatch.setattr(flashing, "cycle", cycle)
    flasher.runs = "1.0"
    with flasher.visit(written, of_1_1=of_the_image) as visit:
        assert flash(visit) is done
        assert bench.did == ["admitted a to flash", "bound"], "and the cycle takes that over"
        flasher.runs = "1.1"
        flash(visit)
        assert visit.drive.identity.firmware == "1.1", "said before the cycle: the guard knows it"
    assert cycles == [{"expected_firmware": "1.1"}] * 2


def test_what_else_the_new_firmware_changes_is_no_fault_of_the_flash(flasher: Flasher) -> None:
    flasher.says = {"capacity_bytes": 512}
    with flasher.visit() as visit:
        flash(visit)
        assert visit.drive.identity.capacity_bytes == 512


@pytest.mark.parametrize("of_another", ["model", "serial", "wwn"])
def test_another_drive_after_the_flash_is_a_fault(flasher: Flasher, of_another: str) -> None:
    flasher.says = {of_another: "ANOTHER"}
    said = f"after the flash: (?i:{of_another}) was"
    with flasher.visit() as visit, pytest.raises(DriveFault, match=said):
        flash(visit)


def test_a_program_beside_our_own_python_is_found_though_it_is_not_in_the_path(
    flasher: Flasher, monkeypatch: pytest.MonkeyPatch
) -> None:
    flasher.program = flasher.program.rename(flasher.bench.folder / "flasher")
    written = flasher.by_program().replace(str(flasher.program), "flasher")
    with flasher.visit(written) as visit:
        monkeypatch.setattr(sys, "executable", str(flasher.program.parent / "python"))
        flash(visit)
    assert flasher.told.exists()


def refused(flasher: Flasher, visit: OpenVisit) -> str:
    """Why it is not even begun."""
    with pytest.raises(Misuse) as caught:
        flash(visit)
    assert not flasher.told.exists()
    return str(caught.value)


class TestLeave:
    """Whatever speaks against it is said before anything is sent."""

    def test_each_key_and_the_image_are_needed(self, flasher: Flasher) -> None:
        with flasher.visit() as visit:
            visit.spec = visit.spec.model_copy(update={"flash": None})
            said = refused(flasher, visit)
            assert said == (
                "slot a: the drive has firmware 1.0, 1.1 is wanted, and the rig file does not "
                "allow it (`flash: allowed`). Nothing was sent to the drive"
            )
        with flasher.visit() as visit:
            visit.station.run = replace(visit.station.run, allow_flash=False)
            assert "and --allow-flash was not given (as in: leadline flash --rig" in refused(
                flasher, visit
            )

    def test_without_an_image_in_the_matrix(self, flasher: Flasher, bench: Bench) -> None:
        with open_station(bench, make_run(bench.folder)) as station:
            visit = OpenVisit(station, station.run.visits[0])
            visit.rebound(bench.drive)
            assert "; the matrix has no image of it" in refused(flasher, visit)

    def test_an_image_of_another_model(self, flasher: Flasher, bench: Bench) -> None:
        """The rig file says MODEL, and so does the matrix; the drive knows better."""
        bench.drive = replace(bench.drive, identity=replace(bench.drive.identity, model="MODEL-X"))
        with flasher.visit() as visit:
            assert "its image is for MODEL (" in refused(flasher, visit)

    def test_a_scsi_model_without_its_vendor(self, flasher: Flasher, bench: Bench) -> None:
        bench.drive = replace(bench.drive, identity=replace(bench.drive.identity, model="V MODEL"))
        with flasher.visit() as visit:
            visit.spec = visit.spec.model_copy(update={"protocol": "scsi"})
            flash(visit)
        assert flasher.told.exists()

    def test_a_downgrade_that_the_firmware_on_the_drive_refuses(self, flasher: Flasher) -> None:
        with flasher.visit(of_1_0="downgrade: refused,") as visit:
            assert "1.0 refuses downgrades" in refused(flasher, visit)
        after = {"of_1_0": "downgrade: refused,", "of_1_1": 'predecessor: "1.0",'}
        with flasher.visit(**after) as visit:
            flash(visit)
        assert flasher.told.exists()

    def test_a_build_that_refuses_and_is_not_the_one_on_the_drive(
        self, flasher: Flasher, bench: Bench
    ) -> None:
        """Both say 1.0; the rig file says by its hash which of them it is."""
        image = f"image: image 1.0.bin, sha256: {SHA256}, "
        refusing = f'{{revision: "1.0-b", shows: "1.0", sha256: {"b" * 64}, downgrade: refused, '
        matrix = MATRIX.replace('{revision: "1.0", ', f'{{revision: "1.0", {image}')
        matrix = matrix.replace(
            '{revision: "1.1", ',
            f'{refusing}status: released}}\n      - {{revision: "1.1", {image}',
        )
        hashed = f'firmware: "1.0", firmware_sha256: {SHA256}'
        rig = flashable(flasher.by_program()).replace('firmware: "1.0"', hashed)
        run = make_run(bench.folder, rig, matrix)
        assert [visit.cell.firmware for visit in run.visits] == ["1.0", "1.1", "1.0"]
        with open_station(bench, run) as station:
            visit = OpenVisit(station, run.visits[1])
            visit.rebound(bench.drive)
            station.put_on["a"] = "1.0-b"
            assert "1.0 refuses downgrades" in refused(flasher, visit)
            del station.put_on["a"]
            flash(visit)
        assert flasher.told.exists()

    def test_the_next_run_knows_which_of_two_builds_was_put_on_it(
        self, flasher: Flasher, bench: Bench
    ) -> None:
        """As after a run that was killed; what the drive shows does not tell them apart."""
        other = IMAGE + b"rebuilt"
        (bench.folder / "rebuilt.bin").write_bytes(other)
        rebuilt = hashlib.sha256(other).hexdigest()
        matrix = MATRIX.replace(
            '{revision: "1.0", ',
            f'{{revision: "1.0", image: image 1.0.bin, sha256: {SHA256}, ',
        ).replace(
            '{revision: "1.1", ',
            f'{{revision: "1.0-b", shows: "1.0", image: rebuilt.bin, sha256: {rebuilt}, ',
        )
        hashed = f'firmware: "1.0", firmware_sha256: {SHA256}'
        rig = flashable(flasher.by_program()).replace('firmware: "1.0"', hashed)
        run = make_run(bench.folder, rig, matrix)
        flasher.runs = "1.0"
        home, candidate = (
            next(each for each in run.visits if (each.cell.slot, each.cell.firmware) == ("a", name))
            for name in ("1.0", "1.0-b")
        )
        of_1_0, of_rebuilt = run.matrix.model("MODEL").firmware
        with open_station(bench, run) as station:
            visit = OpenVisit(station, candidate)
            visit.rebound(bench.drive)
            assert runs(visit, of_1_0)
            flash(visit)
        flasher.told.unlink()
        with open_station(bench, replace(run, id="run-2")) as station:
            visit = OpenVisit(station, home)
            visit.rebound(bench.drive)
            assert station.put_on == {}
            assert not runs(visit, of_1_0)
            assert runs(visit, of_rebuilt)
            flasher.images["1.0"].unlink()
            assert "the image cannot be read" in refused(flasher, visit)
            flasher.images["1.0"].write_bytes(IMAGE)
            flash(visit)
            assert runs(visit, of_1_0)
        with open_station(bench, replace(run, id="run-3")) as station:
            visit = OpenVisit(station, home)
            visit.rebound(bench.drive)
            assert runs(visit, of_1_0)

    def test_a_build_that_was_put_on_it_before_another_revision_counts_no_more(
        self, flasher: Flasher, bench: Bench
    ) -> None:
        with flasher.visit() as visit:
            keep(visit.spec, Build("0.9", "c" * 64, "run-0"))
            home = visit.station.run.home(visit.visit)
            assert visit.station.build_on(home, "1.0") == "1.0"

    def test_a_rebuild_that_took_its_predecessors_place_in_the_matrix_is_not_on_the_drive(
        self, flasher: Flasher
    ) -> None:
        """Both say 1.0, and the matrix has the later one alone; results of one are not the
        other's."""
        flasher.runs = "1.0"
        with flasher.visit() as visit:
            visit.visit = visit.station.run.home(visit.visit)
            of_1_0, _ = visit.model.firmware
            assert runs(visit, of_1_0), "nobody knows better than the rig file"
            keep(visit.spec, Build("1.0", "c" * 64, "run-0"))
            assert not runs(visit, of_1_0)
            may, visit.station.run = (
                visit.station.run,
                replace(visit.station.run, allow_flash=False),
            )
            assert refused(flasher, visit).startswith(
                "slot a: the drive has firmware 1.0 (of another image than the matrix has, by "
                f"{path_of(visit.spec)}: remove that if it is wrong), 1.0 is wanted, and "
            )
            visit.station.run = may
            flash(visit)
            assert runs(visit, of_1_0)

    def test_of_an_image_whose_hash_the_matrix_lacks_and_of_a_virtual_drive_nobody_doubts(
        self, flasher: Flasher, bench: Bench
    ) -> None:
        earlier = Build("1.0", "c" * 64, "run-0")
        with open_station(bench, make_run(bench.folder)) as station:
            visit = OpenVisit(station, station.run.visits[0])
            visit.rebound(bench.drive)
            keep(visit.spec, earlier)
            assert runs(visit, visit.model.firmware[0])
        with flasher.visit() as visit:
            assert not runs(visit, visit.model.firmware[0])
            visit.station.rig = visit.station.rig.model_copy(update={"virtual": "a machine"})
            assert runs(visit, visit.model.firmware[0])

    def test_a_power_cycle_that_nothing_can_give(self, flasher: Flasher) -> None:
        with flasher.visit(outlet="", of_1_1="activation: power-cycle,") as visit:
            assert "no outlet feeds the drive" in refused(flasher, visit)
        of_host = OUTLET.replace("[a]", "host")
        with flasher.visit(outlet=of_host, of_1_1="activation: power-cycle,") as visit:
            assert "which would be that of this machine" in refused(flasher, visit)

    def test_a_power_cycle_that_the_drives_budget_does_not_bear(self, flasher: Flasher) -> None:
        """Else the image is in the drive, and nothing may activate it."""
        spent = "{activates: power-cycle}, power_budget: {power_cycles: 0}"
        said = "its power is not cut: it has had 0 power cycles"
        with flasher.visit(spent) as visit:
            with pytest.raises(RigTrouble, match=said):
                flash(visit)
            assert visit.station.in_doubt == {}
        assert not flasher.told.exists()

    def test_an_image_that_has_changed_since_the_plan(self, flasher: Flasher) -> None:
        with flasher.visit() as visit:
            flasher.images["1.1"].write_bytes(b"something else")
            assert f"expected {SHA256} as in the matrix" in refused(flasher, visit)
            flasher.images["1.1"].unlink()
            assert "the image cannot be read: No such file" in refused(flasher, visit)

    def test_a_copy_that_is_not_the_image(
        self, flasher: Flasher, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        with flasher.visit("allowed") as visit:
            host = visit.station.host
            write = host.write_file
            cut = IMAGE[:-1]
            monkeypatch.setattr(host, "write_file", lambda path, _: write(path, cut))
            with pytest.raises(RigTrouble, match="is not what was copied there"):
                flash(visit)
            assert visit.station.put_on == {}, "nothing was sent: there is nothing to put back"
        assert not flasher.told.exists()

    def test_a_program_that_is_not_there(self, flasher: Flasher, next_host: Host) -> None:
        """Nothing was sent, so that nothing is pending, whenever it would be activated."""
        flasher.runs = "1.0"
        written = flasher.by_program(activates="power-cycle")
        with flasher.visit(written.replace(str(flasher.program), "no-such-flasher")) as visit:
            with pytest.raises(ProgramMissing):
                flash(visit)
            assert visit.station.in_doubt == {}
            assert visit.station.put_on == {"a": "1.0"}, "as before: nothing is put back"
        assert flasher.left(next_host, visit) == []
