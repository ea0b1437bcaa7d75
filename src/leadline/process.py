"""A child that does not outlive its parent."""

import ctypes
import signal

_PR_SET_PDEATHSIG = 1  # prctl(2)


def end_with_parent(number: signal.Signals) -> None:
    """Have the kernel send `number` to this process when its parent dies, however it dies."""
    ctypes.CDLL(None, use_errno=True).prctl(_PR_SET_PDEATHSIG, int(number))
