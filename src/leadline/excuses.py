"""Known issues of the firmware matrix, and whether they excuse a test here and today."""

from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from traceback import walk_tb
from typing import TYPE_CHECKING

import pytest

from leadline.running import RUN, claim_of, subject_of

if TYPE_CHECKING:
    from leadline.inventory.issues import KnownIssue

_PACKAGE = Path(__file__).resolve().parent


class PlainAssertion(AssertionError):
    """A plain `assert` of a test that did not hold, of which a known issue says so."""


def excuse(item: pytest.Item, issue: "KnownIssue") -> None:
    """A claim of this test may fail, and a plain assertion of its own, and nothing else of it."""
    from leadline.claims import ClaimFailed

    at = f" at {issue.where}" if issue.where else ""
    reason = f"known issue: {issue.summary} ({issue.link}){at}"
    raises = ClaimFailed, PlainAssertion
    item.add_marker(pytest.mark.xfail(raises=raises, reason=reason, strict=False))


@contextmanager
def while_they_last(item: pytest.Item) -> Iterator[None]:
    """A test's call: issues of the rig's kernel excuse it, and one that has expired is told.

    The kernel is known only once the rig is reached, so that these are not excused earlier.
    """
    from leadline.inventory.globs import ANY, fits
    from leadline.station import opened_visit

    run, subject = item.config.stash[RUN], subject_of(item)
    issues = run.known_issues(subject) if subject is not None else ()
    of_claim = [each for each in issues if each.excuses and each.claim == claim_of(item)]
    if any(issue.kernel != ANY for issue in of_claim):
        kernel = opened_visit(item).station.kernel
        of_claim = [issue for issue in of_claim if fits(issue.kernel, kernel)]
    valid = [issue for issue in of_claim if not issue.expired(run.today)]
    for issue in valid:
        if issue.kernel != ANY and not run.no_excuses:
            excuse(item, issue)
    try:
        yield
    except AssertionError as failed:
        if run.no_excuses or not _is_of_the_test(failed):
            raise
        if valid and not _is_claim(failed):
            raise PlainAssertion(str(failed)) from failed
        for issue in [] if valid else of_claim:
            failed.add_note(
                f"the known issue that excused this expired on {issue.expires} ({issue.where}): "
                f"{issue.summary} ({issue.link}); mend it, or give it a later day and say why"
            )
        raise


def _is_claim(failed: AssertionError) -> bool:
    from leadline.claims import ClaimFailed

    return isinstance(failed, ClaimFailed)


def _is_of_the_test(failed: AssertionError) -> bool:
    """Whether a claim or the test has failed, and not an assertion of Leadline's own: a defect.

    The suite's tests stand in the package, too; a vendor's, and their helpers, do not.
    """
    if _is_claim(failed):
        return True
    *_, (frame, _) = walk_tb(failed.__traceback__)
    file = Path(frame.f_code.co_filename).resolve()
    return not file.is_relative_to(_PACKAGE) or file.is_relative_to(_PACKAGE / "suite")
