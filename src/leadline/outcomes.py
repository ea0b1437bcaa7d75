"""From an exception to an outcome, and from outcomes to an exit code.

The exception decides, whatever the phase it came in: a drive's fault found while
a fixture was set up is still the drive's, and a PDU that falls silent in the
middle of a test is still the rig's.
"""

from collections.abc import Iterable
from enum import StrEnum

from leadline.errors import DriveFault, Inconclusive, Misuse, NeverAsserted, RigTrouble


class Ended(StrEnum):
    """How a test ended; `recorded` is one whose claim is judged at a later station."""

    PASS = "pass"
    FAIL = "fail"
    ERROR = "error"
    INCONCLUSIVE = "inconclusive"
    USAGE = "usage"
    EXCUSED = "excused"
    SKIPPED = "skipped"
    RECORDED = "recorded"
    DEFECT = "defect"


NOT_OFFERED = "not offered: "
"""How the reason of a skipped test begins that is about what this drive lacks."""
PASSED_CODE, FAILED_CODE, USAGE_CODE, RIG_CODE, INCONCLUSIVE_CODE = 0, 1, 2, 3, 4
DEFECT_CODE, INTERRUPTED_CODE = 70, 130
NOT_KEPT_CODE = 74
"""Of pytest below `leadline hil`, to tell it that results could not be written: it has to do with
pytest's own codes, which end at 5."""
UNREAD_CODE = 141
"""As of any program whose reader has gone: what a shell makes of SIGPIPE."""

# The first that occurred decides the exit code of the run.
_PRECEDENCE = (
    (Ended.USAGE, USAGE_CODE),
    (Ended.FAIL, FAILED_CODE),
    (Ended.ERROR, RIG_CODE),
    (Ended.DEFECT, DEFECT_CODE),
    (Ended.INCONCLUSIVE, INCONCLUSIVE_CODE),
)


def ended_by(error: BaseException) -> Ended:
    """How a test ends that raised `error`; of several at once, what decides the exit code does."""
    if isinstance(error, BaseExceptionGroup):  # pytest's, of several fixtures that could not end
        seen = {ended_by(each) for each in error.exceptions}
        return next((ended for ended, _ in _PRECEDENCE if ended in seen), Ended.DEFECT)
    return _ended_by_one(error)


def _ended_by_one(error: BaseException) -> Ended:
    import pytest  # here, because every command of the CLI imports this module

    if isinstance(error, Misuse):
        return Ended.USAGE
    if isinstance(error, RigTrouble):
        return Ended.ERROR
    if isinstance(error, Inconclusive):
        return Ended.INCONCLUSIVE
    if isinstance(error, DriveFault | NeverAsserted | AssertionError | pytest.fail.Exception):
        return Ended.FAIL
    if isinstance(error, pytest.skip.Exception):
        return Ended.SKIPPED
    return Ended.DEFECT


def exit_code(outcomes: Iterable[Ended]) -> int:
    """The exit code of a run: the first of 2, 1, 3, 70, 4 that one of its tests calls for, or 0."""
    seen = set(outcomes)
    return next((code for ended, code in _PRECEDENCE if ended in seen), PASSED_CODE)


def error_exit_code(error: Exception) -> int:
    """The exit code of a command that ended with `error`."""
    return exit_code([ended_by(error)])
