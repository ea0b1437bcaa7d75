"""Virtual PDUs: a unit for each family, one module each, on a line that can misbehave."""

from importlib import import_module
from typing import cast

from leadline.inventory.pdu import FamilyName
from leadline.virtual.pdus.line import Unit

UNITS: dict[FamilyName, str] = {
    "baytech-rpc3": "leadline.virtual.pdus.baytech",
    "baytech-rpc28": "leadline.virtual.pdus.baytech_rpc28",
    "baytech-rpc3-menu": "leadline.virtual.pdus.baytech_menu",
    "apc-menu": "leadline.virtual.pdus.apc_menu",
    "apc-cli": "leadline.virtual.pdus.apc_cli",
    "apc-cli8": "leadline.virtual.pdus.apc_cli8",
    "wti-nps": "leadline.virtual.pdus.wti_nps",
    "wti-rps10": "leadline.virtual.pdus.wti_rps10",
    "sentry-cdu": "leadline.virtual.pdus.sentry_cdu",
    "lcus": "leadline.virtual.pdus.lcus",
    "kmtronic": "leadline.virtual.pdus.kmtronic",
    "devantech-rly": "leadline.virtual.pdus.devantech_rly",
    "numato": "leadline.virtual.pdus.numato",
    "quarch": "leadline.virtual.pdus.quarch",
    "scpi": "leadline.virtual.pdus.scpi",
    "control-line": "leadline.virtual.pdus.control_line",
    "described": "leadline.virtual.pdus.described",
}
"""Each module has a tuple `UNITS`: the family's usual unit first, then its variants (another
firmware, a login), which tests try too."""


def units(family: FamilyName) -> tuple[type[Unit], ...]:
    """The family's virtual units."""
    return cast(tuple[type[Unit], ...], import_module(UNITS[family]).UNITS)
