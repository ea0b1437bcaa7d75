"""What dead runs left above drives: found by the journal or by the mark, and taken down."""

from collections.abc import Sequence
from contextlib import ExitStack

from leadline.drive.bind import choose, scan
from leadline.errors import Misuse, RigTrouble
from leadline.host.connection import Host
from leadline.host.journal import DeadEntry, Journal, close_dead_entry, dead_entries
from leadline.host.lease import take
from leadline.inventory.rig import DriveSpec, Rig
from leadline.stack.dismantle import dismantle, marks_on
from leadline.stack.mark import Mark

ENTRY = "stack"


def put_on_record(journal: Journal, mark: Mark, drives: Sequence[DriveSpec]) -> str:
    """Before a stack is built: the id of its entry, to be closed when it has been taken down."""
    serials = [drive.serial for drive in drives]
    return journal.open_entry(ENTRY, {"mark": mark.digits, "serials": serials})


def take_down_left(host: Host, rig: Rig, holder: str, *, directory: str | None = None) -> list[str]:
    """Take down what dead runs left above drives of this rig; a sentence for each.

    One that cannot be is only told: the write guard refuses its drives, with the reason.
    `holder` is who has the drives' leases meanwhile.
    """
    said: list[str] = []
    for dead in dead_entries(host, ENTRY, directory=directory):
        try:
            said += _settled(host, rig, holder, dead)
        except (RigTrouble, Misuse) as trouble:
            said.append(
                f"{host.name}: what run {dead.run} left above its drives is still there: {trouble}"
            )
    return said


def _settled(host: Host, rig: Rig, holder: str, dead: DeadEntry) -> list[str]:
    mark, serials = Mark(str(dead.data["mark"])), list(dead.data["serials"])
    specs = [drive for drive in rig.drives if drive.serial in serials]
    if len(specs) < len(serials):
        absent = ", ".join(set(serials) - {spec.serial for spec in specs})
        raise RigTrouble(f"it is on {absent}, which the rig file does not have")
    with ExitStack() as leases:
        for spec in specs:
            leases.enter_context(take(host, spec.resource, holder))
        seen = scan(host)
        names = [choose(host.name, spec, seen).name for spec in specs]
        foreign = dismantle(host, mark, names)
    close_dead_entry(host, dead)
    slots = " and ".join(spec.slot for spec in specs)
    return [f"{host.name}: what run {dead.run} left above {slots} was taken down", *foreign]


def take_down_marked(host: Host, drive: str) -> list[str]:
    """Take down what is on a drive by its mark alone, for a rig that has lost its journal.

    The drive (a kernel name) is leased, and may be written to: everything on it is as good as
    lost.  A sentence for what was taken down.
    """
    said: list[str] = []
    for mark in marks_on(host, drive):
        said += [f"{host.name}: what a run left above /dev/{drive} was taken down, by its mark"]
        said += dismantle(host, mark, [drive])
    return said
