"""The families by the names that rig files use; one module each, loaded when it is needed."""

from importlib import import_module
from typing import cast

from leadline.inventory.pdu import FamilyName, PduSpec
from leadline.power.family import Family
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


def make_family(session: Session, spec: PduSpec) -> Family:
    """The dialogue of the PDU at the other end of a session."""
    module, _, name = FAMILIES[spec.family].partition(":")
    return cast(Family, getattr(import_module(module), name)(session, spec))
