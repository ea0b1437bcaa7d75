"""Firmware is put on a drive: by what, when it is activated, and with which leave."""

import sys
from pathlib import Path
from typing import Any

import pytest

from leadline import flashing
from leadline.errors import DriveFault
from leadline.flashing import flash
from leadline.host.connection import Host
from leadline.visiting import OpenVisit
from selftests.flasher import IMAGE, Flasher, flasher
from selftests.local_hosts import next_host
from selftests.visit_world import Bench, bench, kept

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
