"""Every family with each of its virtual units: what drivers of PDUs are tried on.

A family is tried by being registered; there is nothing to add to this file.
"""

from dataclasses import dataclass
from functools import cache

from leadline.inventory.pdu import FAMILY_NAMES, FamilyName, PduSpec
from leadline.virtual.pdus import units
from leadline.virtual.pdus.control_line import Relays
from leadline.virtual.pdus.line import Unit
from selftests.pdu_line import bench

# Names that users may have given to outlets.
HOSTILE = ["ON", "x : Off", "OFF*", "\x1b[2J", "> ", "x (Y/N)", "password:", "Press <ENTER>", "OK"]


@dataclass(frozen=True)
class Specimen:
    """One unit that a family's driver is tried on."""

    family: FamilyName
    unit: type[Unit]

    def __str__(self) -> str:
        return f"{self.family}-{self.unit.__name__}"

    def spec(self, port: str) -> PduSpec:
        """Its entry in a rig file."""
        given = {"name": "a", "family": self.family, "port": port, **self.unit.SPEC}
        return PduSpec.model_validate(given)

    @property
    def outlets(self) -> int:
        """How many it has."""
        return self.spec("/dev/x").outlets

    @property
    def fits_a_pty(self) -> bool:
        """Whether bytes are all that it hears: a pseudo-terminal has no DTR and no RTS."""
        return not issubclass(self.unit, Relays)

    @property
    def has_login(self) -> bool:
        """Whether it asks for a password."""
        return "password_env" in self.unit.SPEC

    @cache  # noqa: B019 - a few dozen, which live as long as the tests
    def tells(self) -> bool:
        """Whether it can be read back, when nothing is wrong with it."""
        with bench(None, self.family, self.unit) as (pdu, _):
            return pdu.reads_back()


SPECIMENS = [Specimen(family, unit) for family in FAMILY_NAMES for unit in units(family)]
