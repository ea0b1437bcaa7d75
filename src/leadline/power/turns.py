"""Cuts of power take turns: by leases, on the machine that owns what they need.

Each cut is proven by who is gone and who is still there, so that another in the middle of it
would pass for bad wiring.
"""

CUTS = "power cuts"
"""What is leased on a rig while the power of one of its drives is cut."""


def of_pdu(port: str) -> str:
    """What is leased on this machine while outlets of the PDU at that port are cut."""
    return f"power cycle by {port}"
