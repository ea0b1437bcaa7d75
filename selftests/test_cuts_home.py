"""The cut that puts a drive's firmware back is kept: no flash and no test may spend it."""

from dataclasses import replace

import pytest

from leadline.cuts_home import kept_for_home
from leadline.cycling import cycle
from leadline.errors import RigTrouble
from leadline.flashing import flash
from leadline.inventory.flash import FlashSpec
from leadline.inventory.rig import PowerBudget
from leadline.power.wear import Cut, Toll
from leadline.visiting import OpenVisit
from selftests.cycling_world import Cycled, cycled
from selftests.flasher import IMAGE, OUTLET, SHA256, Flasher, flasher
from selftests.outlet_rig import OF_A
from selftests.power_world import drive, quick, stage
from selftests.test_away import leave_away
from selftests.visit_world import MATRIX, Bench, bench

__all__ = ["bench", "cycled", "flasher", "quick", "stage"]  # fixtures

BY_POWER = "activation: power-cycle,"
KEPT = "its power is not cut: it has had {} power cycles, and .* allows {}, of which 1 are kept to"


def budgeted(cycles: int) -> str:
    """Both ways are activated by a power cycle, and so many are allowed."""
    return f"{{activates: power-cycle}}, power_budget: {{power_cycles: {cycles}}}"


def sent(flasher: Flasher, visit: OpenVisit, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("leadline.flashing.cycle", lambda *_, **__: None)
    flash(visit)


def test_a_flash_is_refused_where_the_budget_does_not_bear_the_way_home(
    flasher: Flasher, monkeypatch: pytest.MonkeyPatch
) -> None:
    with flasher.visit(budgeted(1)) as visit:
        with pytest.raises(RigTrouble, match=KEPT.format(0, 1)):
            sent(flasher, visit, monkeypatch)
        assert not flasher.told.exists()
        assert visit.station.away == {}
    with flasher.visit(budgeted(2)) as visit:
        sent(flasher, visit, monkeypatch)
    assert flasher.told.exists()


def test_so_it_is_where_the_way_home_alone_takes_a_cut(
    flasher: Flasher, monkeypatch: pytest.MonkeyPatch
) -> None:
    how = "{mode: 5}, power_budget: {power_cycles: 0}"
    with (
        flasher.visit(how, of_1_0=BY_POWER) as visit,
        pytest.raises(RigTrouble, match=r"it has had 0 power cycles, and .* allows 0; raise"),
    ):
        sent(flasher, visit, monkeypatch)
    assert not flasher.told.exists()
    with flasher.visit(how) as visit:
        sent(flasher, visit, monkeypatch)
    assert flasher.told.exists()


def test_a_drive_that_is_to_stay_needs_no_way_home(
    flasher: Flasher, monkeypatch: pytest.MonkeyPatch
) -> None:
    with flasher.visit(budgeted(1)) as visit:
        visit.station.run = replace(visit.station.run, keep_firmware=True)
        sent(flasher, visit, monkeypatch)
    assert flasher.told.exists()


def test_the_way_home_may_spend_what_was_kept_for_it(
    flasher: Flasher, monkeypatch: pytest.MonkeyPatch
) -> None:
    with flasher.visit(budgeted(2)) as visit:
        sent(flasher, visit, monkeypatch)
        Toll([Cut(visit.spec, emergency_unload=False)], "run-1").count()
        cell = replace(visit.visit.cell, firmware="1.0")
        home = OpenVisit(visit.station, replace(visit.visit, cell=cell))
        home.rebound(visit.drive)
        assert kept_for_home(visit) == {"a": 1}
        assert kept_for_home(home) == {}
        flasher.told.unlink()
        flash(home)
    assert flasher.told.exists()


def test_a_neighbour_on_the_outlet_keeps_a_cut_for_it_too(flasher: Flasher) -> None:
    with flasher.visit(budgeted(9), outlet=OUTLET.replace("[a]", "[a, b]")) as visit:
        assert kept_for_home(visit) == {"a": 1, "b": 1}


WITH_IMAGE = MATRIX.replace('"1.0", ', f'"1.0", image: i.bin, sha256: {SHA256}, ')


def test_a_test_of_a_power_cycle_does_not_spend_it(cycled: Cycled, bench: Bench) -> None:
    (bench.folder / "i.bin").write_bytes(IMAGE)
    budget = PowerBudget(power_cycles=1)
    bench.drive = drive("a", spec=drive("a").spec.model_copy(update={"power_budget": budget}))
    with cycled.visit(OF_A, matrix=WITH_IMAGE) as visit:
        by_power = {"flash": FlashSpec(activates="power-cycle")}
        rig, at_home = visit.station.rig, visit.visit
        flashed = tuple(each.model_copy(update=by_power) for each in rig.drives)
        visit.station.rig = rig.model_copy(update={"drives": flashed})
        visit.visit = replace(at_home, cell=replace(at_home.cell, firmware="1.1"))
        with pytest.raises(RigTrouble, match=KEPT.format(0, 1)):
            cycle(visit)
        assert cycled.stage.world.did == []
        visit.visit = at_home
        cycle(visit)
    assert "outlet 2 off" in cycled.stage.world.did


def test_a_drive_that_a_dead_run_left_away_keeps_its_cut(flasher: Flasher) -> None:
    """The one beside it on the outlet is visited."""
    with flasher.visit(budgeted(9), outlet=OUTLET.replace("[a]", "[a, b]")) as visit:
        leave_away(visit.station.here_journal)
    with flasher.visit(budgeted(9), outlet=OUTLET.replace("[a]", "[a, b]")) as visit:
        beside = replace(visit.visit, cell=replace(visit.visit.cell, slot="b", firmware="1.0"))
        assert kept_for_home(OpenVisit(visit.station, beside)) == {"a": 1, "b": 1}
