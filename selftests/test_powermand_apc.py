"""The virtual APC menus as powermand sees them, by its description of an AP7900 with AOS 3."""

from collections.abc import Iterator
from pathlib import Path

import pytest

from leadline.virtual.pdus import login
from leadline.virtual.pdus.apc import USER_NAME
from leadline.virtual.pdus.faults import Faults
from leadline.virtual.pdus.pty import VirtualPdu
from selftests.powermand import Powermand, needs_powermand

pytestmark = needs_powermand


@pytest.fixture
def switched() -> list[tuple[int, bool]]:
    return []


@pytest.fixture
def pdu(
    switched: list[tuple[int, bool]], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> Iterator[VirtualPdu]:
    # The account that the description has; it speaks once it was asked for a user name.
    monkeypatch.setattr(login, "USERNAME", "apc")
    monkeypatch.setattr(login, "PASSWORD", "apc")
    faults = Faults(left_at="username", leftover=USER_NAME)
    with VirtualPdu(
        8,
        lambda n, on: switched.append((n, on)),
        tmp_path / "pdu",
        family="apc-menu",
        faults=faults,
    ) as unit:
        yield unit


@pytest.fixture
def client(pdu: VirtualPdu, tmp_path: Path) -> Iterator[Powermand]:
    with Powermand(pdu.link, tmp_path, "apc7900v3") as powermand:
        yield powermand


def test_powermand_queries_switches_and_cycles(
    client: Powermand, pdu: VirtualPdu, switched: list[tuple[int, bool]]
) -> None:
    assert client.shows("on") == "outlet[1-8]"
    assert "completed successfully" in client.powerman("-0", "outlet3")
    assert client.shows("off") == "outlet3"
    client.powerman("-1", "outlet3")
    client.powerman("-c", "outlet2")
    assert client.shows("on") == "outlet[1-8]"
    pdu.settle(5)
    assert switched == [(3, False), (3, True), (2, False), (2, True)]


def test_powermand_switches_all_by_master_control(
    client: Powermand, pdu: VirtualPdu, switched: list[tuple[int, bool]]
) -> None:
    client.powerman("-0", "outlet[1-8]")
    assert client.shows("off") == "outlet[1-8]"
    pdu.settle(5)
    assert switched == [(n, False) for n in range(1, 9)]


def test_powermand_believes_a_stuck_outlet(
    client: Powermand, pdu: VirtualPdu, switched: list[tuple[int, bool]]
) -> None:
    pdu.faults.stuck.add(5)
    assert "completed successfully" in client.powerman("-0", "outlet5")
    assert client.shows("on") == "outlet[1-8]"
    assert switched == []
