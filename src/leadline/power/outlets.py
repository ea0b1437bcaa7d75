"""Outlets that are switched off for a while, and on again whatever happens.

Before an outlet goes off, that is put on record in the journal of this machine; when
it is on again, and what it feeds is back, so is that.  Whatever ends the run in
between (an error, Ctrl-C: `lent`; SIGKILL, a power failure here: `restore_outlets`),
the outlets end on.
"""

from collections.abc import Callable, Collection, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import asdict, dataclass
from typing import Any

from pydantic import TypeAdapter

from leadline.errors import Misuse, RigTrouble
from leadline.host.connection import Host, open_host
from leadline.host.journal import DeadEntry, Journal, close_dead_entry, dead_entries
from leadline.inventory.pdu import PduSpec
from leadline.inventory.rig import HostSpec
from leadline.power.byte_log import ByteLogs
from leadline.power.pdu import open_pdu
from leadline.power.spin_up import SpinUp
from leadline.power.supplies import Supply, switch_all

ENTRY = "outlet off"
_SPIN_UP: TypeAdapter[SpinUp | None] = TypeAdapter(SpinUp | None)
RESCAN_S = 90.0  # a port that lost its drive is reset a few times before it is given up


@dataclass(frozen=True)
class Rescan:
    """Where the kernel must be told to look for drives again: `scan` attributes in sysfs."""

    host: HostSpec
    paths: tuple[str, ...]


@contextmanager
def lent(
    journal: Journal,
    supplies: Sequence[Supply],
    put_back: Callable[[], None],
    rescan_at: "Rescan | None" = None,
) -> Iterator[None]:
    """For as long as these outlets may be off: afterwards they are on.

    On a way out by any exception, they are switched on, and then `put_back` is called,
    for what else must be brought back; if that fails the exception gets a note that
    says so, and the record stays, for `restore_outlets`, which also does `rescan_at`.
    """
    for supply in supplies:
        supply.pdu.check(supply.outlet)
    record = {
        "outlets": [_on_record(supply) for supply in supplies],
        "rescan": rescan_at
        and {"host": rescan_at.host.model_dump(mode="json"), "paths": rescan_at.paths},
    }
    entry = journal.open_entry(ENTRY, record)
    try:
        yield
    except BaseException as error:
        try:
            try:
                switch_all(supplies, on=True)
            finally:  # with one of two supplies a drive has power, too
                put_back()
        except RigTrouble as trouble:
            error.add_note(f"and then, when its power was to be put back: {trouble}")
            raise error from None
        journal.close_entry(entry)
        raise
    journal.close_entry(entry)


def restore_outlets(
    here: Host,
    *,
    ports: Collection[str] | None = None,
    directory: str | None = None,
    logs: ByteLogs | None = None,
) -> list[str]:
    """Switch on what dead runs left off; one sentence for each thing done.

    `here` is a connection to this machine, where the journals are.  Raises RigTrouble,
    after all were tried, for outlets that could not be switched on; they stay on record.
    With `ports`, only for outlets of PDUs on these: of another rig's, which may be away
    for good and is none of this run's business, it is only said.  What is said to and by the
    PDUs is kept in `logs`.
    """
    said: list[str] = []
    troubles: list[str] = []
    for dead in dead_entries(here, ENTRY, directory=directory):
        done, failed = _restore(dead, logs)
        said += done
        if not failed:
            close_dead_entry(here, dead)
            continue
        sentence = (
            f"left off by run {dead.run}, and cannot be switched on: {'; '.join(failed)} "
            f"(where that PDU is no more, remove {dead.journal})"
        )
        mine = {str(record["pdu"]["port"]) for record in dead.data["outlets"]}
        (troubles if ports is None or mine & set(ports) else said).append(sentence)
    if troubles:
        raise RigTrouble("; ".join([*troubles, *said]))
    return said


def _on_record(supply: Supply) -> dict[str, Any]:
    return {
        "pdu": supply.pdu.spec.model_dump(mode="json"),
        "outlet": supply.outlet,
        "spin_up": supply.spin_up and asdict(supply.spin_up),
    }


def _restore(dead: DeadEntry, logs: ByteLogs | None) -> tuple[list[str], list[str]]:
    """What was done, and what could not be: each outlet is tried, whatever became of others."""
    said: list[str] = []
    failed: list[str] = []
    for record in dead.data["outlets"]:
        try:
            said.append(f"{_switched_on(record, logs)}, after run {dead.run} of {dead.time}")
        except (RigTrouble, Misuse) as trouble:  # Misuse: a password that is not set here
            failed.append(str(trouble))
    if said and (record := dead.data["rescan"]):
        spec_of_host = HostSpec.model_validate(record["host"])
        try:
            with open_host(spec_of_host) as host:
                for path in record["paths"]:
                    rescan(host, path)
        except RigTrouble as trouble:  # the outlets are on, which was the promise
            said.append(f"the drive may have to be looked for (rescan): {trouble}")
    return said, failed


def _switched_on(record: dict[str, Any], logs: ByteLogs | None) -> str:
    spec = PduSpec.model_validate(record["pdu"])
    spin_up = _SPIN_UP.validate_python(record.get("spin_up"))
    with open_pdu(spec, log=logs.of(spec) if logs else None) as pdu:
        supply = Supply(pdu, int(record["outlet"]), spin_up)
        was_on = _is_on(supply)
        (done,) = switch_all([supply], on=True)
    if not done.verified:
        return f"{supply} was told to go on (unverified: it cannot be read back)"
    return f"{supply} {'was on already' if was_on else 'is on again'}"


def _is_on(supply: Supply) -> bool:
    """Whether it is read back as on; one whose PDU does not say so is to be told."""
    try:
        return supply.pdu.reads_back() and supply.pdu.status()[supply.outlet]
    except RigTrouble:
        return False


def rescan(host: Host, path: str) -> None:
    """Have the kernel look for drives on a SCSI host: `path` is its `scan` in sysfs."""
    host.run(["tee", path], input=b"- - -\n", deadline=RESCAN_S)
