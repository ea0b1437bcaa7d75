"""Whose fault it is.

Every error that Leadline raises on purpose is one of five, and the outcome of a
test follows from which: a drive's fault FAILS the test, the rig's trouble makes
it an ERROR, the user's misuse ends the run with exit code 2, too little
evidence is INCONCLUSIVE, and a test that never asserts what it claims FAILS.  They
are kept apart from the first line that notices, for nothing further up can tell
a silent PDU from a dead drive.
"""

from collections.abc import Callable, Iterator
from contextlib import contextmanager


class DriveFault(Exception):
    """The drive or its controller broke a claim: FAIL, exit code 1."""


class RigTrouble(Exception):
    """The rig did not do its part (PDU, ssh, a missing program): ERROR, exit code 3."""


class Misuse(Exception):
    """The user asked for what cannot be: a wrong file, option or drive. Exit code 2."""


class Inconclusive(Exception):
    """The evidence settles nothing, and nobody guesses: INCONCLUSIVE, exit code 4."""


class NeverAsserted(Exception):
    """A test stated a claim and ended without asking whether it holds: FAIL, exit code 1.

    It is the test's fault and no assertion that failed, so that no known issue excuses it.
    """


def message_of(error: BaseException) -> str:
    """What an error says, and below it what else went wrong then: its notes.

    Of several outlets one error is raised, and the others are noted on it; as is an outlet that
    could not be switched on again.  Of a group, what each of its errors says.
    """
    if isinstance(error, BaseExceptionGroup):
        return "\n".join(map(message_of, error.exceptions))
    return "\n  ".join([str(error), *getattr(error, "__notes__", ())])


@contextmanager
def put_back_after(what: str, put_back: Callable[[], None]) -> Iterator[None]:
    """Whatever happens in here, `put_back` is called after it.

    Where it fails, too, that is a note on what went wrong first, whose fault it is to stay.
    """
    try:
        yield
    except BaseException as error:
        try:
            put_back()
        except (DriveFault, RigTrouble) as trouble:
            error.add_note(f"and then, when {what} was to be put back: {trouble}")
        raise
    put_back()
