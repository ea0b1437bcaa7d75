"""Names of a matrix that nothing here goes by, and that may be right all the same.

One matrix serves many benches.  A known issue may be of a controller that only the rig file of
another bench names, and an erratum's list of drives that must not queue has models that nobody
tests; so they are no errors of the file, as a model or a firmware that it does not have is.
"""

from collections.abc import Iterator, Sequence

from leadline.inventory.document import shown, some
from leadline.inventory.globs import fits, meant
from leadline.inventory.issues import placed
from leadline.inventory.matrix import Matrix, UnqueuedPair
from leadline.inventory.plan import controller_name
from leadline.inventory.rig import Rig


def unbound(matrix: Matrix, rigs: Sequence[Rig]) -> Iterator[str]:
    """A message for each: what was found, what there is, and what follows."""
    yield from _issues_elsewhere(matrix, rigs)
    for n, kind in enumerate(matrix.controllers):
        for k, pair in enumerate(kind.must_not_queue):
            yield from _of_nobody(matrix, ("controllers", n, "must_not_queue", k), pair)


def _issues_elsewhere(matrix: Matrix, rigs: Sequence[Rig]) -> Iterator[str]:
    """Known issues of a controller that neither the matrix nor one of the rigs has."""
    specs = (spec for rig in rigs for spec in rig.controllers)
    names = [each.name for each in matrix.controllers]
    names += [controller_name(spec, matrix) for spec in specs]
    for location, issue in placed(matrix):
        if not any(fits(issue.controller, name) for name in names):
            yield (
                f"{matrix.field(*location, 'controller')}: found {shown(issue.controller)}, "
                f"expected a controller of this matrix or of these rigs, or a glob that fits one: "
                f"{some(names)}; here it excuses nothing: correct it, or plan with the rig whose "
                "own name for a controller it is"
            )


def _of_nobody(matrix: Matrix, at: tuple[str | int, ...], pair: UnqueuedPair) -> Iterator[str]:
    """A pair whose model, or whose firmware, the matrix does not have."""
    models = [entry.model for entry in matrix.models]
    entries = [matrix.models[n] for n in meant(pair.model, models)]
    shows = [firmware.shows for entry in entries for firmware in entry.firmware]
    if not entries:
        key, found = "model", pair.model
        expected = f"a model of this matrix, or a glob that fits one: {some(models)}"
    elif not any(fits(pair.firmware, each) for each in shows):
        key, found = "firmware", pair.firmware
        expected = f"what {shown(pair.model)} shows, or a glob that fits it: {some(shows)}"
    else:
        return
    yield (
        f"{matrix.field(*at, key)}: found {shown(found)}, expected {expected}; as it stands no "
        "drive is kept from queueing by it: correct it, unless it is of drives to come"
    )
