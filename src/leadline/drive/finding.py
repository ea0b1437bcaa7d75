"""The checks around slices: their names, what each means, and what one of them found."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Literal

Outcome = Literal["ok", "void", "unknown"]

MERGED = "merged"
NEIGHBOUR = "neighbour"
SETTINGS_MOVED = "settings-moved"
TEMPERATURE = "temperature"
OTHER_IO = "other-io"
OTHER_COMMANDS = "other-commands"
PAGE_CACHE = "page-cache"
ERRORS = "errors"
LINK_LIMIT = "link-limit"
STEAL_TIME = "steal-time"
UNWRITTEN = "unwritten"
SPAN = "span"
NOT_PRECONDITIONED = "not-preconditioned"
MEANINGS = {
    MERGED: "the block layer merged requests: the drive was sent fewer and larger ones",
    NEIGHBOUR: "another disk on the same controller did I/O meanwhile and shared the path",
    SETTINGS_MOVED: "a kernel setting that had been pinned or noted is another one now",
    TEMPERATURE: "the drive's temperature moved far, or is above the drive's own maximum",
    OTHER_IO: "another program read or wrote the drive meanwhile",
    OTHER_COMMANDS: "commands that are no I/O went to the drive, such as a SMART poll: one that "
    "is not queued drains the queue",
    PAGE_CACHE: "fewer bytes reached the drive than were asked for: some came from a cache",
    ERRORS: "the kernel counted commands that the drive or its path failed",
    LINK_LIMIT: "the link was nearly full: it was the limit, not the drive",
    STEAL_TIME: "a hypervisor kept processors from the rig meanwhile: they were the limit",
    UNWRITTEN: "most of what is read was never written, or was trimmed: reads of it need no flash",
    SPAN: "the span is small against the drive's cache: much of it may come from there",
    NOT_PRECONDITIONED: "the drive is not in a steady state for these writes",
}
"""Every check around slices, and what it means that it failed, in a reader's words."""
SCATTERS = frozenset({STEAL_TIME})
"""What makes all rates scatter and favours none: no reason to judge nothing, but none to FAIL."""


@dataclass(frozen=True, slots=True)
class Finding:
    """What one check found.

    `outcome` is "ok", "void" (slices that it concerns count for nothing) or "unknown": the
    rig, its kernel or the drive does not say, which voids nothing and is on record.
    `found` is a sentence for people, with figures.
    """

    name: str
    outcome: Outcome
    found: str

    def __str__(self) -> str:
        return f"{self.name}: {self.found}"


def failed(findings: Sequence[Finding]) -> tuple[Finding, ...]:
    """Those that void what they concern."""
    return tuple(finding for finding in findings if finding.outcome == "void")


def verdict_on(name: str, broken: bool, found: str) -> Finding:
    """The finding of a check that could be made."""
    return Finding(name, "void" if broken else "ok", found)
