"""Statements taken apart for the database, and put together again."""

import re
from pathlib import Path
from typing import Any, get_args

import pytest
from pydantic import ValidationError

from leadline.basis import (
    Basis,
    Kind,
    StoredArrival,
    StoredGain,
    StoredQuantity,
    StoredRegression,
    StoredStatement,
    StoredWithin,
    statement_of,
    stored,
)
from leadline.errors import Misuse
from leadline.load.workload import random_read
from leadline.quantities import Load
from leadline.statements import Gain, Within
from selftests.kept_claims import CLAIMS, details, kept
from selftests.test_claims import Ruling

__all__ = ["kept"]  # a fixture


@pytest.mark.parametrize("kind", CLAIMS)
def test_a_statement_is_put_together_again_around_another_judge(kind: str) -> None:
    first, second = Ruling(), Ruling()
    said = CLAIMS[kind](Load(random_read((4096, 8192)), first, full_depth=32), 0.5)
    first_stored = stored(said.statement)
    taken_apart = type(first_stored).model_validate_json(first_stored.model_dump_json())
    again = statement_of(taken_apart, second)
    assert not isinstance(again, Within | Gain)
    assert str(again) == str(said)
    assert again.load == Load(random_read((4096, 8192)), second, full_depth=32)
    assert stored(again) == taken_apart


@pytest.mark.parametrize(
    "changed",
    [{"direction": None}, {"limit": 3.0}, {"quantities": ()}, {"kind": "dip", "limit": 0.1}],
)
def test_parts_that_make_no_statement_are_refused(changed: dict[str, Any]) -> None:
    reads = Load(random_read(), Ruling(), full_depth=32)
    ratio = stored((reads.at(depth=8) >= 3 * reads.at(depth=1)).statement)
    assert isinstance(ratio, StoredStatement)
    with pytest.raises(Misuse, match="do not fit together"):
        statement_of(ratio.model_copy(update=changed), Ruling())


def test_a_basis_with_what_is_not_understood_is_refused(kept: Path) -> None:
    basis = details(kept, "verdicts", 1, "basis")
    assert Basis.model_validate(basis)
    said = {**basis["statement"], "kind": "within"}
    with pytest.raises(ValidationError, match="milestone"):
        Basis.model_validate({**basis, "statement": said})
    with pytest.raises(ValidationError, match="extra"):
        Basis.model_validate({**basis, "extra": 1})


def test_the_reference_has_every_kind_of_statement_and_every_field_of_a_basis() -> None:
    page = (Path(__file__).parents[1] / "docs" / "reference" / "results.md").read_text()
    others = (StoredArrival, StoredWithin, StoredGain, StoredRegression)
    names = [*get_args(Kind), *(each.model_fields["kind"].default for each in others)]
    names += [*Basis.model_fields, *StoredQuantity.model_fields]
    names += [name for each in others for name in each.model_fields if name != "kind"]
    said = set(re.findall(r"`(?:statement\.)?(\w+)`", page))
    assert [name for name in names if name not in said | {"statement"}] == []
    assert StoredStatement.model_fields.keys() <= said
