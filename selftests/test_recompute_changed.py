"""What was changed in the results since a verdict was reached is found when it is recomputed."""

import json
import math
import tempfile
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from leadline import judge as judge_module
from leadline.load.slices import FIO_CPU, LITTLES_LAW
from leadline.recompute import Difference, differences
from leadline.results.rows import digest_of
from leadline.results.schema import SliceRow
from leadline.results.stored import read_run
from selftests.kept_claims import (
    CLAIMS,
    CURVE,
    Kept,
    change,
    details,
    fields,
    kept,
    unlike,
)
from selftests.slice_drive import SliceDrive
from selftests.test_judge_curve import healthy

__all__ = ["kept"]  # a fixture


@given(data=st.data())
@settings(max_examples=25, deadline=None)
@pytest.mark.parametrize("kind", ["ratio", "dip"])
def test_any_slice_that_was_changed_or_deleted_is_found(kind: str, data: st.DataObject) -> None:
    """By one bit, and in a slice on which the outcome does not hang, too."""
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        rates = {depth: healthy(depth) for depth in CURVE}
        drive = SliceDrive(rates, spoil=LITTLES_LAW, spoilt_share=0.05)
        run = Kept(folder, drive, budget_s=6.0)
        run.settle(CLAIMS[kind](run.reads, 0.2))
        run.close()
        number = data.draw(st.integers(1, len(drive.settings)), "slice")
        what = data.draw(st.sampled_from(["rate", "column", "void", "side", "place", "gone"]))
        meddle(folder, number, what)
        assert unlike(folder) != []


def meddle(folder: Path, number: int, what: str) -> None:
    """Change one thing about the slice of that id."""
    kept_ = details(folder, "slices", number)
    update = "update slices set {} where id = ?"
    match what:
        case "rate":
            kept_["rate"] = math.nextafter(kept_["rate"], 0.0)
            change(folder, update.format("details = ?"), json.dumps(kept_), number)
        case "column":
            rate = math.nextafter(kept_["rate"], 0.0)
            change(folder, update.format("rate = ?"), rate, number)
        case "void":
            kept_["voids"] = [] if kept_["voids"] else [FIO_CPU]
            change(folder, update.format("details = ?"), json.dumps(kept_), number)
        case "side":
            change(folder, update.format("side = 'elsewhere'"), number)
        case "place":
            change(folder, update.format("place = place + 1"), number)
        case "gone":
            change(folder, "delete from slices where id = ?", number)


def test_a_changed_rate_is_told_by_what_follows_from_it(kept: Path) -> None:
    changed = details(kept, "slices", 1)
    changed["rate"] *= 1.01
    change(kept, "update slices set details = ? where id = 1", json.dumps(changed))
    found = {each.field: each for each in unlike(kept)}
    assert {"slice 0 rate", "slices_sha256", "estimate", "interval.mean", "rates.0.low"} <= set(
        found
    )
    estimate = found["estimate"]
    assert isinstance(estimate.stored, float)
    assert isinstance(estimate.recomputed, float)
    assert estimate.stored < estimate.recomputed < 1.01 * estimate.stored


def test_a_slice_that_is_missing_is_named(kept: Path) -> None:
    change(kept, "delete from slices where place = 5")
    assert Difference("slices", "slice 5", "absent") in unlike(kept)


def test_a_slice_more_than_the_judge_needed_is_found(kept: Path) -> None:
    """Even where number and digest say that it belongs: the judge would have stopped before it."""
    run = read_run(kept, None)
    (row,), (slices,) = run.verdicts, run.slices.values()
    last = slices[-1]
    spare = SliceRow(
        **{name: getattr(last, name) for name in ("cell", "claim", "settling", "side", "clean")},
        **{name: getattr(last, name) for name in ("taken", "device_depth", "offered_depth")},
        rate=last.rate,
        details=last.details,
        place=last.place + 1,
    )
    more = [*slices, spare]
    row.basis = {**row.basis, "slices": len(more), "slices_sha256": digest_of(more)}
    (found,) = differences(row, more)
    assert (found.field, found.stored) == ("verdict", "PASS")
    assert (
        str(found.recomputed)
        == f"none: it settles after {len(slices)} slices, of {len(more)} stored"
    )


def test_a_side_that_the_judge_does_not_know_is_found(kept: Path) -> None:
    """Even where the digest says that it belongs."""
    run = read_run(kept, None)
    (row,), (slices,) = run.verdicts, run.slices.values()
    slices[0].side, slices[1].side = slices[1].side, slices[0].side
    row.basis = {**row.basis, "slices_sha256": digest_of(slices)}
    (found,) = differences(row, slices)
    assert found.recomputed == "none: slice 0 is of 'right', not 'left'"


@pytest.mark.parametrize("column", ["estimate", "low", "high", "drive_seconds"])
def test_the_last_bit_counts(kept: Path, column: str) -> None:
    (row,) = read_run(kept, None).verdicts
    change(kept, f"update verdicts set {column} = ?", math.nextafter(getattr(row, column), 0.0))
    assert fields(kept) == {column}


@pytest.mark.parametrize(
    ("column", "value", "field"),
    [
        ("outcome", "FAIL", "outcome"),
        ("reason", "budget", "reason"),
        ("statement", "another", "statement"),
        ("estimate", 7.0, "estimate"),
        ("low", None, "low"),
        ("high", 1e308, "high"),
        ("threshold", 3.0000000000000004, "threshold"),
        ("drive_seconds", 4.5, "drive_seconds"),
    ],
)
def test_a_changed_column_of_a_verdict_is_named(
    kept: Path, column: str, value: object, field: str
) -> None:
    change(kept, f"update verdicts set {column} = ?", value)
    assert fields(kept) == {field}


@pytest.mark.parametrize(
    "field", ["count", "p_against", "interval.spread", "signs.above", "rates.1.high", "voids"]
)
def test_a_changed_detail_of_a_verdict_is_named(kept: Path, field: str) -> None:
    changed = details(kept, "verdicts", 1)
    *parts, last = field.split(".")
    place = changed
    for part in parts:
        place = place[int(part) if part.isdigit() else part]
    place[last] = ["a void"] if last == "voids" else 17.25
    change(kept, "update verdicts set details = ?", json.dumps(changed))
    assert {name.partition(".0")[0] for name in fields(kept)} == {field}


@pytest.mark.parametrize(
    ("path", "value", "found"),
    [
        ("noise.sigma_d", 0.011, "interval.drift"),
        ("statement.quantities.1.factor", 3.5, "threshold"),
        ("statement.direction", "<=", "outcome"),
        ("statement.quantities.0.device_depth", 9, "verdict"),
        ("seed", "none", "basis"),
        ("statement.kind", "figure", "verdict"),
        ("statement.quantities.0.unit", "furlongs", "basis"),
        ("statement.workload.block_bytes", 0, "basis"),
        ("slices", 3, "slices"),
        ("slices_sha256", "", "slices_sha256"),
    ],
)
def test_a_changed_basis_is_found_by_what_follows_from_it(
    kept: Path, path: str, value: object, found: str
) -> None:
    basis = details(kept, "verdicts", 1, "basis")
    *parts, last = path.split(".")
    place = basis
    for part in parts:
        place = place[int(part) if part.isdigit() else part]
    assert place[last] != value
    place[last] = value
    change(kept, "update verdicts set basis = ?", json.dumps(basis))
    assert found in fields(kept)


def test_a_judge_that_looks_at_other_times_is_another(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    run = Kept(tmp_path, SliceDrive({8: 3300, 1: 1000}, noise=0.1))
    run.settle(run.reads.at(depth=8) >= 3 * run.reads.at(depth=1))
    run.close()
    monkeypatch.setattr(judge_module, "FEWEST_BLOCKS", 7)
    (found,) = unlike(tmp_path)
    assert (found.field, found.stored) == ("verdict", "PASS")


JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | st.text(max_size=5),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=5), inner),
    max_leaves=5,
)


@given(garbage=JSON, data=st.data())
@settings(max_examples=150, deadline=None)
def test_whatever_is_stored_is_compared_and_nothing_is_raised(
    a_curve: Path, garbage: Any, data: st.DataObject
) -> None:
    run = read_run(a_curve, None)
    (row,), (slices,) = run.verdicts, run.slices.values()
    where = data.draw(st.sampled_from(["basis", "details", "slice"]))
    whole = {"basis": row.basis, "details": row.details, "slice": slices[0].details}[where]
    place, key = data.draw(st.sampled_from(places(whole)))
    place[key] = garbage
    for each in differences(row, slices):
        json.dumps([each.stored, each.recomputed], allow_nan=False)


@pytest.fixture(scope="module")
def a_curve(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Results that are read many times."""
    folder = tmp_path_factory.mktemp("results")
    run = Kept(folder, SliceDrive({depth: healthy(depth) for depth in CURVE}))
    run.settle(run.reads.curve(CURVE).has_no_dip())
    run.close()
    return folder


def places(value: Any) -> list[tuple[Any, Any]]:
    """Every place in JSON: what holds it, and its key or index there."""
    found = []
    keys = value if isinstance(value, dict) else range(len(value))
    for key in keys:
        found.append((value, key))
        if isinstance(value[key], dict | list):
            found += places(value[key])
    return found
