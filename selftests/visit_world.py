"""A visit without a rig: this machine's own host, a drive whose sysfs is a folder, a log made up.

The station, leases, journals, settings and the record are the real ones; `Bench` answers for
the drive itself: who it is, its counters, its ladder, its load, and what the kernel logs of it.
"""

import sqlite3
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Self, cast

import pytest

from leadline import station as station_module
from leadline import steadying, vetting, visiting
from leadline.calibration import visited
from leadline.drive import quiet, scsi_pages, smart
from leadline.drive.bind import Controller, Drive
from leadline.drive.identify import decode
from leadline.drive.identify_changes import Log
from leadline.drive.kernel_events import KernelEvent
from leadline.drive.kernel_watch import KernelHistory, KernelLog
from leadline.drive.ladder import Ladder, Rung
from leadline.drive.overlap import Overlap
from leadline.drive.scsi_pages import Pages
from leadline.drive.smart import SmartSnapshot
from leadline.errors import Misuse, RigTrouble
from leadline.host import journal, lease
from leadline.host.connection import Host
from leadline.inventory.matrix import load_matrix
from leadline.inventory.plan import plan
from leadline.inventory.rig import DriveSpec, load_rig
from leadline.live import Live
from leadline.load.precondition import Preconditioned
from leadline.load.slices import Slice, SliceSetting
from leadline.load.workload import Workload
from leadline.power.cycle import PowerCycle
from leadline.results.record import FILE_NAME, Record
from leadline.running import Run
from leadline.station import Station
from leadline.verdict.steady_state import steady_state
from leadline.visiting import OpenVisit
from selftests.identify_images import image
from selftests.outlet_rig import Permit
from selftests.power_world import drive
from selftests.slice_drive import SliceDrive

RIG = """\
rig: bench
host: {reach: local}
controllers: [{name: c, driver: ahci}]
drives:
  - {slot: a, model: MODEL, serial: SERIAL-a, wwn: "0x5000c50000000001", firmware: "1.0",
     controller: c, protocol: sata}
  - {slot: b, model: MODEL, serial: SERIAL-b, firmware: "1.0", controller: c, protocol: sata}
"""
MATRIX = """\
classes:
  ssd: {depth_8_over_depth_1: {at_least: 3, source: a source}}
models:
  - model: MODEL
    class: ssd
    protocol: sata
    queue_depth: 32
    cache_bytes: 65536
    firmware:
      - {revision: "1.0", status: released}
      - {revision: "1.1", status: candidate}
"""
WWN = "0x5000c50000000001"
# What a run changes, as the kernel of this drive has it; `scheduler` is a choice.
SYSFS = {
    "device/queue_depth": "32",
    "queue/scheduler": "none [mq-deadline]",
    "queue/nomerges": "0",
    "queue/nr_requests": "64",
    "queue/logical_block_size": "512",
    "size": "2048",
}


class Watch:
    """`KernelWatch`, on a log that the test writes; `host` is what the station gives it."""

    def __init__(self, host: Host) -> None:
        self._log = KernelLog()
        self._lines = 0

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        pass

    def says(self, text: str) -> None:
        """The kernel logs this."""
        self._log.take(f"6,{self._lines},{self._lines * 1000000},-;{text}")
        self._lines += 1

    def loses(self, count: int) -> None:
        """So many records are overrun before anybody has read them."""
        self._lines += count

    def mark(self) -> int:
        return self._log.mark()

    def since(self, mark: int) -> tuple[KernelEvent, ...]:
        return self._log.events()[mark:]

    def history(self) -> KernelHistory:
        return self._log.history()


@dataclass
class Told:
    """`Live`, for reading afterwards: the line as it is now, and what was said to stay."""

    line: str = ""
    said: list[str] = field(default_factory=list)

    def show(self, text: str) -> None:
        self.line = text

    def slice(self, cell: str, claim: str, side: str, measured: Slice) -> None:
        self.line = f"{cell} {claim} {side}"

    def clear(self) -> None:
        self.line = ""

    def say(self, sentence: str) -> None:
        self.said.append(sentence)


@dataclass
class Bench:
    """Answers for the drive, and keeps what it was asked."""

    folder: Path
    drive: Drive
    did: list[str] = field(default_factory=list)
    bound_as: dict[str, Any] = field(default_factory=dict)
    load: SliceDrive = field(default_factory=lambda: SliceDrive({8: 7000, 1: 1000}))
    rungs: tuple[Rung, ...] = ()
    overlap: Overlap | None = None
    crc_errors: int = 0
    zeros: int = 0
    steady: bool = True
    logs: tuple[Log, ...] = ()
    pages: Pages = field(default_factory=dict)
    under_load: Callable[[], None] = lambda: None
    told: Told = field(default_factory=Told)

    def file(self, name: str) -> Path:
        """An attribute in the drive's sysfs."""
        return self.folder / "sysfs" / name

    def require(self, host: Host, program: str, minimum: str | None = None) -> str:
        host.versions[program] = "7.3"
        return "7.3"

    def bind(self, host: Host, spec: DriveSpec, **wanted: Any) -> Drive:
        self.did.append(f"bind {spec.slot}")
        self.bound_as = wanted
        return self.drive

    def snapshot(self, host: Host, node: str) -> SmartSnapshot:
        return SmartSnapshot(crc_errors=self.crc_errors)

    def log_directory(self, host: Host, node: str) -> tuple[Log, ...]:
        return self.logs

    def read_pages(self, host: Host, node: str) -> Pages:
        return self.pages

    def climb(self, host: Host, drive: Drive, history: KernelHistory) -> Ladder:
        self.did.append("climb")
        return Ladder(drive.identity.serial, host.boot_id(), self.rungs, self.overlap)

    def admit(
        self,
        host: Host,
        spec: DriveSpec,
        drive: Drive,
        purpose: str,
        allow_writes: bool = False,
    ) -> Permit:
        if purpose == "write" and not allow_writes:
            raise Misuse("both are needed")
        self.did.append(f"admitted {spec.slot} to {purpose}")
        return Permit(spec.slot, self.did, purpose)

    def zero_samples(
        self, host: Host, node: str, places: Sequence[int], logical_bytes: int
    ) -> tuple[int, int]:
        return self.zeros, len(places)

    def precondition(
        self,
        host: Host,
        node: str,
        workload: Workload,
        span: tuple[int, int],
        *,
        depth: int,
        fill: bool,
    ) -> Preconditioned:
        how = "" if fill else ", not filled"
        self.did.append(f"precondition {span[1]} bytes at depth {depth}{how}")
        rates = (1000.0, 1010.0, 990.0, 1000.0, 1005.0 if self.steady else 1500.0)
        spent = 4.0 if fill else 0.0
        return Preconditioned(workload, spent, rates, 60.0, steady_state(rates), fill)

    def run_slices(
        self,
        host: Host,
        node: str,
        workload: Workload,
        settings: Sequence[SliceSetting],
        *,
        depth_path: str,
        seeds: Sequence[int],
    ) -> list[Slice]:
        assert len(set(seeds)) == len(settings), "each slice reads other places"
        self.did.append("slices")
        for setting in settings:
            if setting.device_depth is not None:
                host.write_value(depth_path, str(setting.device_depth))
        self.under_load()
        return self.load.measure(workload, settings)

    def flash(self, visit: OpenVisit) -> PowerCycle | None:
        self.did.append("flash")
        return None


@pytest.fixture
def bench(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> Bench:
    """The bench, its answers in the place of a drive's; leases and journals of this test's own."""
    made = Bench(tmp_path, sysfs_drive(tmp_path))
    for name, text in SYSFS.items():
        made.file(name).parent.mkdir(parents=True, exist_ok=True)
        made.file(name).write_text(text)
    monkeypatch.setattr(lease, "DIRECTORY", str(tmp_path / "leases"))
    monkeypatch.setattr(journal, "default_directory", lambda _: str(tmp_path / "journal"))
    monkeypatch.setenv("XDG_STATE_HOME", str(tmp_path / "state"))
    monkeypatch.setattr(station_module, "KernelWatch", Watch)
    monkeypatch.setattr(station_module, "require", made.require)
    monkeypatch.setattr(station_module, "Live", lambda _: made.told)
    monkeypatch.setattr(smart, "snapshot", made.snapshot)
    monkeypatch.setattr(smart, "log_directory", made.log_directory)
    monkeypatch.setattr(scsi_pages, "read_pages", made.read_pages)
    monkeypatch.setattr(vetting, "zero_samples", made.zero_samples)
    monkeypatch.setattr(steadying, "precondition", made.precondition)
    monkeypatch.setattr(quiet, "LOOK_S", 0.0)
    monkeypatch.setattr(visited, "require", made.require)
    for name in ("bind", "climb", "admit", "run_slices", "flash"):
        monkeypatch.setattr(visiting, name, getattr(made, name))
    return made


@contextmanager
def open_station(bench: Bench, run: Run) -> Iterator[Station]:
    """The rig of such a run, open."""
    record = Record(run.results, run.id)
    record.start("a command", "0")
    with Station(run.rigs["bench"], run, record, cast(Live, bench.told)) as opened:
        bench.did.clear()
        yield opened
    record.close()


@pytest.fixture
def station(bench: Bench) -> Iterator[Station]:
    """The rig of the bench, open."""
    with open_station(bench, make_run(bench.folder)) as opened:
        yield opened


@pytest.fixture
def opened(station: Station) -> Iterator[OpenVisit]:
    """A visit to the drive in slot a, which has its firmware."""
    with OpenVisit(station, station.run.visits[0]) as visit:
        yield visit


def make_run(folder: Path, rig_file: str = RIG, matrix_file: str = MATRIX) -> Run:
    """A run of the bench's rig and matrix, its results beside them."""
    (folder / "bench.yaml").write_text(rig_file)
    (folder / "matrix.yaml").write_text(matrix_file)
    rig, matrix = load_rig(folder / "bench.yaml"), load_matrix(folder / "matrix.yaml")
    return Run(
        id="run-1",
        command="a command",
        version="0",
        rigs={rig.name: rig},
        matrix=matrix,
        visits=plan([rig], matrix),
        results=folder / "results",
        allow_writes=False,
        no_excuses=False,
        drive_time_s=20.0,
        allow_flash=True,
    )


def sysfs_drive(
    folder: Path,
    identify: bytes = image(model="MODEL", serial="SERIAL-a"),
) -> Drive:
    """The drive of slot a, its attributes in a folder: a path below /sys/block leads out there."""
    return drive(
        name=f"../..{folder}/sysfs",
        controller=Controller("", "", "ahci", "none"),
        identify=decode(identify),
    )


def watch_of(station: Station) -> Watch:
    """The kernel log of a station of the bench."""
    assert isinstance(station.watch, Watch)
    return station.watch


def kept(folder: Path, table: str) -> list[dict[str, Any]]:
    """Every row of a table of the results, as columns by name."""
    with sqlite3.connect(folder / "results" / FILE_NAME) as connection:
        connection.row_factory = sqlite3.Row
        return [dict(row) for row in connection.execute(f"select * from {table} order by id")]


def refuse(*_: object) -> Any:
    """What raises RigTrouble whatever it is asked."""
    raise RigTrouble("the rig does not answer")
