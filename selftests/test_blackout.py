"""An outlet is cut of which nobody knows what it feeds: what is seen, and that all comes back."""

import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

import pytest

from leadline.drive.bind import Seen
from leadline.errors import DriveFault, RigTrouble
from leadline.host.connection import Finished, Host, HostLost
from leadline.host.journal import Journal
from leadline.inventory.rig import HostSpec, PowerBudget
from leadline.power import blackout, dark
from leadline.power.blackout import Cut, black_out, observe
from leadline.power.cycle import Bench
from leadline.power.mapping import Observation, Place
from leadline.power.outlets import restore_outlets
from leadline.power.sight import Look
from leadline.power.wear import Wear, wear_of
from selftests.outlet_rig import Permit
from selftests.power_world import OFF_S, FakeEyes, Leave, Stage, drive, here, quick, stage
from selftests.test_outlets_end_on import interrupted

__all__ = ["here", "quick", "stage"]  # fixtures


@dataclass
class FakeHost:
    """The rig's host, fed by outlet 1; asks the world whether it has power."""

    stage: Stage
    name: str = "bench"
    keeps_power: bool = False  # only a switch on the way to it hangs on the outlet
    boots: int = 1
    connected: bool = True
    reconnected: list[float] = field(default_factory=list)

    def run(self, argv: Sequence[str], *, deadline: float, check: bool = True) -> Finished:
        self.stage.world.did.append(" ".join(argv))
        return Finished(tuple(argv), 0, b"", b"", 0.0)

    def alive(self) -> bool:
        self.stage.world.settle()
        if "host" not in self.stage.world.powered:
            self.connected = False
            self.boots += not self.keeps_power
        return self.connected

    def boot_id(self) -> str:
        return str(self.boots)

    def reconnect(self, deadline: float) -> None:
        self.stage.world.settle()
        assert "host" in self.stage.world.powered
        self.reconnected.append(deadline)
        self.connected = True
        self.stage.world.kernel |= self.stage.world.powered


@dataclass
class Scene:
    stage: Stage
    host: FakeHost
    eyes: list[FakeEyes]

    def cut(
        self, *outlets: int, expected: Sequence[str] = ("a",), off_s: float = OFF_S
    ) -> Observation:
        cut = Cut(tuple(self.stage.supplies(*outlets)), expected, off_s, 7.0)
        try:
            return observe(self.host, self.eyes, cut, Leave(), "run-1")
        finally:
            self.stage.world.settle()

    def counted(self) -> dict[str, Wear]:
        return {one.slot: wear_of(one.drive.spec) for one in self.eyes}

    def after_rescan(self, then: Callable[[], None]) -> None:
        for one in self.eyes:
            one.after_rescan = then

    def all_is_back(self) -> bool:
        world = self.stage.world
        return all(self.stage.has_power(n) for n in (1, 2, 3)) and world.kernel >= {"a", "b"}


@pytest.fixture
def scene(stage: Stage, monkeypatch: pytest.MonkeyPatch) -> Scene:
    monkeypatch.setattr(blackout, "LOOK_AGAIN_S", 0.05)
    return Scene(stage, FakeHost(stage), [FakeEyes(stage.world, slot) for slot in ("a", "b")])


def test_the_drive_that_goes_dark_is_seen_and_every_drive_was_told_before(scene: Scene) -> None:
    seen = scene.cut(2)
    assert seen.places == (Place("p", 2),)
    assert seen.dark == {"a"}
    assert (seen.strangers, seen.unseen) == ((), False)
    assert scene.stage.world.did == [
        "delete a",
        "delete b",
        "sync",
        "outlet 2 off",
        "rescan",
        "outlet 2 on",
        "rescan",
    ]
    assert scene.all_is_back()


def test_nobody_looks_before_every_supply_has_run_empty(scene: Scene) -> None:
    at: list[float] = []
    scene.stage.world.switched = lambda outlet, on: at.append(time.monotonic())
    scene.after_rescan(lambda: at.append(time.monotonic()))
    scene.cut(2, off_s=0.5)
    off, looked, *_ = at
    assert looked - off >= 0.5


def test_another_drive_is_seen_whatever_was_expected(scene: Scene) -> None:
    assert scene.cut(3, expected=["a"]).dark == {"b"}
    assert scene.all_is_back()


def test_two_drives_on_one_outlet_are_both_seen(scene: Scene) -> None:
    def both_go(outlet: int, on: bool) -> None:
        for kept in (scene.stage.world.powered, scene.stage.world.kernel):
            (kept.add if on else kept.discard)("b")

    scene.stage.world.switched = both_go
    assert scene.cut(2).dark == {"a", "b"}
    assert scene.all_is_back()


def test_an_outlet_that_feeds_nothing_is_looked_at_again_where_something_is_expected(
    scene: Scene, monkeypatch: pytest.MonkeyPatch
) -> None:
    assert scene.cut(4, expected=()).dark == frozenset()
    assert scene.stage.world.did.count("delete a") == 1
    monkeypatch.setattr(dark, "HOLD_UP_S", 1.0)
    assert scene.cut(4, expected=["a"]).dark == frozenset()
    assert scene.stage.world.did.count("delete a") > 3, "it may live on its capacitors"
    assert scene.stage.world.did.count("delete b") == 2, "nobody expects that of the other one"
    assert scene.all_is_back()


def test_a_drive_that_lives_on_for_a_while_is_dark_in_the_end(
    scene: Scene, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(dark, "HOLD_UP_S", 10.0)
    rescans = [0]

    def holds_up() -> None:
        rescans[0] += 1
        if rescans[0] < 3:
            scene.stage.world.kernel.add("a")

    scene.after_rescan(holds_up)
    assert scene.cut(2).dark == {"a"}
    assert rescans[0] >= 3


def test_outlets_are_off_together(scene: Scene) -> None:
    assert scene.cut(2, 3).dark == {"a", "b"}
    assert scene.all_is_back()


def test_disks_leave_standby_one_scsi_host_after_the_other(scene: Scene) -> None:
    gap_s = 0.3
    for one, path in zip(scene.eyes, ("host1", "host2"), strict=True):
        spec = one.drive.spec.model_copy(update={"spin_up_gap_s": gap_s})
        one.drive, one.scan_path = replace(one.drive, spec=spec), path
    at: list[float] = []
    scene.after_rescan(lambda: at.append(time.monotonic()))
    scene.cut(2)
    first, second, *_ = at
    assert second - first >= gap_s


@pytest.mark.parametrize("when", ["pinged", "asked"])
def test_a_host_that_loses_power_is_waited_for_and_its_drives_too(scene: Scene, when: str) -> None:
    if when == "asked":
        alive = scene.host.alive

        def gone() -> None:
            if not alive():
                raise HostLost("gone")

        scene.host.alive = lambda: True  # type: ignore[method-assign]
        scene.after_rescan(gone)
    seen = scene.cut(1)
    assert seen.dark == {"host"}
    assert seen.strangers == (), "nobody could see them"
    assert scene.host.reconnected == [7.0]
    assert scene.all_is_back()


def test_a_host_that_kept_its_power_was_not_seen_to_lose_it(scene: Scene) -> None:
    scene.host.keeps_power = True
    seen = scene.cut(1)
    assert (seen.dark, seen.unseen) == (frozenset(), True)
    assert scene.all_is_back()


def test_a_disk_that_the_rig_file_does_not_have_is_seen(scene: Scene) -> None:
    stray = {"SERIAL-x": "DATA x"}
    for eyes in scene.eyes:
        eyes.known = {**eyes.known, **stray}
        eyes.look = _with_stray(eyes, stray)  # type: ignore[method-assign]
    assert scene.cut(3, expected=()).strangers == ()
    scene.stage.world.switched = lambda outlet, on: stray.clear() if not on else None
    seen = scene.cut(2)
    assert seen.dark == {"a"}
    assert seen.strangers == ("DATA x",)


def _with_stray(eyes: FakeEyes, stray: dict[str, str]) -> Callable[[], Look]:
    look = eyes.look

    def also() -> Look:
        found = look()
        return Look(found.drive, {**found.others, **stray})

    return also


def test_a_drive_that_comes_back_as_another_is_a_fault(scene: Scene) -> None:
    other = replace(scene.eyes[1].drive.identity, serial="SERIAL-z")
    scene.eyes[1].identity = lambda _: other  # type: ignore[assignment, method-assign]
    with pytest.raises(DriveFault, match=r"slot b: .* as another drive: serial was 'SERIAL-b'"):
        scene.cut(3)


def test_a_drive_that_does_not_come_back_is_named(scene: Scene) -> None:
    scene.stage.world.dead_after.add("b")
    with pytest.raises(RigTrouble, match=r"slot b: .*not back"):
        scene.cut(3)
    assert scene.stage.has_power(3)


# What it costs.


@pytest.mark.parametrize(
    ("outlet", "expected", "counted"),
    [
        (2, ["a"], {"a": 1, "b": 0}),
        (3, [], {"a": 0, "b": 1}),
        (3, ["b", "a"], {"a": 1, "b": 1}),
        (4, [], {"a": 0, "b": 0}),
        (1, ["host"], {"a": 1, "b": 1}),
        (1, [], {"a": 1, "b": 1}),
        (1, ["a"], {"a": 1, "b": 1}),
    ],
)
def test_a_cut_is_counted_once_for_each_drive_that_goes_dark_or_was_to(
    scene: Scene, outlet: int, expected: list[str], counted: dict[str, int]
) -> None:
    scene.cut(outlet, expected=expected)
    assert scene.counted() == {slot: Wear(number, 0) for slot, number in counted.items()}


def test_what_is_expected_is_counted_before_the_cut_for_this_may_be_killed(scene: Scene) -> None:
    at: list[tuple[bool, int]] = []
    scene.stage.world.switched = lambda _, on: at.append((on, scene.counted()["a"].power_cycles))
    scene.cut(2, expected=["a"])
    assert at == [(False, 1), (True, 1)]


# The whole of it, with the guard, the journal, and this machine for a host.


@dataclass
class Whole:
    stage: Stage
    bench: Bench
    did: list[str]

    def cut(self, outlet: int) -> Observation:
        specs = [drive(slot).spec for slot in ("a", "b")]
        try:
            return black_out(
                self.bench, specs, Cut(tuple(self.stage.supplies(outlet)), ("a",), OFF_S, 7.0)
            )
        finally:
            self.stage.world.settle()

    @property
    def journals(self) -> str:
        return str(self.stage.tmp_path / "journal")


@pytest.fixture
def whole(stage: Stage, here: Host, monkeypatch: pytest.MonkeyPatch) -> Whole:
    did = stage.world.did
    journal = Journal(here, "map", directory=str(stage.tmp_path / "journal"))

    def admit(host: Host, drives: Sequence[Any]) -> Permit:
        did.append(f"admitted {len(drives)}")
        return Permit("all", did)

    monkeypatch.setattr(blackout, "SYNC", ("true",))
    monkeypatch.setattr(blackout, "bind", lambda _, spec: drive(spec.slot))
    monkeypatch.setattr(blackout, "scan", lambda host: ())
    monkeypatch.setattr(blackout, "admit_rig", admit)
    monkeypatch.setattr(
        blackout, "Sight", lambda host, drive, disks: FakeEyes(stage.world, drive.spec.slot)
    )
    return Whole(stage, Bench(here, HostSpec(reach="local"), journal), did)


def test_every_drive_is_admitted_before_any_is_told_and_let_go_when_it_is_off(
    whole: Whole,
) -> None:
    assert whole.cut(2).dark == {"a"}
    assert whole.did[:5] == ["admitted 2", "delete a", "delete b", "outlet 2 off", "released all"]


def test_nothing_is_done_where_one_of_the_drives_cannot_afford_it(
    whole: Whole, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Any of them may go dark, whatever the file says."""
    spent = drive("b").spec.model_copy(update={"power_budget": PowerBudget(power_cycles=1)})

    def eyes(host: Host, of: Any, disks: Any) -> FakeEyes:
        made = FakeEyes(whole.stage.world, of.spec.slot)
        if made.slot == "b":
            made.drive = replace(made.drive, spec=spent)
        return made

    monkeypatch.setattr(blackout, "Sight", eyes)
    whole.cut(3)
    whole.did.clear()
    with pytest.raises(RigTrouble, match=r"slot b: .*its power is not cut: it has had 1 power"):
        whole.cut(2)
    assert whole.did == []


@pytest.mark.parametrize("step", ["delete", "identity", "rescan"])
def test_whatever_cuts_in_the_outlet_ends_on_and_the_drives_are_looked_for(
    whole: Whole, monkeypatch: pytest.MonkeyPatch, step: str
) -> None:
    real: Callable[[FakeEyes], None] = getattr(FakeEyes, step)
    calls = [0]

    def interrupted(eyes: FakeEyes, *seen: Seen) -> None:
        calls[0] += 1
        if calls[0] == 1:
            raise KeyboardInterrupt
        real(eyes, *seen)

    monkeypatch.setattr(FakeEyes, step, interrupted)
    with pytest.raises(KeyboardInterrupt):
        whole.cut(2)
    assert whole.stage.has_power(2)
    assert [did for did in whole.did if did != "released all"][-1] == "rescan"
    assert whole.stage.world.kernel >= {"a", "b"}
    assert restore_outlets(whole.bench.host, directory=whole.journals) == []


def test_ctrl_c_at_any_line_leaves_the_outlet_on_and_every_drive_there(whole: Whole) -> None:
    """Sampled more densely at the beginning, where one line in the wrong place would tell."""
    at, broken_off = 1, 0
    while True:
        with interrupted(at) as interruption:
            try:
                whole.cut(2)
            except KeyboardInterrupt:
                broken_off += 1
        assert whole.stage.has_power(2), f"at line {at}"
        assert whole.stage.world.kernel >= {"a", "b"}, f"at line {at}"
        if interruption.left:
            break
        at += 1 + at // 8
    assert broken_off > 20


def test_the_record_has_the_outlet_and_where_all_drives_are_to_be_looked_for(
    whole: Whole, monkeypatch: pytest.MonkeyPatch
) -> None:
    paths = {"a": "/sys/class/scsi_host/host1/scan", "b": "/sys/class/scsi_host/host2/scan"}

    def eyes(host: Host, drive: Any, disks: Any) -> FakeEyes:
        made = FakeEyes(whole.stage.world, drive.spec.slot)
        made.scan_path = paths[made.slot]
        return made

    monkeypatch.setattr(blackout, "Sight", eyes)
    on_record: list[str] = []

    def read(outlet: int, on: bool) -> None:
        (path,) = (whole.stage.tmp_path / "journal").iterdir()
        on_record.append(path.read_text())

    whole.stage.world.switched = read
    whole.cut(2)
    for record in on_record:
        assert '"outlet": 2' in record
        assert all(path in record for path in paths.values())
