"""A program that puts firmware on a drive, and the drive that has it then; neither is real."""

import hashlib
import stat
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import replace
from typing import Any

import pytest

from leadline import flashing
from leadline.drive.bind import Drive
from leadline.errors import RigTrouble
from leadline.flash_record import unfinished
from leadline.host.connection import Host
from leadline.inventory.rig import DriveSpec
from leadline.visiting import OpenVisit
from selftests.power_world import drive
from selftests.visit_world import MATRIX, RIG, Bench, make_run, open_station

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
        self.says: dict[str, Any] = {}
        """What else it says of itself then that it did not say before."""
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
        identity = replace(self.bench.drive.identity, firmware=self.runs, **self.says)
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
