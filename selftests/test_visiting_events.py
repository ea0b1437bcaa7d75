"""A test fails by what the kernel says of the drive meanwhile, and by a claim that it forgets."""

from dataclasses import replace
from pathlib import Path
from types import SimpleNamespace
from typing import cast

import pytest

from leadline.drive.bind import Controller, Link
from leadline.errors import DriveFault, Inconclusive, NeverAsserted, RigTrouble
from leadline.host.connection import HostLost
from leadline.load.workload import random_read
from leadline.station import Station, set_up
from leadline.visiting import OpenVisit
from selftests.visit_world import Bench, Watch, bench, kept, opened, station, watch_of

__all__ = ["bench", "opened", "station"]  # fixtures

DISABLED = "ata1.00: NCQ disabled due to excessive errors"
GONE = "ata1.00: disable device"
OTHERS = "ata2.00: NCQ disabled due to excessive errors"
WARNS = "WARNING: CPU: 1 PID: 9 at block/blk-mq.c:100 blk_mq_start_request+0x1/0x2"
HARMLESS = "ata1: SATA link up 6.0 Gbps (SStatus 133 SControl 300)"


@pytest.fixture
def watch(opened: OpenVisit) -> Watch:
    return watch_of(opened.station)


@pytest.fixture
def item(request: pytest.FixtureRequest) -> pytest.Item:
    """A test with a name and a stash: this one."""
    node = request.node
    assert isinstance(node, pytest.Item)
    return node


def events(bench: Bench) -> list[tuple[str, bool]]:
    """Kind, and whether it was excused, of every event on record."""
    return [(row["kind"], bool(row["excused"])) for row in kept(bench.folder, "kernel_events")]


def test_an_event_of_the_drive_fails_a_test_that_would_pass(
    bench: Bench, opened: OpenVisit, watch: Watch, item: pytest.Item
) -> None:
    with pytest.raises(DriveFault) as failure, opened.test(item):
        watch.says(DISABLED)
    text = str(failure.value)
    assert text.startswith("the kernel logged 1 event(s) for /dev/sda in this test or its setup:")
    assert "ncq-disabled" in text
    assert "NCQ disabled due to excessive errors" in text
    (row,) = kept(bench.folder, "kernel_events")
    assert (row["cell"], row["node"]) == ("bench-a-MODEL-1.0", item.nodeid)
    assert (row["kind"], row["device"], row["excused"]) == ("ncq-disabled", "ata1.00", 0)


@pytest.mark.parametrize(
    "error",
    [
        Inconclusive("too little"),
        RigTrouble("fio could not be run"),
        ValueError("a defect of the test"),
        pytest.skip.Exception("not for this drive"),
        pytest.fail.Exception("as the test sees it"),
    ],
    ids=lambda error: type(error).__name__,
)
def test_an_event_of_the_drive_comes_before_whatever_else_ended_the_test(
    bench: Bench, opened: OpenVisit, watch: Watch, item: pytest.Item, error: BaseException
) -> None:
    with pytest.raises(DriveFault, match="ncq-disabled") as failure, opened.test(item):
        watch.says(DISABLED)
        raise error
    assert failure.value.__cause__ is error
    assert failure.value.__notes__ == [f"and so the test ended: {error}"]
    assert len(events(bench)) == 1


def test_what_the_kernel_blames_on_itself_is_the_rigs_trouble(
    bench: Bench, opened: OpenVisit, watch: Watch, item: pytest.Item
) -> None:
    with (
        pytest.raises(RigTrouble, match=r"(?s)blame: host.*No drive is to blame") as trouble,
        opened.test(item),
    ):
        watch.says(WARNS)
        raise Inconclusive("too little")
    assert trouble.value.__notes__ == ["and so the test ended: too little"]
    with pytest.raises(RigTrouble, match="kernel-warning"), opened.test(item):
        watch.says(WARNS)
    with pytest.raises(DriveFault, match="2 event"), opened.test(item):
        watch.says(WARNS)
        watch.says(DISABLED)
    assert [kind for kind, _ in events(bench)] == ["kernel-warning"] * 3 + ["ncq-disabled"]


@pytest.mark.parametrize("error", [DriveFault("it is another drive"), HostLost("gone")])
def test_and_takes_nothing_from_a_fault_that_was_found_without_it(
    opened: OpenVisit, watch: Watch, item: pytest.Item, error: Exception
) -> None:
    with pytest.raises(type(error), match=str(error)) as failure, opened.test(item):
        watch.says(WARNS)
        raise error
    assert "kernel-warning" in failure.value.__notes__[0]


def test_what_another_controller_does_is_not_this_drives_fault(
    bench: Bench, opened: OpenVisit, watch: Watch, item: pytest.Item
) -> None:
    on = Controller("0000:00:1f.2", "8086:2922", "ahci", "host0")
    opened.kernel_faults.drives[:] = [replace(opened.drive, controller=on)]
    with opened.test(item):
        watch.says("mpt3sas_cm0: fault_state(0x2622)!")
        watch.says("ahci 0000:00:17.0: AHCI controller unavailable!")
    assert events(bench) == []
    with pytest.raises(DriveFault, match="controller-fault"), opened.test(item):
        watch.says("ahci 0000:00:1f.2: AHCI controller unavailable!")


@pytest.mark.parametrize("meanwhile", [HARMLESS, OTHERS])
def test_records_that_were_lost_are_no_silence_whatever_else_was_said(
    opened: OpenVisit, watch: Watch, item: pytest.Item, meanwhile: str
) -> None:
    """What went wrong with another drive says nothing of this one."""
    watch.says(HARMLESS)
    with pytest.raises(RigTrouble, match="nobody knows what it said"), opened.test(item):
        watch.loses(100)
        watch.says(meanwhile)


def test_ctrl_c_waits_for_no_kernel_log(
    opened: OpenVisit, item: pytest.Item, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(Watch, "since", lambda *_: pytest.fail("asked"))
    with pytest.raises(KeyboardInterrupt), opened.test(item):
        raise KeyboardInterrupt


def test_without_an_event_a_test_ends_as_it_ended(
    bench: Bench, opened: OpenVisit, watch: Watch, item: pytest.Item
) -> None:
    with opened.test(item):
        bench.told.show("under way")
        watch.says(HARMLESS)
        watch.says(OTHERS)
    assert bench.told.line == ""
    with pytest.raises(RigTrouble, match="its own"), opened.test(item):
        raise RigTrouble("its own")
    assert events(bench) == []


def test_an_event_in_a_setup_fails_the_test_that_it_was_for_and_no_other(
    bench: Bench, opened: OpenVisit, watch: Watch, item: pytest.Item
) -> None:
    """As a power cycle is, which a fixture carries out; what was expected in it is excused."""
    with opened.test(item):
        pass
    with opened.kernel_faults.expected("device-disabled"):
        watch.says(GONE)
    watch.says(DISABLED)
    words = "in this test or its setup: ncq-disabled"
    with pytest.raises(DriveFault, match=words), opened.test(item):
        pass
    assert events(bench) == [("device-disabled", True), ("ncq-disabled", False)]
    with opened.test(item):
        pass
    assert len(events(bench)) == 2


def test_an_event_before_the_visit_was_another_ones(
    bench: Bench, station: Station, item: pytest.Item
) -> None:
    watch_of(station).says(DISABLED)
    with OpenVisit(station, station.run.visits[0]) as visit, visit.test(item):
        pass
    assert events(bench) == []


def test_an_event_of_a_setup_that_failed_stands_with_its_error(
    bench: Bench, opened: OpenVisit, watch: Watch, request: pytest.FixtureRequest
) -> None:
    made = pytest.Function.from_parent(request.node.parent, name="test_made", callobj=lambda: None)
    made.funcargs["visit"] = opened
    with pytest.raises(RigTrouble) as failure, set_up(made):
        watch.says(DISABLED)
        raise RigTrouble("the outlet is not verified")
    assert "ncq-disabled" in failure.value.__notes__[0]
    with opened.test(made):
        pass
    assert len(events(bench)) == 1


def test_an_event_under_the_name_that_the_drive_had_before_is_its_own_too(
    bench: Bench, opened: OpenVisit, watch: Watch, item: pytest.Item
) -> None:
    link = Link("ata5", "ata5.00", "6.0 Gbps", 0, "")
    opened.rebound(replace(bench.drive, link=link))
    for name in ("ata1.00", "ata5.00"):
        with pytest.raises(DriveFault), opened.test(item):
            watch.says(DISABLED.replace("ata1.00", name))


def test_only_expected_kinds_are_excused_and_only_while_they_are_expected(
    bench: Bench, opened: OpenVisit, watch: Watch, item: pytest.Item
) -> None:
    with opened.test(item), opened.kernel_faults.expected("link-down", "device-disabled"):
        watch.says(GONE)
    assert events(bench) == [("device-disabled", True)]
    with pytest.raises(DriveFault) as failure, opened.test(item):
        watch.says(GONE)
        with opened.kernel_faults.expected("device-disabled"):
            watch.says(GONE)
            watch.says(DISABLED)
            watch.says(GONE)
        watch.says(GONE)
    assert str(failure.value).startswith("the kernel logged 3 event(s)")
    assert events(bench)[1:] == [
        ("device-disabled", False),
        ("device-disabled", True),
        ("ncq-disabled", False),
        ("device-disabled", True),
        ("device-disabled", False),
    ]


def test_what_was_expected_is_excused_though_the_test_fails(
    opened: OpenVisit, watch: Watch, item: pytest.Item
) -> None:
    with (
        pytest.raises(Inconclusive, match="too little"),
        opened.test(item),
        opened.kernel_faults.expected("device-disabled"),
    ):
        watch.says(GONE)
        raise Inconclusive("too little")


def test_a_claim_that_is_never_asserted_fails_its_test_and_no_other(
    opened: OpenVisit, item: pytest.Item
) -> None:
    words = r"depth=8\) >= 3 \* random_read.*write `assert`"
    with pytest.raises(NeverAsserted, match=words), opened.test(item):
        forgetful = opened.load(random_read(), item)
        _ = forgetful.at(depth=8) >= 3 * forgetful.at(depth=1)
    with opened.test(item):
        again = opened.load(random_read(), item)
        assert again.at(depth=8) >= 3 * again.at(depth=1)


def test_a_claim_of_a_fixtures_load_is_not_forgotten_either(
    opened: OpenVisit, item: pytest.Item
) -> None:
    """A fixture makes its load before the test is called."""
    reads = opened.load(random_read(), item)
    with pytest.raises(NeverAsserted, match=r"depth=8\) >= 3 \* random_read"), opened.test(item):
        _ = reads.at(depth=8) >= 3 * reads.at(depth=1)
    with opened.test(item):
        pass


def test_a_claim_of_a_test_whose_setup_failed_is_not_the_next_ones(
    opened: OpenVisit, item: pytest.Item
) -> None:
    never_called = SimpleNamespace(
        nodeid="test_x.py::test_x",
        path=Path("test_x.py"),
        config=item.config,
        name="test_x",
        stash=pytest.Stash(),
        get_closest_marker=lambda name: None,
    )
    reads = opened.load(random_read(), cast(pytest.Item, never_called))
    _ = reads.at(depth=8) >= 3 * reads.at(depth=1)
    with opened.test(item):
        pass
