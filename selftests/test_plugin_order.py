"""The order of tests: by visit, files as they are, power last."""

import pytest

from selftests.vendor import MATRIX, RIG, run, vendor

__all__ = ["vendor"]  # a fixture


def collected(vendor: pytest.Pytester, *arguments: str) -> list[tuple[str, str]]:
    """Test and what stands in its brackets, in order."""
    lines = run(vendor, "--collect-only", "-q", *arguments).outlines
    items = [line.partition("::")[2] for line in lines if "::" in line]
    return [(name, rest.rstrip("]")) for name, _, rest in (i.partition("[") for i in items)]


def test_items_are_sorted_by_visit_and_by_the_files_order_within(vendor: pytest.Pytester) -> None:
    vendor.makepyfile("def test_b(visit): pass\ndef test_a(visit): pass")
    lines = run(vendor, "--collect-only", "-q").outlines[:6]
    cells = [line.partition("[")[2].rstrip("]") for line in lines]
    names = [line.partition("::")[2].partition("[")[0] for line in lines]
    assert cells[0] == cells[1] != cells[2] == cells[3] != cells[4] == cells[5]
    assert names == ["test_b", "test_a"] * 3


def test_tests_of_no_drive_come_first(vendor: pytest.Pytester) -> None:
    vendor.makepyfile("def test_b(visit): pass\ndef test_a(): pass")
    assert [name for name, _ in collected(vendor)] == ["test_a", *["test_b"] * 3]


def test_power_is_cut_last_in_each_visit(vendor: pytest.Pytester) -> None:
    vendor.makepyfile("def test_b(visit, power_cycle): pass\ndef test_a(visit): pass")
    assert [name for name, _ in collected(vendor)] == ["test_a", "test_b"] * 3


def test_verified_writes_cut_power_too(vendor: pytest.Pytester) -> None:
    vendor.makepyfile("def test_b(visit, verified_writes): pass\ndef test_a(visit): pass")
    assert [name for name, _ in collected(vendor, "--allow-writes")] == ["test_a", "test_b"] * 3
    assert [name for name, _ in collected(vendor)] == ["test_a"] * 3, "and they write"


def test_the_plans_order_holds_whatever_else_is_parametrized(vendor: pytest.Pytester) -> None:
    """pytest groups tests by the first session-wide parameter: drives would alternate."""
    vendor.makepyfile(
        "import pytest\n"
        "@pytest.fixture(scope='session', params=['red', 'blue'])\n"
        "def colour(request): return request.param\n"
        "def test_b(colour, visit): pass\ndef test_a(colour, visit): pass\n"
    )
    cells = [
        next(word for word in ("1.1", "VSCSI", "1.0") if word in rest)
        for _, rest in collected(vendor)
    ]
    assert cells == [*["1.0"] * 4, *["1.1"] * 4, *["VSCSI"] * 4]


def test_tests_that_write_are_collected_where_both_keys_allow_it(vendor: pytest.Pytester) -> None:
    vendor.makepyfile(
        "import pytest\n"
        "def test_a(visit): pass\n"
        "def test_b(visit, random_write): pass\n"
        "@pytest.mark.writes\n"
        "def test_c(visit): pass\n"
    )
    assert {name for name, _ in collected(vendor)} == {"test_a"}
    assert {name for name, _ in collected(vendor, "--allow-writes")} == {
        "test_a",
        "test_b",
        "test_c",
    }


def test_a_drive_that_may_not_be_written_to_is_asked_to_read_alone(vendor: pytest.Pytester) -> None:
    vendor.makepyfile("def test_a(visit): pass\ndef test_b(visit, random_write): pass\n")
    rig = vendor.path / "rig.yaml"
    text = RIG.read_text().replace("profile: profiles/", f"profile: {RIG.parent}/profiles/")
    rig.write_text(text.replace("writes: allowed", "writes: forbidden", 1))
    files = (f"--rig={rig}", f"--matrix={MATRIX}", "--allow-writes", "--collect-only", "-q")
    lines = vendor.runpytest_subprocess(*files, "-p", "no:cacheprovider").outlines
    writers = [line for line in lines if "test_b" in line]
    assert len(writers) == 1, lines
    assert "VSCSI" in writers[0]
