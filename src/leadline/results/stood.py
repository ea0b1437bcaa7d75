"""How the drive of a recorded session stood: what there is of it on record besides its rates."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from sqlalchemy import select

from leadline.on_record import Recorded
from leadline.results.schema import CellRow, Environment

if TYPE_CHECKING:
    from leadline.results.record import Record

BROKEN = ": BROKEN: "
"""In the line of a rung that is broken: `drive.ladder.Rung`."""


@dataclass(frozen=True)
class Stood:
    """A drive in one session; `who` says in words which, and when.

    `queue_depth` is the device queue depth when it was bound, `link` its speed, `broken` the
    first broken rung of its NCQ ladder, "" where none was; None and "" of the others where
    nobody knows.
    """

    who: str
    queue_depth: int | None = None
    controller: str = ""
    link: str = ""
    broken: str | None = None

    def __str__(self) -> str:
        said = [f"device queue depth {self.queue_depth}"] if self.queue_depth else []
        said += [f"controller {self.controller}"] if self.controller else []
        said += [f"link at {self.link}"] if self.link else []
        rung = self.broken or "no rung of its ladder is broken"
        said.append("its ladder is not on record" if self.broken is None else rung)
        return f"{self.who}: {', '.join(said)}"


def stood(record: "Record", recorded: Recorded) -> Stood | None:
    """How the drive of that session stood; None where it has nothing else on record."""
    of_session = CellRow.run == recorded.run, CellRow.cell == recorded.cell
    climbed = f"NCQ ladder of {recorded.cell}"
    with record.reading() as session:
        cells = select(CellRow).where(*of_session).order_by(CellRow.id.desc()).limit(1)
        row = session.scalars(cells).first()
        ladders = select(Environment.value).where(
            Environment.run == recorded.run, Environment.name == climbed
        )
        ladder = session.scalars(ladders.order_by(Environment.id.desc()).limit(1)).first()
    if row is None:
        return None
    link = row.details.get("link") or {}
    return Stood(
        who=f"{row.serial} in run {row.run}",
        queue_depth=row.details.get("queue_depth"),
        controller=controller_text(row.details.get("controller") or {}),
        link=str(link.get("speed", "")),
        broken=None if ladder is None else broken_rung(ladder),
    )


def controller_text(controller: Mapping[str, Any]) -> str:
    """A controller's kind, as fields of `drive.place.Controller`: not where it is plugged in."""
    driver, pci_id = controller.get("driver", ""), controller.get("pci_id", "")
    return f"{driver or 'no driver known'} ({pci_id})" if pci_id else str(driver)


def broken_rung(ladder: str) -> str:
    """The first broken rung in a ladder's words; "" where none is."""
    return next((line for line in ladder.splitlines() if BROKEN in line), "")
