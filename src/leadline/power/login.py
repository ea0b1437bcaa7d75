"""Logging in on a serial line: at most once for certain, for devices lock accounts.

A password goes out only where the device asks for it, after it has taken the username in
the same conversation, and as a secret of the session.
"""

import re
from dataclasses import dataclass, field

from leadline.errors import RigTrouble
from leadline.inventory.pdu import NO_PASSWORD_HERE, PduSpec
from leadline.power.credentials import password
from leadline.power.session import Session

STEP = "login"
# A password that was sent so often without a prompt after it is not sent again.
PASSWORDS = 2


class LoginRefused(RigTrouble):
    """The device does not let us in.  No password is sent to it again by this process.

    Not a LineTrouble, which would be mended by trying again until the account is locked.
    """


@dataclass(frozen=True)
class LoginWords:
    """How a family asks for a login and refuses one.

    `username` and `password` must match at the end of what was heard only (`\\Z`).
    """

    password: re.Pattern[bytes]
    username: re.Pattern[bytes] | None = None
    denied: re.Pattern[bytes] | None = None  # the username or password was wrong
    locked: re.Pattern[bytes] | None = None  # nobody can log in now
    suffix: bytes = b""  # typed after every password: which interface is wanted

    def asks(self, heard: bytes) -> bool:
        """Whether a username or a password is asked for."""
        return any(word.search(heard) for word in (self.username, self.password) if word)

    def refuses(self, heard: bytes) -> bool:
        """Whether it says that a login failed."""
        return any(word.search(heard) for word in (self.denied, self.locked) if word)


@dataclass(frozen=True)
class Reply:
    """What is sent next, with its Enter; `secret` is the password in it."""

    data: bytes = field(repr=False)
    secret: bytes = field(default=b"", repr=False)


class Login:
    """What has been tried on one device; lives as long as its session does."""

    def __init__(self, session: Session, spec: PduSpec, words: LoginWords) -> None:
        self._session = session
        self._spec = spec
        self._words = words
        self._passwords = 0  # sent since the last prompt
        self._refused: LoginRefused | None = None
        self.begin()

    def begin(self) -> None:
        """A new attempt to find the prompt.  Raises the LoginRefused that was the last word."""
        if self._refused is not None:
            raise self._refused
        self._named = False  # the username was what we sent last
        self._tried = False  # the password was sent
        self._asked_again = False

    def done(self) -> None:
        """A prompt came: whatever was sent, was right."""
        self._passwords = 0

    def reply(self, heard: bytes) -> Reply | None:
        """What to answer to a question for a login; None where there is none.

        Raises LoginRefused once the device has refused the password, LineTrouble when
        it asks out of turn or for what the rig file does not give.
        """
        words = self._words
        named, self._named = self._named, False
        if words.locked and words.locked.search(heard):
            raise self._refuse(f"locked out ({self._quoted(heard)}); wait, or unlock it by hand")
        if self._tried and words.denied and words.denied.search(heard):
            raise self._denied(heard)
        if not words.asks(heard):
            return None
        enter = Reply(self._spec.enter)
        if self._tried:
            # Perhaps not the answer to our password, but to something before: ask once more.
            if self._asked_again:
                raise self._denied(heard)
            self._asked_again = True
            return enter
        if words.username and words.username.search(heard):
            if named:
                raise self._session.trouble(STEP, "the device asks for the username twice")
            self._named = True
            return self._username(heard)
        if self._spec.username is not None and words.username and not named:
            return enter  # whose password it asks for is not known: back to the username
        self._tried = True
        return self._password(heard)

    def _username(self, heard: bytes) -> Reply:
        if self._spec.username is None:
            raise self._not_given(heard, f"username, and one of {NO_PASSWORD_HERE}")
        return Reply(self._spec.username.encode() + self._spec.enter)

    def _password(self, heard: bytes) -> Reply:
        secret = password(self._spec)
        if secret is None:
            raise self._not_given(heard, f"one of {NO_PASSWORD_HERE}")
        if self._passwords == PASSWORDS:
            raise self._refuse(
                f"{PASSWORDS} times no prompt came after the password, and it is not sent again, "
                "for devices lock accounts; log in by hand to see what is wrong"
            )
        self._passwords += 1
        return Reply(secret + self._words.suffix + self._spec.enter, secret)

    def _not_given(self, heard: bytes, give: str) -> RigTrouble:
        return self._session.trouble(
            STEP,
            f"the unit asks {self._quoted(heard)}: turn its access control off, or give {give}",
        )

    def _denied(self, heard: bytes) -> LoginRefused:
        return self._refuse(
            f"the device refuses the username or password ({self._quoted(heard)}); check "
            "`username`, what password_env, password_file or password_command gives, and the "
            "device's own accounts. It was tried once, and is not tried again"
        )

    def _refuse(self, why: str) -> LoginRefused:
        self._refused = LoginRefused(f"{self._session.label}: {STEP}: {why}")
        return self._refused

    def _quoted(self, heard: bytes) -> str:
        return self._session.plain(heard, 40)
