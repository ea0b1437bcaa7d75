"""The virtual PDU as a stranger sees it: powermand drives it, as it drives the real one."""

from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

import pytest

from leadline.virtual.pdus.pty import VirtualPdu
from selftests.powermand import Powermand, needs_powermand

pytestmark = needs_powermand


@dataclass
class Bench:
    """A virtual PDU, what its outlets did, and a powermand before it."""

    pdu: VirtualPdu
    switched: list[tuple[int, bool]]
    client: Powermand

    def powerman(self, *arguments: str) -> str:
        return self.client.powerman(*arguments)

    def shows(self, state: str) -> str:
        return self.client.shows(state)


@pytest.fixture
def bench(tmp_path: Path) -> Iterator[Bench]:
    switched: list[tuple[int, bool]] = []
    port = tmp_path / "pdu"
    with (
        VirtualPdu(8, lambda n, on: switched.append((n, on)), port) as pdu,
        Powermand(port, tmp_path) as client,
    ):
        yield Bench(pdu, switched, client)


def test_powermand_queries_and_switches(bench: Bench) -> None:
    assert bench.shows("on") == "outlet[1-8]"
    assert "completed successfully" in bench.powerman("-0", "outlet3")
    assert bench.shows("off") == "outlet3"
    bench.powerman("-1", "outlet3")
    assert bench.shows("on") == "outlet[1-8]"
    bench.powerman("-0", "outlet[1-8]")
    assert bench.shows("on") == ""
    bench.pdu.settle(5)
    assert bench.switched == [(3, False), (3, True), *((n, False) for n in range(1, 9))]


def test_powermand_cycles(bench: Bench) -> None:
    bench.powerman("-c", "outlet2")
    # The client may be told that it is done while "on" is still on its way.
    assert bench.shows("on") == "outlet[1-8]"
    bench.pdu.settle(5)
    assert bench.switched == [(2, False), (2, True)]


def test_powermand_believes_a_stuck_outlet(bench: Bench) -> None:
    """Why Leadline reads back: this client reports success, and the outlet is still on."""
    bench.pdu.faults.stuck.add(5)
    assert "completed successfully" in bench.powerman("-0", "outlet5")
    assert bench.shows("on") == "outlet[1-8]"
    assert bench.switched == []
