"""An APC AP79xx by its command line: the unit of `apc_menu`, seen by who types ` -c`.

Its answers are `OK` and `Exxx` with APC's codes, as pduapc.py of PDU-Commander knows them.
"""

from leadline.virtual.pdus.apc_menu import Aos2, Aos3
from leadline.virtual.pdus.line import Unit

UNITS: tuple[type[Unit], ...] = (Aos3, Aos2)
