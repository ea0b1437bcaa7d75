"""Which tests xdist hands out as one piece."""

import pytest

from leadline.distribution import SharedPathScheduling

PATHS = {
    "lab-s1-M-1.0": "lab/s1",
    "lab-s1-M-1.1": "lab/s1",
    "lab-s2-M-1.0": "lab/s2",
    "east-lab-s1-M-1.0": "east-lab/s1",
}


@pytest.mark.parametrize(
    ("node", "scope"),
    [
        ("a.py::test_a[lab-s1-M-1.0]", "lab/s1"),
        ("b.py::test_b[red-lab-s1-M-1.1-blue]", "lab/s1"),
        ("a.py::test_a[lab-s2-M-1.0]", "lab/s2"),
        ("a.py::test_a[east-lab-s1-M-1.0]", "east-lab/s1"),
        ("a.py::test_of_no_drive", "a.py"),
        ("a.py::test_of_no_drive[red]", "a.py"),
        ("lab-s1-M-1.0/a.py::test_of_no_drive", "lab-s1-M-1.0/a.py"),
    ],
)
def test_tests_of_one_shared_path_are_one_piece(
    node: str, scope: str, pytestconfig: pytest.Config, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(pytestconfig.option, "tx", ["popen"])
    assert SharedPathScheduling(pytestconfig, None, PATHS)._split_scope(node) == scope
