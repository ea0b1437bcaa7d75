"""Rows of the results database, from what the rest of Leadline hands about."""

import dataclasses
import hashlib
import json
import math
from collections.abc import Iterable
from typing import TYPE_CHECKING, Any

from leadline.drive.finding import MEANINGS
from leadline.explain import estimate_text
from leadline.results.schema import CellRow, FindingRow, KernelEventRow, SliceRow, VerdictRow

if TYPE_CHECKING:
    from leadline.basis import Basis
    from leadline.claims import Claim
    from leadline.drive.bind import Drive
    from leadline.drive.finding import Finding
    from leadline.drive.kernel_events import KernelEvent
    from leadline.drive.said import Said
    from leadline.drive.smart import SmartSnapshot
    from leadline.inventory.plan import Cell
    from leadline.load.slices import Slice
    from leadline.verdict.verdict import Verdict


def cell_row(
    cell: "Cell",
    drive: "Drive",
    smart: "SmartSnapshot",
    sha256: str | None,
    said: "Said",
) -> CellRow:
    """A drive as it stood; `sha256` is the hash of its firmware's image, `said` what it says of
    itself."""
    return CellRow(
        cell=cell.id,
        rig=cell.rig,
        slot=cell.slot,
        model=cell.model,
        serial=drive.identity.serial,
        firmware=cell.firmware,  # two builds may show one revision, which is in the details
        controller=cell.controller,
        details={
            **drive_facts(drive, smart),
            "controller": dataclasses.asdict(drive.controller),
            "image_sha256": sha256,
            "identify": said.identify.hex() or None,
            "logs": [dataclasses.asdict(log) for log in said.logs],
            "pages": {name: data.hex() for name, data in said.pages.items()},
        },
    )


def drive_facts(drive: "Drive", smart: "SmartSnapshot") -> dict[str, object]:
    """What a power cycle may change of a drive: plain values, for JSON."""
    return {
        "identity": dataclasses.asdict(drive.identity),
        "queue_depth": drive.queue_depth,
        "link": drive.link and dataclasses.asdict(drive.link),
        "smart": dataclasses.asdict(smart),
    }


def verdict_facts(verdict: "Verdict", explanation: str) -> dict[str, object]:
    """What a test's report carries of a verdict: plain values, for JUnit and the summary."""
    return {
        "verdict": verdict.outcome.value,
        "reason": verdict.reason,
        "cause": verdict.cause,
        "estimate": estimate_text(verdict),
        "ratio": verdict.estimate,
        "low": finite(verdict.low),
        "high": finite(verdict.high),
        "threshold": verdict.threshold,
        "count": verdict.count,
        "unit": verdict.unit,
        "drive_seconds": round(verdict.drive_seconds, 3),
        "explanation": explanation,
    }


def verdict_row(
    cell: str,
    name: str,
    claim: "Claim",
    verdict: "Verdict",
    explanation: str,
    *,
    settling: str,
    basis: "Basis",
) -> VerdictRow:
    """A verdict, and what it rests on besides the slices kept under the name `settling`."""
    return VerdictRow(
        cell=cell,
        claim=name,
        statement=str(claim),
        outcome=verdict.outcome.value,
        reason=verdict.reason,
        estimate=verdict.estimate,
        low=finite(verdict.low),
        high=finite(verdict.high),
        threshold=float(verdict.threshold),
        drive_seconds=verdict.drive_seconds,
        settling=settling,
        basis=basis.model_dump(mode="json"),
        details={**finite(dataclasses.asdict(verdict)), "cell": cell, "explanation": explanation},
    )


def slice_row(
    cell: str, name: str, side: str, measured: "Slice", *, settling: str, place: int
) -> SliceRow:
    """A slice that ran as number `place` (from 0) of those kept under the name `settling`."""
    return SliceRow(
        cell=cell,
        claim=name,
        settling=settling,
        place=place,
        side=side,
        clean=measured.clean,
        taken=measured.began,
        device_depth=measured.setting.device_depth,
        offered_depth=measured.setting.offered_depth,
        rate=measured.rate,
        details=finite(dataclasses.asdict(measured)),
    )


def digest_of(slices: Iterable[SliceRow]) -> str:
    """SHA-256 over the slices of one claim, in the order given: of each what `details` holds
    (as JSON with sorted keys), its side and its place."""
    digest = hashlib.sha256()
    for row in slices:
        digest.update(json.dumps([row.place, row.side, row.details], sort_keys=True).encode())
    return digest.hexdigest()


def finding_row(cell: str, name: str, taken: float, finding: "Finding") -> FindingRow:
    return FindingRow(
        cell=cell,
        claim=name,
        taken=taken,
        name=finding.name,
        outcome=finding.outcome,
        meaning=MEANINGS[finding.name],
        found=finding.found,
    )


def event_row(cell: str, node: str, event: "KernelEvent", *, excused: bool) -> KernelEventRow:
    time = event.time if isinstance(event.time, float) else None
    return KernelEventRow(
        cell=cell,
        node=node,
        kind=event.kind,
        device=event.device or "",
        time=time,
        blame=event.blame,
        excused=excused,
        text=event.text,
    )


def finite(value: Any) -> Any:
    """The value with None for what JSON has no number for: an interval may be infinite."""
    if isinstance(value, float) and not math.isfinite(value):
        return None
    if isinstance(value, dict):
        return {key: finite(each) for key, each in value.items()}
    if isinstance(value, list | tuple):
        return [finite(each) for each in value]
    return value
