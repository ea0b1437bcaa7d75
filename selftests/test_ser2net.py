"""A BayTech behind a terminal server: ser2net on loopback, before a virtual unit on its pty.

`./run selftest` installs ser2net; by hand it is Debian's package of that name.
"""

import threading
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, ExitStack
from pathlib import Path

import pytest

from leadline.errors import RigTrouble
from leadline.inventory.pdu import PduSpec
from leadline.power import port as port_module
from leadline.power.pdu import Pdu
from leadline.power.port import open_port, where
from leadline.power.session import Session
from leadline.virtual.pdus.pty import VirtualPdu
from selftests.foreign import STARTS_S, free_port, needs, running

pytestmark = [
    needs("ser2net"),
    # pyserial's reader of rfc2217:// dies loudly in its thread when the server hangs up on it.
    pytest.mark.filterwarnings("ignore::pytest.PytestUnhandledThreadExceptionWarning"),
    pytest.mark.filterwarnings("ignore:set(Daemon|Name)..:DeprecationWarning"),
]

# What a rig file says, and what ser2net calls it.
WAYS = {
    "socket": ("socket://127.0.0.1:{}", "tcp"),
    "rfc2217": ("rfc2217://127.0.0.1:{}?ign_set_control", "telnet(rfc2217),tcp"),
}
each_way = pytest.mark.parametrize("way", WAYS)


@pytest.fixture(autouse=True)
def own_locks(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    """Lock files of these tests' own, away from those of a run on this machine."""
    monkeypatch.setattr(port_module, "LOCK_DIRECTORY", tmp_path)


class Server:
    """A ser2net that can be started, stopped and started again, on one port."""

    def __init__(self, way: str, device: Path, folder: Path) -> None:
        url, accepter = WAYS[way]
        port = free_port()
        self.url = url.format(port)
        self._config = folder / "ser2net.yaml"
        self._config.write_text(
            "%YAML 1.1\n---\n"
            "connection: &pdu\n"
            f"  accepter: {accepter},127.0.0.1,{port}\n"
            f"  connector: serialdev,{device},9600n81,local\n"
        )

    def started(self) -> AbstractContextManager[None]:
        # In the foreground, so that it ends with the test; a pty needs no lock in /var/lock.
        return running("ser2net", "-n", "-u", "-c", str(self._config))


Bench = Callable[[str], tuple[VirtualPdu, ExitStack, Server, Pdu]]


@pytest.fixture
def bench(tmp_path: Path) -> Iterator[Bench]:
    """A unit, the server before it, and Leadline's driver before that, all as real as can be."""
    with ExitStack() as all_of_it:

        def make(way: str) -> tuple[VirtualPdu, ExitStack, Server, Pdu]:
            unit = all_of_it.enter_context(VirtualPdu(8, lambda *_: None, tmp_path / "pdu"))
            server = Server(way, unit.link, tmp_path)
            up = all_of_it.enter_context(ExitStack())
            up.enter_context(server.started())
            spec = PduSpec(name="a", family="baytech-rpc3", port=server.url)
            session = Session(lambda: open_port(spec), where(spec))
            session.reopen(STARTS_S)
            return unit, up, server, all_of_it.enter_context(Pdu(spec, session))

        yield make


@each_way
def test_on_off_and_status(bench: Bench, way: str) -> None:
    unit, _, _, pdu = bench(way)
    assert pdu.status() == dict.fromkeys(range(1, 9), True)
    assert pdu.switch(3, False).verified
    assert unit.contacts == {n: n != 3 for n in range(1, 9)}
    assert pdu.status() == unit.contacts
    assert pdu.switch(3, True).attempts == 1
    assert pdu.status() == unit.contacts == dict.fromkeys(range(1, 9), True)


@each_way
def test_a_stuck_outlet_is_found_through_it(
    bench: Bench, way: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("leadline.power.pdu.READBACK_S", 0.2)
    unit, _, server, pdu = bench(way)
    unit.faults.stuck = {5}
    with pytest.raises(RigTrouble) as caught:
        pdu.switch(5, False)
    assert str(caught.value).startswith(f"PDU 'a' (port {server.url}): outlet 5: still on after 3")


@each_way
def test_the_adapter_is_unplugged_and_back(bench: Bench, way: str) -> None:
    """The server stays, and hangs up on whoever asks for a port that it does not have."""
    unit, _, _, pdu = bench(way)
    pdu.switch(3, False)
    unit.unplug()
    back = threading.Timer(0.7, unit.plug_in)
    back.start()
    assert pdu.switch(3, True).verified
    back.join()
    assert unit.contacts[3] is True
    assert pdu.status() == unit.contacts


@each_way
def test_the_server_goes_and_comes_back(bench: Bench, way: str) -> None:
    unit, up, server, pdu = bench(way)
    pdu.switch(3, False)
    up.close()
    with pytest.raises(RigTrouble, match=r"is the serial server running and the address right"):
        pdu.status(deadline_s=0.5)
    with server.started():
        assert pdu.switch(3, True).verified
        assert unit.contacts[3] is True
