"""A flash that goes wrong: what is said of it, what stays on record, and what is settled later."""

from typing import Any

import pytest

from leadline import flash_record, flashing
from leadline.drive.bind import Drive
from leadline.errors import DriveFault, Misuse, RigTrouble, message_of
from leadline.flash_record import unfinished
from leadline.flashing import flash
from leadline.host.connection import Host, HostLost
from leadline.host.trouble import ProgramFailed
from leadline.visiting import OpenVisit
from selftests.flasher import Flasher, flasher
from selftests.local_hosts import next_host
from selftests.visit_world import bench

__all__ = ["bench", "flasher", "next_host"]  # fixtures


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

    def test_a_flash_after_an_interrupted_one_settles_both(
        self, flasher: Flasher, next_host: Host, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        """As on the way home after Ctrl-C: what the first one left is nobody's doubt any more."""

        def interrupted(*_: object) -> None:
            raise KeyboardInterrupt

        with flasher.visit() as visit:
            with monkeypatch.context() as patched:
                patched.setattr(flashing, "_activated", interrupted)
                with pytest.raises(KeyboardInterrupt):
                    flash(visit)
            flash(visit)
        assert flasher.left(next_host, visit) == []

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
