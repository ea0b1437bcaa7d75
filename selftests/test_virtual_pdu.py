"""The virtual PDU on a real pty, and Leadline's own driver before it, with each fault."""

import json
import os
import re
import socket
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from types import SimpleNamespace

import pytest
import serial

from leadline.cli import main
from leadline.errors import RigTrouble
from leadline.host import journal
from leadline.inventory.pdu import PduSpec
from leadline.power import command_line
from leadline.power import port as port_module
from leadline.power.pdu import Pdu, open_pdu
from leadline.power.session import ByteLog
from leadline.virtual.pdus.faults import Faults
from leadline.virtual.pdus.pty import VirtualPdu


def spec(link: Path) -> PduSpec:
    return PduSpec(name="a", family="baytech-rpc3", port=str(link), outlets=4)


@pytest.fixture(autouse=True)
def own_locks(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    """Lock files of these tests' own, away from those of a run on this machine."""
    monkeypatch.setattr(port_module, "LOCK_DIRECTORY", tmp_path)


@pytest.fixture(autouse=True)
def short_quiets(monkeypatch: pytest.MonkeyPatch) -> None:
    """This unit is faster than a real one: listen a third as long."""
    monkeypatch.setattr(command_line, "SYNC_QUIETS_S", (0.1, 0.3, 0.8))


def nothing(outlet: int, on: bool) -> None:
    pass


@contextmanager
def bench(tmp_path: Path, faults: Faults | None = None) -> Iterator[tuple[VirtualPdu, Pdu]]:
    with (
        VirtualPdu(4, nothing, tmp_path / "pdu", faults=faults) as unit,
        open_pdu(spec(unit.link)) as pdu,
    ):
        yield unit, pdu


@contextmanager
def typed(unit: VirtualPdu) -> Iterator[serial.Serial]:
    """A plain terminal on the unit's port."""
    port = serial.Serial(str(unit.link), timeout=5)
    try:
        yield port
    finally:
        port.close()


# The unit by itself: the dialogue of a real RPC3-NC.


@pytest.mark.parametrize("enter", [b"\r", b"\r\n", b"\n"])
def test_an_enter_is_one_enter(tmp_path: Path, enter: bytes) -> None:
    with VirtualPdu(2, nothing, tmp_path / "pdu") as unit, typed(unit) as port:
        port.write(enter)
        assert port.read_until(b">RPC3-NC>").endswith(b"RMS Voltage\r\n\r\nRPC3-NC>RPC3-NC>")
        for _ in range(2):
            port.write(enter)
            assert port.read_until(b">") == b"\r\nRPC3-NC>"
        port.timeout = 0.2
        assert port.read(1) == b"", "and of nothing else"


@pytest.mark.parametrize(
    ("line", "answer", "on"),
    [
        (b"off 2", b"RPC3-NC>", {1, 3, 4}),
        (b"off 2-4", b"RPC3-NC>", {1, 3, 4}),
        (b"off 0", b"RPC3-NC>", set()),
        (b"OFF 2", b"Input error\r\n\r\nRPC3-NC>", {1, 2, 3, 4}),
        (b"off 5", b"Input error\r\n\r\nRPC3-NC>", {1, 2, 3, 4}),
        (b"off", b"Input error\r\n\r\nRPC3-NC>", {1, 2, 3, 4}),
        (b"off 3\x08\x7f 2", b"RPC3-NC>", {1, 3, 4}),
    ],
)
def test_what_is_typed_is_echoed_and_obeyed(
    tmp_path: Path, line: bytes, answer: bytes, on: set[int]
) -> None:
    with VirtualPdu(4, nothing, tmp_path / "pdu") as unit, typed(unit) as port:
        port.write(line + b"\r")
        heard = port.read_until(b">")
        assert heard.endswith(b"\r\n" + answer)
        assert heard.startswith(line[:3])
        assert {n for n, state in unit.contacts.items() if state} == on


def test_reboot_counts_down_and_leaves_off_what_was_off(tmp_path: Path) -> None:
    moves: list[tuple[int, bool]] = []
    with (
        VirtualPdu(
            2, lambda n, on: moves.append((n, on)), tmp_path / "pdu", on=[2], reboot_s=1
        ) as unit,
        typed(unit) as port,
    ):
        port.write(b"reboot 0\r")
        assert port.read_until(b">").endswith(b"Rebooting...  \x080\r\nRPC3-NC>")
        unit.settle(5)
    assert moves == [(2, False), (2, True)]


def test_it_answers_at_once_however_long_a_switching_takes(tmp_path: Path) -> None:
    begun, go_on = threading.Event(), threading.Event()
    order: list[tuple[int, bool]] = []

    def slow(outlet: int, on: bool) -> None:
        begun.set()
        assert go_on.wait(10)
        order.append((outlet, on))

    with VirtualPdu(2, slow, tmp_path / "pdu") as unit:
        with typed(unit) as port:
            port.write(b"off 1\roff 2\rstatus\r")
            assert b"2)...Outlet  2       : Off" in port.read_until(b"commands\r\n\r\nRPC3-NC>")
        assert begun.wait(10)
        assert order == []
        with pytest.raises(RigTrouble, match=r"over 0\.01 s"):
            unit.settle(0.01)
        go_on.set()
        unit.settle(10)
        assert order == [(1, False), (2, False)]


def test_what_a_switching_raises_reaches_who_waits_for_it(tmp_path: Path) -> None:
    def broken(outlet: int, on: bool) -> None:
        raise RigTrouble(f"outlet {outlet} does not start")

    with VirtualPdu(2, broken, tmp_path / "pdu") as unit:
        with typed(unit) as port:
            port.write(b"off 1\r")
            port.read_until(b">")
        with pytest.raises(RigTrouble, match="outlet 1 does not start"):
            unit.settle(10)
        unit.settle(10)


def test_a_stale_link_is_replaced_and_gone_at_the_end(tmp_path: Path) -> None:
    link = tmp_path / "pdu"
    link.symlink_to("/dev/pts/no-such")
    before = set(os.listdir("/proc/self/fd"))  # noqa: PTH208 - names are enough
    with VirtualPdu(2, nothing, link):
        assert link.resolve().is_char_device()
    assert not link.is_symlink()
    assert set(os.listdir("/proc/self/fd")) == before  # noqa: PTH208
    assert not [t for t in threading.enumerate() if "pdu" in t.name]


def test_a_unit_that_nobody_reads_still_stops(tmp_path: Path) -> None:
    with VirtualPdu(8, nothing, tmp_path / "pdu") as unit, typed(unit) as port:
        port.write(b"status\r" * 140)  # some 80 KB of answers: more than a line holds
        time.sleep(1)  # it is full now, and each piece of an answer waits for a second
        begun = time.monotonic()
    assert time.monotonic() - begun < 5


# Leadline's driver before it.


def test_switched_and_read_back(tmp_path: Path) -> None:
    with bench(tmp_path) as (unit, pdu):
        assert pdu.switch(2, False).verified
        assert unit.contacts == {1: True, 2: False, 3: True, 4: True}
        assert pdu.status() == unit.contacts
        again = pdu.switch(2, True)
        assert again.attempts == 1
        assert again.seconds < 1


RECOVERED = {
    "silent": Faults(silent=True, lines=2),
    "mute": Faults(mute=True, lines=2),
    "garbage": Faults(garbage=True, lines=2),
    "half a line": Faults(half=True, lines=2),
    "stale": Faults(stale=True, lines=2),
    "noise": Faults(noise=9),
    "slow": Faults(slow_s=0.4),
    "pager": Faults(page_lines=13),
    "names": Faults(names={1: "ON", 2: "x : Off", 3: "\x1b[2J", 4: "RPC3-NC>"}),
    "left at a pager": Faults(left_at="pager"),
    "left at a question": Faults(left_at="confirm", leftover=b"Turn Off Outlet 1 (Y/N)?"),
    "left half typed": Faults(left_at="half-typed"),
    "left logged in": Faults(leftover=b"\r\nRPC3-NC>RPC3-NC>"),
}


@pytest.mark.parametrize("fault", RECOVERED)
def test_recovered(tmp_path: Path, fault: str) -> None:
    with bench(tmp_path, RECOVERED[fault]) as (unit, pdu):
        assert pdu.switch(2, False).verified
        assert unit.contacts == {1: True, 2: False, 3: True, 4: True}


STAYS = {
    "silent": Faults(silent=True),
    "mute": Faults(mute=True),
    "garbage": Faults(garbage=True),
    "half a line": Faults(half=True),
    "stale": Faults(stale=True),
    "stuck": Faults(stuck={2}),
    "wrong outlet": Faults(rewired={2: 3}),
}


@pytest.mark.parametrize("fault", STAYS)
def test_rig_trouble_that_names_port_and_step(tmp_path: Path, fault: str) -> None:
    with bench(tmp_path, STAYS[fault]) as (unit, pdu):
        with pytest.raises(RigTrouble) as caught:
            pdu.switch(2, False, deadline_s=1)
        steps = "finding the prompt|handshake|status|off 2|outlet 2"
        caught.match(rf"^PDU 'a' \(port {unit.link}\): ({steps}): ")


def test_a_welded_outlet_is_beyond_the_pdus_knowledge(tmp_path: Path) -> None:
    """Its status says off: only the drive that is still there can tell (`power.cycle`)."""
    with bench(tmp_path, Faults(welded={2})) as (unit, pdu):
        assert pdu.switch(2, False).verified
        assert unit.contacts[2] is True


def test_unplugged_and_back(tmp_path: Path) -> None:
    with bench(tmp_path) as (unit, pdu):
        pdu.status()
        unit.unplug()
        back = threading.Timer(0.7, unit.plug_in)
        back.start()
        switched = pdu.switch(2, False)
        back.join()
        assert switched.verified
        assert switched.seconds < 0.7 + 5
        assert unit.contacts[2] is False


def test_unplugged_for_good_names_the_port(tmp_path: Path) -> None:
    with bench(tmp_path) as (unit, pdu):
        pdu.status()
        unit.unplug()
        with pytest.raises(RigTrouble, match=rf"\(port {unit.link}\): open: there is no such port"):
            pdu.switch(2, False, deadline_s=0.5)


def test_a_port_that_is_not_there_fails_at_once(tmp_path: Path) -> None:
    with pytest.raises(RigTrouble, match="there is no such port"):
        open_pdu(spec(tmp_path / "absent"))


def test_every_byte_is_kept(tmp_path: Path) -> None:
    log = ByteLog()
    with (
        VirtualPdu(4, nothing, tmp_path / "pdu") as unit,
        open_pdu(spec(unit.link), log=log) as pdu,
    ):
        pdu.switch(2, False)
    sent = b"".join(chunk.data for chunk in log.chunks if chunk.sent)
    # A unit that takes its time is sent another Enter.
    assert re.fullmatch(rb"\r{3,}status\r\roff 2\r\rstatus\r", sent.lstrip(b"\x08"))


# The command, before a host that does not answer.

RIG = """
rig: bench
host: {{reach: ssh, address: bench, ssh_config: {folder}/ssh_config, shutdown: [poweroff]}}
controllers: [{{name: ahci, driver: ahci}}]
pdus: [{{name: a, family: baytech-rpc3, port: {folder}/pdu, outlets: 4}}]
outlets:
  - {{name: host, pdu: a, outlet: 1, feeds: host}}
  - {{name: slot1, pdu: a, outlet: 2, feeds: [slot1]}}
drives:
  - slot: slot1
    model: M
    serial: S
    firmware: "1"
    controller: ahci
    protocol: sata
    off_s: 0.1
"""


@pytest.fixture
def power(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> Iterator[Callable[..., tuple[int, str, str]]]:
    """Run `leadline power` on a rig whose host refuses connections: exit code, stdout, stderr."""
    monkeypatch.setattr(journal, "default_directory", lambda _: str(tmp_path / "journal"))
    monkeypatch.setenv("XDG_STATE_HOME", str(tmp_path / "state"))
    monkeypatch.setattr("leadline.commands.power_dark.HOST_S", 2.0)
    with socket.create_server(("127.0.0.1", 0)) as closed:
        port = closed.getsockname()[1]
    (tmp_path / "ssh_config").write_text(f"Host bench\n  HostName 127.0.0.1\n  Port {port}\n")
    (tmp_path / "rig.yaml").write_text(RIG.format(folder=tmp_path))

    def run(*words: str) -> tuple[int, str, str]:
        code = main(["power", "--rig", str(tmp_path / "rig.yaml"), *words])
        said = capsys.readouterr()
        return code, said.out, said.err

    yield run


def test_status_and_on_need_no_host(
    tmp_path: Path, power: Callable[..., tuple[int, str, str]]
) -> None:
    with VirtualPdu(4, nothing, tmp_path / "pdu", on=[1]) as unit:
        assert power("slot1", "status") == (0, "outlet slot1 (2 of PDU a): off, by readback\n", "")
        code, out, _ = power("slot1", "on", "--json")
        assert (code, json.loads(out)["on"], json.loads(out)["verified"]) == (0, True, True)
        assert unit.contacts[2]


def test_off_and_cycle_need_yes_where_the_drives_cannot_be_checked(
    tmp_path: Path, power: Callable[..., tuple[int, str, str]]
) -> None:
    moves: list[tuple[int, bool]] = []
    with VirtualPdu(4, lambda n, on: moves.append((n, on)), tmp_path / "pdu") as unit:
        for action in ("off", "cycle"):
            code, out, err = power("slot1", action)
            assert (code, out) == (3, "")
            assert "its power was not cut. To cut it all the same, give --yes" in err
        assert moves == []
        code, out, _ = power("slot1", "cycle", "--yes", "--json")
        assert (code, json.loads(out)["drives"]) == (0, [])
        assert power("slot1", "off", "--yes")[0] == 0
        assert power("slot1", "off") == (0, "outlet slot1 (2 of PDU a): off, by readback\n", "")
        unit.settle(5)
        assert moves == [(2, False), (2, True), (2, False)]


def test_wrong_use_and_a_missing_port_have_their_exit_codes(
    tmp_path: Path, power: Callable[..., tuple[int, str, str]]
) -> None:
    code, _, err = power("slot9", "status")
    assert code == 2
    assert "found no outlet 'slot9', expected one of: host, slot1" in err
    code, _, err = power("slot1", "status")
    assert code == 3
    assert "/dev/serial/by-id" in err


def test_a_stuck_outlet_ends_with_rig_trouble(
    tmp_path: Path, power: Callable[..., tuple[int, str, str]], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("leadline.power.pdu.READBACK_S", 0.2)
    with VirtualPdu(4, nothing, tmp_path / "pdu", faults=Faults(stuck={2})):
        code, out, err = power("slot1", "cycle", "--yes")
        assert (code, out) == (3, "")
        assert "outlet 2: still on after 3 commands" in err


def test_every_outlet_that_failed_is_named(
    tmp_path: Path, power: Callable[..., tuple[int, str, str]], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("leadline.power.pdu.READBACK_S", 0.2)
    with VirtualPdu(4, nothing, tmp_path / "pdu", faults=Faults(stuck={1, 2})):
        code, _, err = power("host", "slot1", "off", "--yes")
    assert code == 3
    first, second = err.splitlines()
    assert first.startswith("leadline: PDU 'a' (port ")
    assert "outlet 1: still on after 3 commands" in first
    assert second.startswith("  PDU 'a' (port ")
    assert "outlet 2: still on after 3 commands" in second


def test_ctrl_c_names_the_outlet_that_stays_off(
    tmp_path: Path, power: Callable[..., tuple[int, str, str]], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("leadline.power.pdu.READBACK_S", 0.2)
    with VirtualPdu(4, nothing, tmp_path / "pdu") as unit:

        def interrupted(_: float) -> None:
            unit.faults.stuck = {2}
            raise KeyboardInterrupt

        # By now it is off; with its relay stuck, it cannot be switched on again.
        waits = SimpleNamespace(sleep=interrupted)
        monkeypatch.setattr("leadline.commands.power_dark.time", waits)
        code, _, err = power("slot1", "cycle", "--yes")
    assert code == 130
    assert "leadline: interrupted, and then, when its power was to be put back: PDU 'a'" in err
    assert "outlet 2: still off after 3 commands" in err
