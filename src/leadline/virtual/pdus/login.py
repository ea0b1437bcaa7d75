"""The logins of virtual PDUs: everywhere the same account."""

from collections.abc import Mapping

from leadline.virtual.pdus.faults import Faults

USERNAME = "tester"
PASSWORD = "quartz-lamp"
PASSWORD_ENV = "LEADLINE_VIRTUAL_PDU_PASSWORD"
"""The variable that holds it, for the rig file that a unit's SPEC stands for."""
SPEC: Mapping[str, object] = {"username": USERNAME, "password_env": PASSWORD_ENV}
PASSWORD_ONLY: Mapping[str, object] = {"password_env": PASSWORD_ENV}


def right(username: str | None, password: bytes, faults: Faults) -> bool:
    """Whether a login is let in; `username` is None where the unit asks for none."""
    return (
        username in (None, USERNAME)
        and password.decode("latin-1") == PASSWORD
        and not faults.password_refused
        and not faults.locked_out
    )
