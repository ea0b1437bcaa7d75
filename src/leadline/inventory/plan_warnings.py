"""What a plan warns of: entries of the matrix that are valid, and do nothing here and today."""

from collections.abc import Iterator, Sequence
from datetime import date

from leadline.inventory.claim_names import unknown_claims
from leadline.inventory.coverage import Coverage
from leadline.inventory.issues import expired_excuses
from leadline.inventory.matrix import Matrix
from leadline.inventory.rig import Rig
from leadline.inventory.unbound import unbound


def plan_warnings(rigs: Sequence[Rig], matrix: Matrix, today: date) -> Iterator[str]:
    """Excuses that have expired, and names that nothing goes by: what a run says before it begins.

    Not the controllers that no rig has: a matrix serves more benches than a run has rigs.
    """
    yield from expired_excuses(matrix, today)
    yield from unknown_claims(matrix)
    yield from unbound(matrix, rigs)


def absent(matrix: Matrix, covered: Coverage) -> Iterator[str]:
    """Controllers that no rig has, where models are to be tested on them."""
    place = {each.name: n for n, each in enumerate(matrix.controllers)}
    waiting: dict[str, int] = {}
    for each in covered.unserved:
        if each.controller in covered.absent:
            waiting[each.controller] = waiting.get(each.controller, 0) + len(each.firmware)
    for name, cells in waiting.items():
        kind = matrix.controllers[place[name]]
        yield (
            f"{matrix.field('controllers', place[name])}: found no rig that has it ({kind.pci_id}, "
            f"{kind.driver}), and {cells} cell(s) wait for it; add a rig file that does, or name "
            "for each model the controllers that it is to be tested on"
        )
