"""Passwords of PDUs: fetched where they are kept, tried once, and standing nowhere."""

import os
import sys
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st
from pydantic import ValidationError

from leadline.errors import Misuse, RigTrouble
from leadline.host.connection import open_host
from leadline.host.journal import Journal, dead_entries
from leadline.inventory.pdu import FAMILY_NAMES, PduSpec
from leadline.inventory.rig import HostSpec, load_rig
from leadline.power.byte_log import ByteLogs
from leadline.power.credentials import password
from leadline.power.login import LoginRefused
from leadline.power.masking import SHOWN, Mask
from leadline.power.outlets import ENTRY, lent
from leadline.power.pdu import open_pdu
from leadline.power.supplies import Supply
from leadline.virtual.pdus import login
from leadline.virtual.pdus.apc_menu import Aos3
from leadline.virtual.pdus.baytech import Rpc3NcWithLogin
from leadline.virtual.pdus.faults import Faults
from leadline.virtual.pdus.line import Unit
from leadline.virtual.pdus.pty import VirtualPdu
from selftests.pdu_line import bench
from selftests.power_world import quick

__all__ = ["quick"]  # a fixture

SECRET = login.PASSWORD


def spec(**entry: object) -> PduSpec:
    given = {"name": "a", "family": "baytech-rpc3", "port": "/dev/x"}
    return PduSpec.model_validate(given | entry)


# Where it is kept.


def test_each_place_gives_its_first_line(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PDU", f"{SECRET}\n")
    file = tmp_path / "secret"
    file.write_text(f"{SECRET}\nand a note\n")
    file.chmod(0o600)
    program = [sys.executable, "-c", f"print('{SECRET}')"]
    assert password(spec(password_env="PDU")) == SECRET.encode()
    assert password(spec(password_file=str(file))) == SECRET.encode()
    assert password(spec(password_command=program)) == SECRET.encode()
    assert password(spec()) is None


@pytest.mark.parametrize("mode", [0o640, 0o604, 0o620, 0o644])
def test_a_file_that_others_may_use_is_refused(tmp_path: Path, mode: int) -> None:
    file = tmp_path / "secret"
    file.write_text(SECRET)
    file.chmod(mode)
    with pytest.raises(Misuse, match=rf"PDU 'a' .*by others .*chmod 600 {file}") as caught:
        password(spec(password_file=str(file)))
    assert SECRET not in str(caught.value)


@pytest.mark.parametrize(
    ("entry", "error", "says"),
    [
        ({"password_env": "NO_SUCH_VARIABLE_HERE"}, Misuse, "NO_SUCH_VARIABLE_HERE is empty or"),
        ({"password_file": "/nonexistent/file"}, Misuse, "file cannot be read: No such file"),
        ({"password_command": ["no-such-program-x"]}, Misuse, "there is no program no-such"),
        ({"password_command": ["false"]}, RigTrouble, "password: false ended with 1"),
        ({"password_command": ["true"]}, Misuse, "output of true is empty"),
        ({"password_command": ["printf", "a\\033b"]}, Misuse, "cannot be typed"),
    ],
)
def test_a_place_without_one(entry: dict[str, object], error: type[Exception], says: str) -> None:
    with pytest.raises(error, match=rf"PDU 'a' \(port /dev/x\): password: .*{says}|{says}"):
        password(spec(**entry))


def test_what_a_failing_program_printed_is_not_shown() -> None:
    program = ["sh", "-c", f"echo {SECRET}; echo {SECRET} >&2; exit 3"]
    with pytest.raises(RigTrouble, match="sh ended with 3") as caught:
        password(spec(password_command=program))
    assert SECRET not in str(caught.value)


# In the rig file.

RIG = """\
rig: bench
host: {reach: local}
controllers: [{name: c, driver: ahci}]
pdus:
  - name: p
    family: baytech-rpc3
    port: /dev/ttyS0
    ENTRY
drives:
  - {slot: a, model: M, serial: S, firmware: "1", controller: c, protocol: sata}
"""


@pytest.mark.parametrize(
    ("entry", "says"),
    [
        (
            f"password: {SECRET}",
            "rig.yaml:8: pdus[p].password: found a password in the rig file, expected "
            "password_env, password_file or password_command, which say where the password is kept",
        ),
        (
            "password_env: A\n    password_file: b",
            "rig.yaml:5: pdus[p]: found 2 places of the password, expected one of password_env, ",
        ),
        ("username: u", "pdus[p]: found a username without a password, expected one of"),
        ("password_env: a b", 'found "a b", expected the name of an environment variable'),
        ("password_command: pass", "expected a list: a program and its arguments"),
        ("dialogue: {on: a, off: b}", "found family baytech-rpc3 with a dialogue, expected"),
        ("end_of_line: cr+lf", 'found "cr+lf", expected cr, lf or crlf'),
    ],
)
def test_what_an_entry_cannot_be(tmp_path: Path, entry: str, says: str) -> None:
    (tmp_path / "rig.yaml").write_text(RIG.replace("ENTRY", entry))
    with pytest.raises(Misuse) as caught:
        load_rig(tmp_path / "rig.yaml")
    assert says in str(caught.value)
    assert SECRET not in str(caught.value)
    assert len(str(caught.value).splitlines()) == 1
    # A traceback would show what stands behind an error, too.
    assert caught.value.__context__ is None


@pytest.mark.parametrize(
    "entry",
    [
        {"family": "lcus", "password_env": "A"},
        {"family": "lcus", "outlets": 9},
        {"family": "wti-rps10", "outlets": 11},
        {"family": "described"},
        {"family": "described", "dialogue": {"on": "on {slot}", "off": "off"}},
        {"password": SECRET},
    ],
)
def test_a_spec_fits_its_family(entry: dict[str, object]) -> None:
    with pytest.raises(ValidationError):
        spec(**entry)


def test_a_family_brings_its_line() -> None:
    quarch = spec(family="quarch")
    assert (quarch.baud, quarch.enter, quarch.outlets) == (19200, b"\r\n", 1)
    assert spec(family="wti-rps10").outlets == 10
    rpc3 = spec(baud="2400", end_of_line="lf")
    assert (rpc3.baud, rpc3.enter, rpc3.outlets) == (2400, b"\n", 8)
    described = spec(family="described", dialogue={"on": "{outlet}+", "off": "{outlet}-"})
    for one in (quarch, rpc3, described, *(spec(family=f) for f in FAMILY_NAMES[:-1])):
        assert PduSpec.model_validate(one.model_dump(mode="json")) == one


# On the line.


def test_a_login_without_credentials_says_what_to_give() -> None:
    entry = {"username": None, "password_env": None}
    with bench(None, "baytech-rpc3", Rpc3NcWithLogin, **entry) as (pdu, line):
        with pytest.raises(RigTrouble, match=r"login: the unit asks .*username>.*password_env"):
            pdu.status(deadline_s=1)
        assert passwords(line.written) == 0


def test_somebody_elses_password_prompt_is_not_answered() -> None:
    """The username that was given there is not known: it is given anew first."""
    faults = Faults(left_at="password", leftover=b"Enter password>")
    with bench(faults, "baytech-rpc3", Rpc3NcWithLogin) as (pdu, line):
        pdu.status()
        assert passwords(line.written) == 1
        assert line.written.index(login.USERNAME.encode()) < line.written.index(SECRET.encode())


def test_a_session_that_ends_is_logged_in_again() -> None:
    with bench(None, "baytech-rpc3", Rpc3NcWithLogin) as (pdu, line):
        pdu.switch(3, False)
        line.dialogue.begin()
        assert pdu.switch(3, True).verified
        assert passwords(line.written) == 2


def test_a_password_that_gets_lost_is_not_sent_for_ever() -> None:
    with bench(None, "baytech-rpc3", Rpc3NcWithLogin) as (pdu, line):
        line.instead = lambda data: b"" if SECRET.encode() in data else None
        with pytest.raises(LoginRefused, match=r"login: 2 times no prompt came"):
            pdu.status(deadline_s=100)
        assert passwords(line.written) == 2


def test_a_late_answer_to_something_before_is_no_refusal() -> None:
    with bench(None, "baytech-rpc3", Rpc3NcWithLogin) as (pdu, line):

        def late(data: bytes) -> bytes | None:
            if SECRET.encode() not in data:
                return None
            list(line.dialogue.hear(data))  # it has been let in, and what it said is lost
            return b"\r\nEnter username>"

        line.instead = late
        assert pdu.switch(3, False).verified
        assert passwords(line.written) == 1


def passwords(written: bytes) -> int:
    return written.count(SECRET.encode())


def test_nothing_that_is_kept_holds_it(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, quick: None
) -> None:
    """The byte log, its file, the journal, errors: on a real pty, before a unit that echoes it."""
    monkeypatch.setenv(login.PASSWORD_ENV, SECRET)
    entry = spec(port=str(tmp_path / "pdu"), outlets=4, **login.SPEC)
    folder = str(tmp_path / "journal")
    faults = Faults(password_echoed=True)
    with (
        VirtualPdu(
            4, lambda *_: None, tmp_path / "pdu", unit=Rpc3NcWithLogin, faults=faults
        ) as unit,
        ByteLogs(tmp_path / "serial", pytest.fail) as logs,
        open_pdu(entry, log=logs.of(entry)) as pdu,
        open_host(HostSpec(reach="local")) as here,
    ):
        journal = Journal(here, "run", directory=folder)
        with pytest.raises(RuntimeError), lent(journal, [Supply(pdu, 2)], lambda: None):
            pdu.switch(2, False)
            kept = "".join(file.read_text() for file in (tmp_path / "journal").iterdir())
            raise RuntimeError
        assert unit.contacts[2], "which the journal is for"
    assert login.PASSWORD_ENV in kept
    (logged,) = [file.read_text() for file in (tmp_path / "serial").iterdir()]
    assert "<password>" in logged
    assert SECRET not in kept + logged


def test_a_dead_runs_record_is_enough_to_log_in(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, quick: None
) -> None:
    monkeypatch.setenv(login.PASSWORD_ENV, SECRET)
    entry = spec(port=str(tmp_path / "pdu"), outlets=4, **login.SPEC)
    folder = str(tmp_path / "journal")
    with open_host(HostSpec(reach="local")) as dying:
        record = {"outlets": [{"pdu": entry.model_dump(mode="json"), "outlet": 2}], "rescan": None}
        Journal(dying, "dead", directory=folder).open_entry(ENTRY, record)
    with (
        VirtualPdu(4, lambda *_: None, tmp_path / "pdu", unit=Rpc3NcWithLogin, on=[]) as unit,
        open_host(HostSpec(reach="local")) as here,
    ):
        (dead,) = dead_entries(here, ENTRY, directory=folder)
        again = PduSpec.model_validate(dead.data["outlets"][0]["pdu"])
        with open_pdu(again) as pdu:
            assert pdu.switch(2, True).verified
        assert unit.contacts[2]


# The mask.

pieces = st.lists(
    st.sampled_from(["a", "p", "ap", "c", "apc", "apcapc", "\r\n", "> "]), max_size=12
)


@given(pieces, st.sampled_from(["apc", "aapc", "a", "pp"]))
def test_however_it_is_cut_the_secret_is_not_shown(said: list[str], secret: str) -> None:
    mask = Mask()
    mask.hide(secret.encode())
    shown = b"".join([*(mask.next(piece.encode()) for piece in said), mask.rest()])
    whole = mask.whole("".join(said).encode())
    assert shown == whole
    for text in whole.split(SHOWN):
        assert secret.encode() not in text
    assert secret.encode() not in whole.replace(SHOWN, b"*")


@given(st.lists(st.binary(max_size=5)))
def test_without_a_secret_everything_passes_at_once(said: list[bytes]) -> None:
    mask = Mask()
    assert [mask.next(piece) for piece in said] == said
    assert mask.rest() == b""


@pytest.mark.parametrize("unit", [Rpc3NcWithLogin, Aos3])
def test_an_error_quotes_the_device_without_it(unit: type[Unit]) -> None:
    """Nor without what is typed after it, which an APC's command line is asked for by."""
    with bench(None, "apc-cli" if unit is Aos3 else "baytech-rpc3", unit) as (pdu, line):
        answer = b"\r\nno such account: " + SECRET.encode() + b", sorry"
        line.instead = lambda data: answer if SECRET.encode() in data else None
        with pytest.raises(RigTrouble) as caught:
            pdu.status(deadline_s=1)
    assert SECRET not in str(caught.value)
    assert SECRET not in os.fsdecode(b"".join(c.data for c in pdu.session.log.chunks))
