"""A look at the rigs before a run, so that what is missing is said once, at once, and plainly."""

from collections.abc import Sequence

from leadline.away import by_record
from leadline.drive.bind import choose, scan
from leadline.errors import Misuse, RigTrouble
from leadline.flash_record import of_silent
from leadline.host.connection import open_host
from leadline.host.programs import require
from leadline.inventory.rig import HostSpec, Rig
from leadline.load.fio import FIO_MINIMUM
from leadline.power.pdu import open_pdu


def refuse_absent(rigs: Sequence[Rig], total: int) -> None:
    """Raise RigTrouble if not one of all `total` rigs of a run has a drive to test.

    A rig that answers and has one of its drives is good enough, for tests of the others will
    say what is wrong with those; and one good rig is, for the others' tests will.  Misuse where
    the rig files are all that is wrong.
    """
    absent = [trouble for rig in rigs if (trouble := _absent(rig))]
    if absent and len(absent) == total:
        misuse = all(isinstance(trouble, Misuse) for trouble in absent)
        raise (Misuse if misuse else RigTrouble)("\n".join(map(str, absent)))


def _absent(rig: Rig) -> Misuse | RigTrouble | None:
    """Why nothing can be tested on a rig; None if something can.

    Misuse where all its drives are there, and each is another than the rig file says.
    """
    try:
        for pdu in rig.pdus:
            open_pdu(pdu).close()
        with open_host(rig.host) as host:
            require(host, "fio", FIO_MINIMUM)
            require(host, "smartctl")
            seen = scan(host)
            troubles: list[Misuse | RigTrouble] = []
            for spec in rig.drives:
                try:
                    choose(host.name, spec, seen)
                except (RigTrouble, Misuse) as trouble:
                    troubles.append(trouble)
                else:
                    return None
        with open_host(HostSpec(reach="local")) as here:
            said = [*map(str, troubles), *of_silent(here, rig), *by_record(here, [rig])]
        misuse = all(isinstance(trouble, Misuse) for trouble in troubles)
        head = f"rig {rig.name}: none of its drives can be tested:"
        return (Misuse if misuse else RigTrouble)("\n".join([head, *said]))
    except RigTrouble as trouble:
        return RigTrouble(f"rig {rig.name}: {trouble}")
