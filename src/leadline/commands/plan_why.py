"""``leadline plan --why CELL``: where each limit of a cell comes from, and which one holds."""

from collections.abc import Iterator, Mapping
from dataclasses import asdict
from difflib import get_close_matches
from typing import TYPE_CHECKING, Any

from leadline.commands.plan import Planned, issues_of
from leadline.commands.plan_said import bounds, issue_line
from leadline.errors import Misuse

if TYPE_CHECKING:
    from leadline.inventory.document import Location
    from leadline.inventory.inheritance import Given
    from leadline.inventory.matrix import Matrix
    from leadline.inventory.plan import Cell


def why(planned: Planned, wanted: str, *, as_json: bool) -> int:
    """Print it; 0.  Raises Misuse for a cell that the plan does not have."""
    from pydantic_core import to_json

    from leadline.inventory.inheritance import chains
    from leadline.inventory.must import must_of

    cell = _cell(planned, wanted)
    found = chains(planned.matrix, cell.model, cell.firmware, cell.controller)
    if as_json:
        report = {
            "cell": cell.id,
            "model": cell.model,
            "firmware": cell.firmware,
            "controller": cell.controller,
            "claims": {claim: _claim(chain, planned) for claim, chain in found.items()},
            "pair": asdict(must_of(planned.matrix, cell)),
            "known_issues": issues_of(cell, planned),
        }
        print(to_json(report, indent=2).decode())
    else:
        print("\n".join(_lines(cell, found, planned)))
    return 0


def _cell(planned: Planned, wanted: str) -> "Cell":
    listed = [*(gap.cell for gap in planned.gaps), *(visit.cell for visit in planned.visits)]
    cells = {cell.id: cell for cell in listed}
    if wanted in cells:
        return cells[wanted]
    near = get_close_matches(wanted, cells, 1)
    expected = f"{near[0]}?" if near else "one that this lists: leadline plan"
    raise Misuse(f"--why: found no cell {wanted!r}, expected {expected}")


def _claim(chain: "tuple[Given, ...]", planned: Planned) -> list[dict[str, Any]]:
    return [
        {
            "of": given.of,
            "where": planned.matrix.where(*given.location),
            **given.limit.model_dump(),
            "holds": given is chain[-1],
        }
        for given in chain
    ]


def _lines(
    cell: "Cell", found: "Mapping[str, tuple[Given, ...]]", planned: Planned
) -> Iterator[str]:
    matrix = planned.matrix
    firmware = matrix.firmware(cell.model, cell.firmware)
    yield f"{cell.id}: {cell.model}, firmware {firmware.revision}, controller {cell.controller}"
    for claim, chain in found.items():
        yield from ("", claim)
        for given in chain:
            verb = "holds: " if given is chain[-1] else "before:"
            place = matrix.where(*given.location)
            yield f"  {verb} {bounds(given.limit)}, of {given.of} ({place})"
            yield f"           source: {given.limit.source}"
            for n, other in enumerate(given.limit.kernels):
                place = matrix.where(*given.location, "kernels", n)
                yield f"           source on kernel {other.kernel} ({place}): {other.source}"
    if pair := list(_pair_lines(cell, matrix)):
        yield from ("", *pair)
    issues = matrix.issues_of(cell.model, cell.firmware, cell.controller)
    if issues:
        yield ""
    for issue in issues:
        yield f"{issue_line(issue, planned)} at {issue.where}"


def _pair_lines(cell: "Cell", matrix: "Matrix") -> Iterator[str]:
    """What the drive and its controller must do, each with its line."""
    from leadline.inventory.must import must_of

    must = must_of(matrix, cell)
    if must.ncq == "none":
        yield f"must not queue on {cell.controller}: {must.source}"
    model, kind = matrix.model(cell.model), matrix.controller(cell.controller)
    ends: list[tuple[str, Location, object]] = [
        (f"model {model.model}", ("models", matrix.place[model.model]), model)
    ]
    if kind is not None:
        place = ("controllers", matrix.controllers.index(kind))
        ends.append((f"controller {kind.name}", place, kind))
    for of, at, entry in ends:
        for key in ("max_queue_depth", "link_gbps", "quirks"):
            value = getattr(entry, key, None)
            if value is not None:
                words = (", ".join(value) or "none") if key == "quirks" else f"{value:g}"
                yield f"{key} {words}, of {of} ({matrix.where(*at, key)})"
