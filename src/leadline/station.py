"""A rig while it is in use: connected, leased, watched, and given back at the end."""

import time
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager, suppress
from itertools import chain
from typing import Self, cast

import pytest

from leadline import away
from leadline.booting import await_boot, left_without_power
from leadline.brought_home import outcome_row
from leadline.builds import last_build
from leadline.drive.kernel_watch import KernelWatch
from leadline.drive.locate import put_out
from leadline.drive.quiet import await_quiet
from leadline.errors import DriveFault, Misuse, RigTrouble
from leadline.flash_record import OnRecord, look_after, unfinished
from leadline.host.connection import Host, HostLost, open_host
from leadline.host.journal import Journal
from leadline.host.programs import require
from leadline.inventory.plan import Cell, Visit
from leadline.inventory.rig import HostSpec, Rig
from leadline.kernel_faults import told
from leadline.live import Live
from leadline.mend import mend_host, mend_outlets
from leadline.power.byte_log import ByteLogs, folder_of_run
from leadline.results.record import Record
from leadline.results.schema import Environment
from leadline.running import Run
from leadline.visiting import OpenVisit


class Station:
    """One rig, open.  A context manager: leaving it gives back every setting.

    `in_doubt` has the slots of drives whose firmware may yet change, after a flash that did not
    come to its end, and what to do about each; `unfinished` are those of dead runs.  `put_on` is
    which firmware, by its name in the matrix, this run has put on the drive of a slot.
    `interrupted` are flashes of this run that Ctrl-C ended, by slot: on record until another
    succeeds.  `away` are the drives that this run has put on other firmware than they came with,
    by slot, and `left_away` those that dead runs left on it.  `written` are the drives, by the
    kernel's names, that were held for writing and have been let go.
    """

    def __init__(self, rig: Rig, run: Run, record: Record, live: Live) -> None:
        self.rig = rig
        self.run = run
        self.record = record
        self.live = live
        self.lost: RigTrouble | None = None
        self.put_on: dict[str, str] = {}
        self.interrupted: dict[str, list[OnRecord]] = {}
        self.away: dict[str, away.OnRecord] = {}
        self.written: set[str] = set()
        with ExitStack() as opening:
            # Outlets first: a host that a dead run left without power answers nobody.
            folder = folder_of_run(run.results, run.id)
            self.byte_logs: ByteLogs = opening.enter_context(ByteLogs(folder, live.say))
            self.here: Host = opening.enter_context(open_host(HostSpec(reach="local")))
            cut = left_without_power(self.here, [rig])
            for sentence in mend_outlets(self.here, [rig], self.byte_logs):
                live.say(sentence)
            for sentence in chain.from_iterable(map(await_boot, cut)):
                live.say(sentence)
            self.here_journal = opening.enter_context(Journal(self.here, run.id))
            self.host: Host = opening.enter_context(open_host(rig.host))
            require(self.host, "smartctl")  # so that its version is recorded beside fio's
            for sentence in [*mend_host(self.host, rig, run.id), *put_out(self.host)]:
                live.say(sentence)
            self.unfinished = unfinished(self.here, rig)
            said, self.in_doubt = look_after(self.here, self.host, rig, self.unfinished)
            self.left_away = away.left_away(self.here, rig)
            for sentence in chain(said, away.look_after(self)):
                live.say(sentence)
            self.journal = opening.enter_context(Journal(self.host, run.id))
            self.watch = opening.enter_context(KernelWatch(self.host))
            self._open = opening.pop_all()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        with self._open:  # given back even if the record cannot be written, or the host is gone
            facts = {"kernel": self.kernel, **self.host.versions} if self.lost is None else {}
            rows = [Environment(rig=self.rig.name, name=k, value=v) for k, v in facts.items()]
            self.record.add(*rows)

    def leave_quiet(self) -> None:
        """Wait until udev has looked at what was written to: what runs next may measure beside it.

        A rig that is gone by then is told when its settings are given back.
        """
        if self.written and self.lost is None:
            with suppress(RigTrouble):
                await_quiet(self.host, self.written, self.live.say)

    @property
    def kernel(self) -> str:
        """The release of the rig's kernel."""
        return self.host.read_file("/proc/sys/kernel/osrelease").decode().strip()

    def build_on(self, home: Visit, shown: str) -> str:
        """The name of what was put on a drive last, by this run, by one before, or by its maker.

        `home` is the visit with the firmware that the rig file says it came with, `shown` the
        revision that it says now.  Empty where nobody knows: a flash did not come to its end,
        or the image is not in the matrix.
        """
        cell = home.cell
        if cell.slot in self.put_on:
            return self.put_on[cell.slot]
        alike = self.run.matrix.model(cell.model).showing(shown)
        before = last_build(self.rig.drive(cell.slot)) if len(alike) > 1 else None
        if before is None or before.shows != shown:  # it was flashed since, without Leadline
            return cell.firmware
        return next((each.revision for each in alike if each.sha256 == before.sha256), "")

    def has_another_image(self, cell: Cell, shown: str) -> bool:
        """Whether what was put on a drive last shows this revision, and is none of the matrix's.

        A vendor's rebuild takes its predecessor's place in the matrix, and not on the drives.  A
        virtual drive has whatever its profile says, which is read when it is started.
        """
        before = None if self.rig.virtual else last_build(self.rig.drive(cell.slot))
        if before is None or before.shows != shown:
            return False
        hashes = [each.sha256 for each in self.run.matrix.model(cell.model).showing(shown)]
        return None not in hashes and before.sha256 not in hashes

    @contextmanager
    def latching(self) -> Iterator[None]:
        """What is done in here may lose the rig; its later tests are then ERRORs at once."""
        if self.lost is not None:
            raise RigTrouble(f"rig {self.rig.name} was lost earlier in this run: {self.lost}")
        try:
            yield
        except HostLost as error:
            self.lost = error
            raise


class Stations:
    """The rigs of one run in this process, each opened when a visit first needs it."""

    def __init__(self, run: Run, config: pytest.Config) -> None:
        self._run = run
        self._record = Record(run.results, run.id)
        self._live = Live(config)
        self._stations: dict[str, Station] = {}
        self._left: dict[tuple[str, str], tuple[Visit, str]] = {}
        self._failed: dict[str, RigTrouble] = {}
        self._open = ExitStack()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        try:
            with self._open:
                self._bring_home()
        finally:
            self._live.clear()
            self._record.close()

    def station(self, name: str) -> Station:
        """The rig of that name.  RigTrouble, the second time at once, if it cannot be opened."""
        if name in self._failed:
            raise self._failed[name]
        if name not in self._stations:
            try:
                station = Station(self._run.rigs[name], self._run, self._record, self._live)
            except RigTrouble as trouble:
                self._failed[name] = trouble
                raise
            self._stations[name] = self._open.enter_context(station)
        return self._stations[name]

    def leave_quiet(self) -> None:
        """See `Station.leave_quiet`; of every rig, when the last visit has ended."""
        for station in self._stations.values():
            station.leave_quiet()

    @contextmanager
    def visit(self, visit: Visit) -> Iterator[OpenVisit]:
        """One drive with one firmware, bound and leased for as long as the visit lasts."""
        station = self.station(visit.cell.rig)
        place = visit.cell.rig, visit.cell.slot
        opened = OpenVisit(station, visit)
        try:
            with station.latching(), opened:
                try:
                    yield opened
                finally:
                    self._left[place] = visit, opened.drive.identity.firmware
        finally:
            if place not in self._left and self._astray(visit):
                self._left[place] = visit, "that nobody knows"  # it was flashed, and not opened

    def _astray(self, visit: Visit) -> bool:
        """Whether the drive may have another firmware on it, put there, than it came with."""
        put_on, slot = self._stations[visit.cell.rig].put_on, visit.cell.slot
        return slot in put_on and put_on[slot] != self._run.home(visit).cell.firmware

    def _bring_home(self) -> None:
        """Put every drive back on the firmware that the rig file says it came with.

        Unless they are to keep theirs.  Each is tried, whatever becomes of others, and how it
        went is an outcome of the run.
        """
        if self._run.keep_firmware:
            for rig, slot in self._left:
                away.settle(self._stations[rig], slot)
            return
        for visit, runs in list(self._left.values()):
            home = self._run.home(visit)
            wanted = self._run.matrix.firmware(home.cell.model, home.cell.firmware)
            build = self._stations[home.cell.rig].build_on(home, runs)
            if (runs, build) == (wanted.shows, wanted.revision):
                continue
            began, failed = time.monotonic(), None
            try:
                self._go_back(home, runs)
            except (DriveFault, RigTrouble, Misuse) as error:
                failed = error
            row = outcome_row(home, time.monotonic() - began, failed)
            if failed is not None:
                self._live.say(row.message)
            self._record.add(row)

    def _go_back(self, home: Visit, runs: str) -> None:
        if (lost := self._stations[home.cell.rig].lost) is not None:
            raise RigTrouble(f"it is left on {runs}, for the rig was lost: {lost}")
        self._live.say(
            f"slot {home.cell.slot} of rig {home.cell.rig} goes back to firmware "
            f"{home.cell.firmware}, with which it came"
        )
        with self.visit(home):
            pass


@contextmanager
def watched(item: pytest.Item) -> Iterator[None]:
    """A test's call, with the kernel log watched and its claims counted."""
    visit = opened_visit(item)
    with visit.station.latching(), visit.test(item):
        yield


@contextmanager
def set_up(item: pytest.Item) -> Iterator[None]:
    """A test's setup: what the kernel said until it failed stands with its error, and is not
    blamed on the next test."""
    try:
        yield
    except Exception as error:
        if isinstance(item, pytest.Function) and isinstance(
            visit := item.funcargs.get("visit"), OpenVisit
        ):
            with suppress(RigTrouble):  # the rig may be what failed
                if faults := visit.kernel_faults.new(item.nodeid):
                    error.add_note(told(faults, visit.drive))
        raise


def opened_visit(item: pytest.Item) -> OpenVisit:
    """The fixture `visit` of a test of a drive, once it is set up."""
    assert isinstance(item, pytest.Function)
    return cast(OpenVisit, item.funcargs["visit"])
