"""Leadline's session, readback and recovery before a PDU that is not ours: powerman's vpcd.

No family that is built in speaks its dialogue (`3 vpc> `, outlets from 0, a `login` without a
password), so it is given here, as a family of this test's own.  socat makes the port.
`./run selftest` installs both; by hand they are Debian's powerman and socat.
"""

import re
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager
from pathlib import Path

import pytest

from leadline.errors import RigTrouble
from leadline.inventory.pdu import PduSpec
from leadline.power import command_line
from leadline.power import pdu as pdu_module
from leadline.power import port as port_module
from leadline.power.command_line import CommandLine, Grammar, prompt_line
from leadline.power.family import Family
from leadline.power.pdu import Pdu
from leadline.power.port import open_port, where
from leadline.power.session import Session
from selftests.foreign import STARTS_S, found, needs, running

pytestmark = needs("vpcd", "socat")

OUTLETS = 16
GRAMMAR = Grammar(unit="a vpcd", prompt=prompt_line(rb"\d+ vpc> "))
ROW = re.compile(r"^plug (\d+): (ON|OFF)$", re.MULTILINE)


class Vpcd:
    """Its dialogue, as powerman's `vpc.dev` has it."""

    reads_back = True

    def __init__(self, session: Session, spec: PduSpec) -> None:
        self._session = session
        self._line = CommandLine(session, spec, GRAMMAR)

    def sync(self) -> None:
        self._line.sync()
        self._ask("login")

    def status(self) -> dict[int, bool]:
        states = {int(n) + 1: state == "ON" for n, state in ROW.findall(self._ask("stat *"))}
        if list(states) != list(range(1, OUTLETS + 1)):
            raise self._session.trouble("status", "no whole table")
        return states

    def switch(self, outlet: int, *, on: bool) -> None:
        self._ask(f"{'on' if on else 'off'} {outlet - 1}")

    def _ask(self, command: str) -> str:
        answer = self._line.command(command, deadline_s=5, is_answer=lambda heard: b"\n" in heard)
        if not re.search(rb"^\d+ OK$", answer, re.MULTILINE):
            raise self._session.trouble(command, f"refused: {self._session.plain(answer)}")
        return answer.decode("latin-1")


@pytest.fixture(autouse=True)
def own_locks(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    """Lock files of these tests' own, away from those of a run on this machine."""
    monkeypatch.setattr(port_module, "LOCK_DIRECTORY", tmp_path)


@pytest.fixture
def vpcd(tmp_path: Path) -> Callable[[], AbstractContextManager[None]]:
    """Starts one, all of whose outlets are off; each is another unit on the same port."""

    def start() -> AbstractContextManager[None]:
        port = f"PTY,link={tmp_path / 'pdu'},raw,echo=0,wait-slave"
        return running("socat", port, f"EXEC:{found('vpcd')}")

    return start


@pytest.fixture
def pdu(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Pdu]:
    """Leadline's PDU on that port, which need not be there yet."""

    def make_vpcd(session: Session, spec: PduSpec) -> Family:
        return Vpcd(session, spec)

    monkeypatch.setattr(pdu_module, "make_family", make_vpcd)
    spec = PduSpec(
        name="a",
        family="baytech-rpc3",
        port=str(tmp_path / "pdu"),
        end_of_line="lf",
        outlets=OUTLETS,
    )
    with Pdu(spec, Session(lambda: open_port(spec), where(spec))) as pdu:
        yield pdu


def test_on_off_and_status_by_readback(
    vpcd: Callable[[], AbstractContextManager[None]], pdu: Pdu
) -> None:
    with vpcd():
        pdu.session.reopen(STARTS_S)
        assert pdu.status() == dict.fromkeys(range(1, OUTLETS + 1), False)
        for on in (True, False, True):
            done = pdu.switch(4, on)
            assert (done.on, done.verified, done.attempts) == (on, True, 1)
            assert pdu.status() == {n: n == 4 and on for n in range(1, OUTLETS + 1)}


def test_a_command_that_is_refused_is_told_again_and_then_reported(
    vpcd: Callable[[], AbstractContextManager[None]], pdu: Pdu, monkeypatch: pytest.MonkeyPatch
) -> None:
    """It answers `BADVAL`, and the outlet stays as it was."""
    monkeypatch.setattr(pdu_module, "READBACK_S", 0.2)
    monkeypatch.setattr(command_line, "SYNC_QUIETS_S", (0.1, 0.3, 0.8))
    monkeypatch.setattr(Vpcd, "switch", lambda self, outlet, *, on: self._ask("on 99"))
    with vpcd():
        pdu.session.reopen(STARTS_S)
        with pytest.raises(RigTrouble, match=r"outlet 4: still off after 3 .*BADVAL: 99"):
            pdu.switch(4, True)


def test_unplugged_and_back(vpcd: Callable[[], AbstractContextManager[None]], pdu: Pdu) -> None:
    """What comes back is another vpcd, with nobody logged in: the outlet is off, and is told so."""
    with vpcd():
        pdu.session.reopen(STARTS_S)
        pdu.switch(4, True)
    with pytest.raises(RigTrouble, match=r": open: there is no such port"):
        pdu.status(deadline_s=0.3)
    with vpcd():
        assert pdu.status() == dict.fromkeys(range(1, OUTLETS + 1), False)
        assert pdu.switch(4, True).verified
        assert pdu.status()[4]
