"""A family that cannot tell what its outlets do: the RPC3's, never asked for its status."""

from leadline.power.families.baytech import BaytechRpc3

NAME = f"{__name__}:OneWay"
"""How the registry of families names it."""


class OneWay(BaytechRpc3):
    """Switches, and does not read back."""

    reads_back = False

    def status(self) -> dict[int, bool]:
        raise AssertionError("it was asked what it cannot tell")
