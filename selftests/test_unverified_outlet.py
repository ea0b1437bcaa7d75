"""Outlets that cannot be read back: unverified wherever they are spoken of, never on or off."""

from dataclasses import replace

import pytest

from leadline.cycled import Cycled, Cycles
from leadline.errors import Inconclusive, RigTrouble
from leadline.host import journal
from leadline.host.connection import open_host
from leadline.inventory.rig import HostSpec
from leadline.power.cycle import carry_out
from leadline.power.dark import HotPlug
from leadline.power.families import FAMILIES
from leadline.power.outlets import ENTRY, restore_outlets
from leadline.power.pdu import COMMANDS
from leadline.virtual.pdus.baytech import Rpc3NcWithLogin
from leadline.virtual.pdus.faults import Faults
from selftests import one_way
from selftests.commanded_rig import Rig, absent, rig
from selftests.outlet_rig import OF_BOTH
from selftests.pdu_line import bench
from selftests.power_world import OFF_S, FakeEyes, Leave, Stage, pdu_spec, quick, stage, toll_of
from selftests.test_claims import Ruling
from selftests.test_cycled import done

__all__ = ["absent", "quick", "rig", "stage"]  # fixtures


@pytest.fixture(autouse=True)
def cannot_tell(monkeypatch: pytest.MonkeyPatch, quick: None) -> None:
    """Every RPC3 in these tests is one that cannot be read back."""
    monkeypatch.setitem(FAMILIES, "baytech-rpc3", one_way.NAME)


def test_a_switching_is_unverified_and_its_status_is_refused() -> None:
    with bench() as (pdu, line):
        done = pdu.switch(3, False)
        assert (done.on, done.verified, done.attempts) == (False, False, 1)
        assert line.moves == [(3, False)]
        with pytest.raises(RigTrouble, match=r"status: .* baytech-rpc3 cannot tell .* unverified"):
            pdu.status()


def test_a_command_that_went_wrong_is_sent_again_and_then_given_up() -> None:
    with bench() as (pdu, line):
        pdu.switch(3, False)
        line.dialogue.faults = Faults(half=True, lines=2)
        assert pdu.switch(3, True).attempts == 2
        line.instead = lambda data: b"\r\nInput error\r\n\r\nRPC3-NC>" if b"o" in data else None
        with pytest.raises(RigTrouble, match=r"port /dev/x\): off 3: refused"):
            pdu.switch(3, False)
        assert line.written.count(b"off 3") == 1 + COMMANDS


def test_a_session_that_ends_at_a_command_has_not_carried_it_out() -> None:
    with bench(None, "baytech-rpc3", Rpc3NcWithLogin) as (pdu, line):
        pdu.switch(3, True)

        def logs_out(data: bytes) -> bytes | None:
            if b"off 3" not in data:
                return None
            line.dialogue.begin()
            line.instead = lambda _: None
            return b"\r\nEnter username>"

        line.instead = logs_out
        assert pdu.switch(3, False).attempts == 2
        assert line.moves == [(3, False)]


def test_a_cycle_is_unverified_though_the_drive_went_and_came(stage: Stage) -> None:
    eyes = FakeEyes(stage.world, "a")
    supplies, toll = stage.supplies(2), toll_of(eyes)
    _, _, verified = carry_out(
        HotPlug(eyes), eyes, supplies, Leave(), toll, off_s=OFF_S, abrupt=False
    )
    assert verified is False
    assert stage.world.did == ["delete a", "outlet 2 off", "rescan", "outlet 2 on"]


def test_a_drive_that_is_still_there_is_not_blamed_on_a_readback(stage: Stage) -> None:
    stage.world.fed[2] = "b"
    eyes = FakeEyes(stage.world, "a")
    with pytest.raises(RigTrouble, match=r"outlet 2 .* was told to go off \(it cannot be read"):
        stage.cycle(eyes=eyes)


def test_the_command_says_unverified(rig: Rig) -> None:
    code, out, err = rig.run("a", "status")
    assert (code, out) == (3, "")
    assert "unverified" in err
    said = "outlet a (2 of PDU p): told to go on, unverified: its PDU cannot tell\n"
    assert rig.run("a", "on")[:2] == (0, said)
    on = rig.json("a", "on")
    assert (on["on"], on["verified"]) == (None, False)
    cycle = rig.json("a", "cycle")
    assert (cycle["on"], cycle["verified"], cycle["drives"]) == (None, False, ["a"])
    assert rig.run("a", "cycle")[1].endswith("; told to go on, unverified: its PDU cannot tell\n")
    off = rig.json("a", "off")
    assert (off["on"], off["verified"]) == (None, False)
    rig.run("a", "on")
    out = rig.run("a", "off")[1]
    assert out.endswith(": told to go off, unverified: its PDU cannot tell; a gone\n")


def test_an_unchecked_cycle_says_unverified(absent: Rig) -> None:
    out = absent.run("both", "cycle", "--yes", outlets=[OF_BOTH])[1]
    assert out == (
        "outlet both (2 of PDU p): cycled and told to go on, unverified: its PDU cannot tell; no "
        "drive was checked\n"
    )
    said = absent.json("both", "cycle", "--yes", outlets=[OF_BOTH])
    assert (said["on"], said["verified"]) == (None, False)


def test_an_outlet_that_a_dead_run_left_off_is_told_and_not_believed(stage: Stage) -> None:
    stage.pdu.switch(2, False)
    stage.pdu.close()
    folder = str(stage.tmp_path / "journal")
    with open_host(HostSpec(reach="local")) as here:
        with open_host(HostSpec(reach="local")) as dying:
            pdu = pdu_spec(stage.tmp_path).model_dump(mode="json")
            record = {"outlets": [{"pdu": pdu, "outlet": 2}], "rescan": None}
            journal.Journal(dying, "dead", directory=folder).open_entry(ENTRY, record)
        (said,) = restore_outlets(here, directory=folder)
    assert "was told to go on (unverified: it cannot be read back), after run dead" in said
    assert stage.has_power(2)


@pytest.mark.parametrize("verified", [True, False])
def test_the_suite_finds_an_unverified_cycle_inconclusive(verified: bool) -> None:
    cycles = Cycles(lambda *, abrupt: replace(done(3.0), verified=verified))
    cycled = Cycled(cycles, Ruling())
    if verified:
        assert cycled.times(2).verified
        return
    with pytest.raises(Inconclusive, match="slot a: its outlet is unverified"):
        cycled.times(1)
