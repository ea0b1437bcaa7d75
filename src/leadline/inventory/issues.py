"""Known issues of a firmware matrix: which claim a cell may break, and until when."""

from collections.abc import Iterator
from datetime import date
from typing import TYPE_CHECKING

from pydantic import Field, PrivateAttr

from leadline.inventory.document import Location
from leadline.inventory.fields import ClaimKey, Day, Entry, Text, Words
from leadline.inventory.globs import ANY

if TYPE_CHECKING:
    from leadline.inventory.matrix import Matrix


class KnownIssue(Entry):
    """A claim that a cell is known to break, where that is written down, and until when."""

    claim: ClaimKey = Field(description="a claim's name, as in depth_8_over_depth_1")
    link: Text = Field(description="a URL or a document's path where the issue is described")
    summary: Words = Field(description="the issue in a sentence")
    excuses: bool = Field(
        default=True, description="true (the claim may fail) or false (it is only noted)"
    )
    expires: Day | None = Field(
        default=None, description="the last day on which it excuses, as in 2027-01-31"
    )
    model: Text = Field(default=ANY, description="a model, or a glob")
    firmware: Text = Field(default=ANY, description="a firmware's revision, or a glob")
    controller: Text = Field(default=ANY, description="a controller's name, or a glob")
    kernel: Text = Field(default=ANY, description="a kernel's release, or a glob as in 6.1.*")
    _where: str = PrivateAttr(default="")

    @property
    def where(self) -> str:
        """``file:line`` where it stands; nothing for one that was not read from a file."""
        return self._where

    def expired(self, today: date) -> bool:
        """Whether it excuses nothing any more."""
        return self.expires is not None and self.expires < today


def note_places(matrix: "Matrix") -> None:
    """Have each known issue know where it stands in the file."""
    for location, issue in placed(matrix):
        issue._where = matrix.where(*location)


def expired_excuses(matrix: "Matrix", today: date) -> Iterator[str]:
    """A message for each known issue that excused a claim once and does not any more."""
    for location, issue in placed(matrix):
        if issue.excuses and issue.expired(today):
            yield (
                f"{matrix.field(*location, 'expires')}: found {issue.expires}, which has passed, "
                "so that it excuses nothing any more; expected no entry once it is mended, or "
                f"a later day and why: {issue.link}"
            )


def placed(matrix: "Matrix") -> Iterator[tuple[Location, KnownIssue]]:
    """Each known issue of a matrix, and where in the file it stands."""
    for n, issue in enumerate(matrix.known_issues):
        yield ("known_issues", n), issue
    for m, model in enumerate(matrix.models):
        for k, firmware in enumerate(model.firmware):
            for n, issue in enumerate(firmware.known_issues):
                yield ("models", m, "firmware", k, "known_issues", n), issue
