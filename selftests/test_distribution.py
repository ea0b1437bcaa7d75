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


def test_a_test_that_takes_its_worker_with_it_is_not_handed_out_again(
    pytestconfig: pytest.Config, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(pytestconfig.option, "tx", ["popen"])
    scheduling = SharedPathScheduling(pytestconfig, None, PATHS)
    worker = object()
    scheduling.assigned_work[worker] = {
        "lab/s1": {"a": True, "b": True},
        "lab/s2": {"c": True, "d": False, "e": False},
    }
    assert scheduling.remove_node(worker) == "d"
    assert dict(scheduling.workqueue) == {"lab/s2": {"c": True, "d": True, "e": False}}
    scheduling.assigned_work[worker] = {"lab/s1": {"a": True, "b": True}}
    assert scheduling.remove_node(worker) is None, "it had run all of its tests"
