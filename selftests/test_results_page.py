"""docs/reference/results.md against what the results database holds."""

import dataclasses
import re
from pathlib import Path
from typing import get_args

import pytest

from leadline.basis import (
    Basis,
    Kind,
    StoredArrival,
    StoredGain,
    StoredQuantity,
    StoredRegression,
    StoredStatement,
    StoredWithin,
)
from leadline.commands import hil
from leadline.load.slices import Slice, SliceSetting
from leadline.outcomes import Ended
from leadline.results.record import Record
from leadline.results.schema import Base

PAGE = (Path(__file__).parent.parent / "docs" / "reference" / "results.md").read_text()
TABLES = {name: [name, *table.columns.keys()] for name, table in Base.metadata.tables.items()}
STORED = (
    Basis,
    StoredQuantity,
    StoredStatement,
    StoredArrival,
    StoredWithin,
    StoredGain,
    StoredRegression,
)


def missing(names: list[str]) -> list[str]:
    return [name for name in names if not re.search(rf"`(statement\.)?{name}`", PAGE)]


@pytest.mark.parametrize("table", TABLES)
def test_every_table_and_column_is_on_the_page(table: str) -> None:
    assert missing(TABLES[table]) == []


@pytest.mark.parametrize("stored", STORED)
def test_every_field_of_a_basis_is_on_the_page(stored: type[Basis]) -> None:
    assert missing([*stored.model_fields]) == []


@pytest.mark.parametrize("measured", [Slice, SliceSetting])
def test_every_field_of_a_slice_is_on_the_page(measured: type[Slice]) -> None:
    assert missing([each.name for each in dataclasses.fields(measured)]) == []


def test_every_field_of_a_run_and_every_outcome_are_on_the_page(tmp_path: Path) -> None:
    record = Record(tmp_path, "run-1")
    assert missing([*hil._summary(record, 0, 1.0, [])]) == []
    assert missing([ended.value for ended in Ended]) == []
    record.close()


def test_every_kind_of_statement_is_on_the_page() -> None:
    assert missing([*get_args(Kind), "arrival", "within", "gain", "regression"]) == []
