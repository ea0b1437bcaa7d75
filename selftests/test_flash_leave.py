"""What keeps a firmware from being put on a drive, before the first byte is sent."""

import hashlib
from dataclasses import replace

import pytest

from leadline.builds import Build, keep, path_of
from leadline.errors import Misuse, RigTrouble
from leadline.flashing import flash, runs
from leadline.host.connection import Host, ProgramMissing
from leadline.visiting import OpenVisit
from selftests.flasher import IMAGE, OUTLET, SHA256, Flasher, flashable, flasher
from selftests.local_hosts import next_host
from selftests.visit_world import MATRIX, Bench, bench, make_run, open_station

__all__ = ["bench", "flasher", "next_host"]  # fixtures


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
