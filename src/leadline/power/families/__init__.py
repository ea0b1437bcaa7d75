"""The families by the names that rig files use; one module each, loaded when it is needed."""

from importlib import import_module
from importlib.util import find_spec
from typing import cast

from leadline.errors import Misuse
from leadline.inventory.pdu import FamilyName, PduSpec
from leadline.power.family import Family
from leadline.power.port import where
from leadline.power.session import Session

FAMILIES: dict[FamilyName, str] = {
    "baytech-rpc3": "leadline.power.families.baytech:BaytechRpc3",
    "baytech-rpc28": "leadline.power.families.baytech_rpc28:BaytechRpc28",
    "baytech-rpc3-menu": "leadline.power.families.baytech_menu:BaytechMenu",
    "apc-menu": "leadline.power.families.apc_menu:ApcMenu",
    "apc-cli": "leadline.power.families.apc_cli:ApcCli",
    "apc-cli8": "leadline.power.families.apc_cli8:ApcCli8",
    "wti-nps": "leadline.power.families.wti_nps:WtiNps",
    "wti-rps10": "leadline.power.families.wti_rps10:WtiRps10",
    "sentry-cdu": "leadline.power.families.sentry_cdu:SentryCdu",
    "lcus": "leadline.power.families.lcus:Lcus",
    "kmtronic": "leadline.power.families.kmtronic:Kmtronic",
    "devantech-rly": "leadline.power.families.devantech_rly:DevantechRly",
    "numato": "leadline.power.families.numato:Numato",
    "quarch": "leadline.power.families.quarch:Quarch",
    "scpi": "leadline.power.families.scpi:Scpi",
    "control-line": "leadline.power.families.control_line:ControlLine",
    "described": "leadline.power.families.described:Described",
}


def is_built(family: FamilyName) -> bool:
    """Whether this version of Leadline has the family's module."""
    return find_spec(FAMILIES[family].partition(":")[0]) is not None


def make_family(session: Session, spec: PduSpec) -> Family:
    """The dialogue of the PDU at the other end of a session.

    Raises Misuse for a family whose module this version does not have.
    """
    module, _, name = FAMILIES[spec.family].partition(":")
    if not is_built(spec.family):
        built = ", ".join(family for family in FAMILIES if is_built(family))
        raise Misuse(f"{where(spec)}: family {spec.family} is not built in yet; there are: {built}")
    return cast(Family, getattr(import_module(module), name)(session, spec))
