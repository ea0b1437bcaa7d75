"""Relays on DTR and RTS: what is set on real ports of pyserial's, and that it proves nothing."""

import fcntl
import os
import socket
import termios
import threading
import tty
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest
import serial
from serial.rfc2217 import PortManager

from leadline.errors import Misuse, RigTrouble
from leadline.inventory.pdu import PduSpec
from leadline.power.pdu import open_pdu
from leadline.power.port import open_port
from leadline.virtual.pdus.control_line import TwoRelays
from selftests.pdu_line import bench


def spec(port: str, **entry: object) -> PduSpec:
    given = {"name": "a", "family": "control-line", "port": port, "outlets": 2, **entry}
    return PduSpec.model_validate(given)


class Connection:
    """What pyserial's PortManager writes to."""

    def __init__(self, peer: socket.socket) -> None:
        self.write = peer.sendall


@contextmanager
def terminal_server() -> Iterator[tuple[str, serial.Serial]]:
    """An RFC 2217 server, and the port behind it, whose DSR and CTS read its own DTR and RTS."""
    port = serial.serial_for_url("loop://")

    def serve() -> None:
        peer, _ = listener.accept()
        with peer:
            manager: Any = PortManager(port, Connection(peer))  # type: ignore[arg-type]
            while data := peer.recv(1024):
                port.write(b"".join(manager.filter(data)))

    with socket.create_server(("127.0.0.1", 0)) as listener:
        listener.settimeout(10)  # nobody connects where opening fails
        server = threading.Thread(target=serve, daemon=True)
        server.start()
        yield f"rfc2217://127.0.0.1:{listener.getsockname()[1]}", port
        server.join(10)
        assert not server.is_alive()


@pytest.fixture
def pty() -> Iterator[str]:
    master, slave = os.openpty()
    tty.setraw(slave)
    attributes = termios.tcgetattr(slave)
    attributes[2] |= termios.HUPCL  # as ports have it, and this one has not
    termios.tcsetattr(slave, termios.TCSANOW, attributes)
    yield os.ttyname(slave)
    os.close(master)
    os.close(slave)


def lines_of(port: serial.Serial) -> tuple[bool, bool]:
    """DTR and RTS, asserted or not."""
    return port.dsr, port.cts


def test_over_a_terminal_server_the_lines_are_dropped_by_opening_and_follow_the_outlets() -> None:
    with terminal_server() as (url, port):
        assert lines_of(port) == (True, True)
        with open_pdu(spec(url)) as pdu:
            assert lines_of(port) == (False, False)
            done = pdu.switch(1, False)
            assert lines_of(port) == (True, False)
            assert not done.verified
            pdu.switch(2, False)
            pdu.switch(1, True)
            assert lines_of(port) == (False, True)
            said = [chunk.data for chunk in pdu.session.log.chunks]
            assert said == [b"<dtr asserted>", b"<rts asserted>", b"<dtr dropped>"]


def test_other_families_get_the_lines_that_they_had() -> None:
    with terminal_server() as (url, port):
        other = open_port(PduSpec(name="a", family="baytech-rpc3", port=url))
        told = lines_of(port)
        other.close()
    assert told == (True, True)


def test_a_device_is_opened_without_asserting_and_keeps_its_lines_when_closed(
    pty: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """No port with modem lines is here: the kernel's answer to their ioctls is made up."""
    modem = {termios.TIOCMBIS: "asserted", termios.TIOCMBIC: "dropped"}
    set_lines: list[tuple[str, int]] = []
    real = fcntl.ioctl

    def ioctl(descriptor: int, request: int, value: bytes = b"", *rest: object) -> object:
        if request not in modem:
            return real(descriptor, request, value)
        set_lines.append((modem[request], int.from_bytes(value, "little")))
        return value

    monkeypatch.setattr("serial.serialposix.fcntl.ioctl", ioctl)
    with open_pdu(spec(pty)) as pdu:
        assert set_lines == [("dropped", termios.TIOCM_DTR), ("dropped", termios.TIOCM_RTS)]
        pdu.switch(2, False)
        assert set_lines[2:] == [("asserted", termios.TIOCM_RTS)]
        watcher = os.open(pty, os.O_RDWR | os.O_NOCTTY)
        assert not termios.tcgetattr(watcher)[2] & termios.HUPCL
        os.close(watcher)


def test_a_port_without_such_lines_is_said(pty: str) -> None:
    missing = "off 1: this port has no DTR line"
    with open_pdu(spec(pty)) as pdu, pytest.raises(RigTrouble, match=missing):
        pdu.switch(1, False, deadline_s=1)


def test_a_bare_socket_is_misuse() -> None:
    with pytest.raises(Misuse, match=r"a bare socket carries no DTR or RTS.*rfc2217"):
        open_pdu(spec("socket://127.0.0.1:9"))


def test_nothing_is_sent_and_nothing_believed() -> None:
    with bench(None, "control-line", TwoRelays) as (pdu, line):
        assert not pdu.switch(2, False).verified
        assert line.moves == [(2, False)]
        assert line.written == b""
        with pytest.raises(RigTrouble, match="unverified"):
            pdu.status()


def test_more_outlets_than_lines(tmp_path: Path) -> None:
    with pytest.raises(ValueError, match="at most 2"):
        spec(str(tmp_path), outlets=3)
