"""What Python may not ask of what is not measured yet, and the numbers that may scale it."""

import math
from collections.abc import Callable
from numbers import Real
from typing import NoReturn, TypeGuard

from leadline.errors import Misuse


def refuse(what: str, instead: str) -> Callable[..., NoReturn]:
    """A method that raises Misuse, and says what to write instead."""

    def refused(self: object, *_: object) -> NoReturn:
        raise Misuse(f"{what} of what is not measured yet means nothing; {instead}")

    return refused


def is_number(value: object) -> TypeGuard[float]:
    """Whether `value` is one number, numpy's too, and no truth."""
    # An array has a __float__ too, and Real has numpy's numbers.
    return isinstance(value, Real) and not isinstance(value, bool)


def figure(value: float) -> float:
    """A number as a float: infinite where it is too large for one."""
    try:
        return float(value)
    except OverflowError:
        return math.inf


def finite(value: float) -> bool:
    """Whether `value` is above 0 and not infinite."""
    return 0.0 < value < math.inf
