"""The outlets of a virtual PDU: what their contacts do, and what the unit shows of them."""

from collections.abc import Callable, Iterable

from leadline.virtual.pdus.faults import Faults


class Outlets:
    """Outlets 1 to `count`, whatever the unit itself calls them.

    `contacts` is what they really do, `shown` what the unit believes and tells;
    `on_switch(outlet, on)` is called when contacts move.  `reboot_s` is how long the unit's
    own reboot leaves them off.
    """

    def __init__(
        self,
        count: int,
        on_switch: Callable[[int, bool], None],
        *,
        on: Iterable[int] | None = None,
        faults: Faults | None = None,
        reboot_s: int = 10,
    ) -> None:
        numbers = range(1, count + 1)
        self.faults = faults if faults is not None else Faults()
        self.contacts = dict.fromkeys(numbers, False)
        self.contacts.update(dict.fromkeys(numbers if on is None else on, True))
        self.shown = dict(self.contacts)
        self.reboot_s = reboot_s
        self.careless: list[bytes] = []
        """Commands that no careful client sends: toggles, reboots, several outlets at once."""
        self._on_switch = on_switch

    def __len__(self) -> int:
        return len(self.contacts)

    def switch(self, outlet: int, *, on: bool) -> None:
        """Switch one of them, as far as its faults let it."""
        faults = self.faults
        outlet = faults.rewired.get(outlet, outlet)
        if outlet in faults.stuck or outlet not in self.contacts:  # wired to nothing here
            return
        if outlet not in faults.blind:
            self.shown[outlet] = on
        if outlet not in faults.welded and self.contacts[outlet] != on:
            self.contacts[outlet] = on
            self._on_switch(outlet, on)

    def name(self, outlet: int, usual: str) -> str:
        """What the user called it."""
        return self.faults.names.get(outlet, usual)
