"""Children that do not outlive us."""

import ctypes
import signal
from collections.abc import Callable

_PR_SET_PDEATHSIG = 1  # prctl(2)


def die_with_parent(number: signal.Signals) -> Callable[[], None]:
    """A `preexec_fn` that has the kernel send `number` to the child when its parent dies."""
    libc = ctypes.CDLL(None, use_errno=True)

    def ask() -> None:
        libc.prctl(_PR_SET_PDEATHSIG, int(number))

    return ask
