"""From exceptions to outcomes, and from outcomes to the exit codes of the contract."""

import pytest

from leadline.errors import DriveFault, Inconclusive, Misuse, RigTrouble, message_of
from leadline.host.trouble import HostLost, ProgramMissing
from leadline.outcomes import Ended, ended_by, error_exit_code, exit_code


@pytest.mark.parametrize(
    ("error", "ended"),
    [
        (DriveFault("d"), Ended.FAIL),
        (AssertionError("a"), Ended.FAIL),
        (RigTrouble("r"), Ended.ERROR),
        (HostLost("h"), Ended.ERROR),
        (Misuse("m"), Ended.USAGE),
        (Inconclusive("i"), Ended.INCONCLUSIVE),
        (KeyError("k"), Ended.DEFECT),
        (OSError("o"), Ended.DEFECT),
        (pytest.fail.Exception("as the test sees it"), Ended.FAIL),
        (pytest.skip.Exception("not here"), Ended.SKIPPED),
    ],
)
def test_the_exception_decides(error: BaseException, ended: Ended) -> None:
    assert ended_by(error) is ended


@pytest.mark.parametrize(
    ("errors", "ended"),
    [
        ([RigTrouble("r"), HostLost("h")], Ended.ERROR),
        ([KeyError("k"), RigTrouble("r")], Ended.ERROR),
        ([RigTrouble("r"), ExceptionGroup("inner", [DriveFault("d")])], Ended.FAIL),
        ([KeyError("k"), OSError("o")], Ended.DEFECT),
    ],
)
def test_of_several_errors_at_once_the_one_decides_that_the_exit_code_is_of(
    errors: list[Exception], ended: Ended
) -> None:
    assert ended_by(ExceptionGroup("errors while tearing down", errors)) is ended


def test_several_errors_at_once_say_what_each_of_them_does() -> None:
    stuck = RigTrouble("outlet 1 is stuck")
    stuck.add_note("and outlet 2 stays off")
    group = ExceptionGroup("errors while tearing down", [DriveFault("it is gone"), stuck])
    assert message_of(group) == "it is gone\noutlet 1 is stuck\n  and outlet 2 stays off"


@pytest.mark.parametrize(
    ("outcomes", "code"),
    [
        ([], 0),
        ([Ended.PASS, Ended.EXCUSED, Ended.SKIPPED], 0),
        ([Ended.PASS, Ended.INCONCLUSIVE], 4),
        ([Ended.INCONCLUSIVE, Ended.ERROR], 3),
        ([Ended.ERROR, Ended.FAIL], 1),
        ([Ended.FAIL, Ended.USAGE], 2),
        ([Ended.DEFECT, Ended.INCONCLUSIVE], 70),
        ([Ended.DEFECT, Ended.ERROR], 3),
    ],
)
def test_precedence(outcomes: list[Ended], code: int) -> None:
    assert exit_code(outcomes) == code
    assert exit_code(reversed(outcomes)) == code


def test_an_error_of_a_command_has_the_same_code() -> None:
    assert error_exit_code(ProgramMissing("fio")) == 3
    assert error_exit_code(Misuse("which rig?")) == 2
