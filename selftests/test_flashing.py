"""Firmware is put on a drive: with which leave, by what, and what the drive says afterwards."""

import hashlib
import stat
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from leadline import flash_record, flashing
from leadline.drive.bind import Drive
from leadline.errors import DriveFault, Misuse, RigTrouble, message_of
from leadline.flash_record import unfinished
from leadline.flashing import flash
from leadline.host.connection import Host, HostLost, ProgramMissing
from leadline.host.trouble import ProgramFailed
from leadline.inventory.rig import DriveSpec
from leadline.visiting import OpenVisit
from selftests.local_hosts import next_host
from selftests.power_world import drive
from selftests.visit_world import MATRIX, RIG, Bench, bench, kept, make_run, open_station

__all__ = ["bench", "next_host"]  # fixtures

IMAGE = b"microcode" * 1000
SHA256 = hashlib.sha256(IMAGE).hexdigest()
OUTLET = """\
pdus: [{name: p, family: baytech-rpc3, port: /dev/not-there}]
outlets: [{name: a, pdu: p, outlet: 2, feeds: [a]}]
"""
FLASHER = """\
#!/bin/sh
[ "$1" = -V ] && echo "version: 1.46" && exit 0
printf '%s\\n' "$@" >> {told}
for word; do case $word in --in=*) cp "${{word#--in=}}" {sent} ;; esac; done
{then}
"""


def flashable(flash_: str, outlet: str = OUTLET) -> str:
    """The bench's rig file, with that `flash` of drive a."""
    first, rest = RIG.split("protocol: sata}\n", 1)
    return f"{first}protocol: sata, ready_s: 0.5, flash: {flash_}}}\n{rest}{outlet}"


class Flasher:
    """A program that notes how it was called; and the drive, which then has the new firmware."""

    def __init__(self, bench: Bench) -> None:
        self.bench = bench
        self.told = bench.folder / "told"
        self.sent = bench.folder / "sent"
        self.images = {name: bench.folder / f"image {name}.bin" for name in ("1.0", "1.1")}
        for path in self.images.values():
            path.write_bytes(IMAGE)
        self.program = bench.folder / "programs" / "sg_write_buffer"
        self.program.parent.mkdir()
        self.asked: dict[str, Any] = {}
        self.runs: str | None = "1.1"
        """The firmware that the drive says afterwards; None: it does not answer."""
        self.does("exit 0")

    def does(self, then: str) -> None:
        text = FLASHER.format(told=self.told, sent=self.sent, then=then)
        self.program.write_text(text)
        self.program.chmod(self.program.stat().st_mode | stat.S_IXUSR)

    def by_program(self, runs_on: str = "here", activates: str = "at-once") -> str:
        words = '"{rig}", "{slot}", "{device}", "{image}"'
        return f"{{command: [{self.program}, {words}], runs_on: {runs_on}, activates: {activates}}}"

    @contextmanager
    def visit(
        self, flash_: str = "", *, outlet: str = OUTLET, of_1_0: str = "", of_1_1: str = ""
    ) -> Iterator[OpenVisit]:
        """A visit for firmware 1.1, to a drive that has 1.0."""
        text = flashable(flash_ or self.by_program(), outlet)
        matrix = MATRIX
        for revision, more in (("1.0", of_1_0), ("1.1", of_1_1)):
            end = f'revision: "{revision}", '
            named = f"{end}image: image {revision}.bin, sha256: {SHA256}, {more}"
            matrix = matrix.replace(end, named)
        run = make_run(self.bench.folder, text, matrix)
        with open_station(self.bench, run) as station:
            home = run.visits[0]
            # Made by hand, for a plan leaves out what is refused here once more.
            to_1_1 = replace(
                home,
                cell=replace(home.cell, firmware="1.1"),
                n=2,
                installed=False,
                image=self.images["1.1"],
            )
            visit = OpenVisit(station, to_1_1)
            visit.rebound(self.bench.drive)
            self.bench.did.clear()
            yield visit

    def bind(self, host: Host, spec: DriveSpec, **wanted: Any) -> Drive:
        self.bench.did.append("bound")
        if self.runs is None:
            raise RigTrouble("the drive is not there\nand more")
        identity = replace(self.bench.drive.identity, firmware=self.runs)
        return drive(spec.slot, node="/dev/sdz", identity=identity)

    def left(self, host: Host, visit: OpenVisit) -> list[str]:
        """What is on record as unfinished to a run that comes after this one."""
        return [one.record.step for one in unfinished(host, visit.station.rig)]


@pytest.fixture
def flasher(bench: Bench, monkeypatch: pytest.MonkeyPatch) -> Flasher:
    """`sg_write_buffer` is its program: the real one has no SCSI drive to talk to here."""
    made = Flasher(bench)
    bench.drive = drive("a", link=None)
    monkeypatch.setenv("PATH", f"{made.program.parent}:/usr/bin:/bin")
    monkeypatch.setattr(flashing, "bind", made.bind)
    return made


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
    assert [*Path(folder, "images").iterdir()] == []


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


class TestTrouble:
    """What goes wrong is said with what the drive runs now; where that may change, it waits."""

    def test_a_refusal_is_explained_and_the_drive_goes_on(
        self, flasher: Flasher, next_host: Host
    ) -> None:
        """What was not sent whole cannot be taken up later, though this mode saves only."""
        flasher.does("echo 'Invalid field in cdb' >&2; exit 5")
        flasher.runs = "1.0"
        with flasher.visit("{mode: 0xe}") as visit:
            with pytest.raises(Misuse, match="the drive refused WRITE BUFFER mode 0Eh") as caught:
                flash(visit)
            assert "the drive: it still runs 1.0" in message_of(caught.value)
            assert visit.station.in_doubt == {}
            assert visit.station.put_on == {"a": "1.0"}, "as before: nothing is put back"
        assert flasher.left(next_host, visit) == []

    def test_a_download_that_broke_off_leaves_a_doubt(
        self, flasher: Flasher, next_host: Host
    ) -> None:
        """The last piece may have been there: what is saved comes up at the next power-on."""
        flasher.does("exit 33")
        flasher.runs = "1.0"
        with flasher.visit("{mode: 0xe}") as visit:
            with pytest.raises(DriveFault, match="did not answer") as caught:
                flash(visit)
            assert "may hold 1.1, to be taken up at its next power-on" in message_of(caught.value)
            assert "a" in visit.station.in_doubt
        assert flasher.left(next_host, visit) == ["downloading"]

    def test_a_power_cycle_that_does_not_come_leaves_a_doubt(
        self, flasher: Flasher, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        """The drive says its new revision already, and runs the old one."""

        def cycle(visit: OpenVisit, **_: Any) -> None:
            raise RigTrouble("the PDU is silent")

        monkeypatch.setattr(flashing, "cycle", cycle)
        with flasher.visit("{activates: power-cycle}") as visit:
            with pytest.raises(RigTrouble, match="the PDU is silent") as caught:
                flash(visit)
            assert "it says 1.1, which waits for a power cycle" in message_of(caught.value)
            assert "a" in visit.station.in_doubt

    def test_a_vendors_program_that_fails_leaves_a_doubt(
        self, flasher: Flasher, next_host: Host
    ) -> None:
        flasher.does("exit 7")
        flasher.runs = "1.0"
        with flasher.visit(flasher.by_program(activates="power-cycle")) as visit:
            with pytest.raises(ProgramFailed, match="exit code 7") as caught:
                flash(visit)
            assert "may hold 1.1, to be taken up at its next power-on" in message_of(caught.value)
            with pytest.raises(RigTrouble, match=r"slot a: it runs 1\.0, and may hold 1\.1"):
                visit.__enter__()
        assert flasher.left(next_host, visit) == ["downloading"]

    def test_another_firmware_than_was_sent(self, flasher: Flasher, next_host: Host) -> None:
        flasher.runs = "1.0"
        said = r"runs 1\.0, though it took the image of 1\.1"
        with flasher.visit("{mode: 5}") as visit, pytest.raises(DriveFault, match=said) as caught:
            flash(visit)
        assert "may hold 1.1, to be taken up at its next power-on" in message_of(caught.value)
        assert "a" in visit.station.in_doubt, "a power cycle may bring it"
        assert flasher.left(next_host, visit) == ["activating"]

    def test_one_that_answers_too_late_with_its_old_firmware(
        self, flasher: Flasher, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        def bind(*given: Any, **wanted: Any) -> Drive:
            asked.append(1)
            if len(asked) == 1:
                raise RigTrouble("not there yet")
            return flasher.bind(*given, **wanted)

        asked: list[int] = []
        flasher.runs = "1.0"
        monkeypatch.setattr(flashing, "bind", bind)
        with flasher.visit("{mode: 5}") as visit:
            visit.spec = visit.spec.model_copy(update={"ready_s": 0.0})
            with pytest.raises(RigTrouble, match="not there yet") as caught:
                flash(visit)
            assert "may hold 1.1, to be taken up at its next power-on" in message_of(caught.value)

    def test_a_drive_that_does_not_answer_any_more(self, flasher: Flasher, next_host: Host) -> None:
        flasher.runs = None
        with flasher.visit("{mode: 5}") as visit:
            with pytest.raises(RigTrouble, match="the drive is not there") as caught:
                flash(visit)
            assert "does not say which firmware it runs" in message_of(caught.value)
            assert "slot a" in visit.station.in_doubt["a"]
        assert flasher.left(next_host, visit) == ["activating"]

    def test_a_drive_that_takes_its_time(
        self, flasher: Flasher, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        answers = iter([RigTrouble("not there"), DriveFault("not yet"), None])

        def bind(*given: Any, **wanted: Any) -> Drive:
            if (answer := next(answers)) is not None:
                raise answer
            return flasher.bind(*given, **wanted)

        monkeypatch.setattr(flashing, "bind", bind)
        monkeypatch.setattr(flashing, "LOOK_S", 0.001)
        with flasher.visit() as visit:
            visit.spec = visit.spec.model_copy(update={"ready_s": 60.0})
            flash(visit)
            assert visit.drive.identity.firmware == "1.1"

    def test_a_lost_rig_is_not_asked_again(
        self, flasher: Flasher, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        def bind(*_: Any, **__: Any) -> Drive:
            asked.append(1)
            raise HostLost("gone")

        asked: list[int] = []
        monkeypatch.setattr(flashing, "bind", bind)
        with flasher.visit() as visit, pytest.raises(HostLost):
            flash(visit)
        assert len(asked) == 2, "by the reading back, and for what to say of it"

    def test_an_interrupted_flash_stays_on_record(
        self, flasher: Flasher, next_host: Host, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        def interrupted(*_: Any) -> float:
            raise KeyboardInterrupt

        monkeypatch.setattr(flashing, "_download", interrupted)
        with flasher.visit() as visit, pytest.raises(KeyboardInterrupt) as caught:
            flash(visit)
        assert "the next run says what the drive runs" in message_of(caught.value)
        assert flasher.left(next_host, visit) == ["downloading"]

    @pytest.mark.parametrize(("how", "copied"), [("{mode: 5}", True), ("", False)])
    def test_where_the_copy_of_the_image_is_stands_on_record(
        self,
        flasher: Flasher,
        next_host: Host,
        monkeypatch: pytest.MonkeyPatch,
        how: str,
        copied: bool,
    ) -> None:
        """For the next run, which removes it when this one is killed."""

        def interrupted(visit: OpenVisit, order: object, there: str) -> float:
            given.append(there)
            raise KeyboardInterrupt

        given: list[str] = []
        monkeypatch.setattr(flashing, "_download", interrupted)
        with flasher.visit(how) as visit, pytest.raises(KeyboardInterrupt):
            flash(visit)
        (one,) = unfinished(next_host, visit.station.rig)
        assert one.record.copy == (given[0] if copied else "")
        assert given == [one.record.copy or str(flasher.images["1.1"])]

    def test_success_settles_what_a_dead_run_left(
        self, flasher: Flasher, next_host: Host, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        monkeypatch.setattr(flash_record, "bind", flasher.bind)
        flasher.does("exit 7")
        flasher.runs = "1.0"
        with (
            flasher.visit(flasher.by_program(activates="power-cycle")) as visit,
            pytest.raises(ProgramFailed),
        ):
            flash(visit)
        flasher.does("exit 0")
        with flasher.visit() as visit:
            assert "a" in visit.station.in_doubt, "the next run has found it"
            assert any("finish it (leadline flash" in said for said in flasher.bench.told.said)
            flasher.runs = "1.1"
            flash(visit)
            assert visit.station.in_doubt == {}
        assert flasher.left(next_host, visit) == []
