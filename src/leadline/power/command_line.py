"""A prompt and commands: what all families share that are typed to as a person would.

A family describes what its devices say (`Grammar`); `CommandLine` finds out where a
session was left, leads it to the prompt, logs in where it is asked to, and carries
out one command at a time.
"""

import re
from collections.abc import Callable
from dataclasses import dataclass

from leadline.inventory.pdu import PduSpec
from leadline.power.login import Login, LoginWords, Reply
from leadline.power.session import QUIET_S, Session

# Erases what somebody typed and never sent, for our Enter would carry it out.
ERASE = b"\x08" * 32

SYNC_SENDS = 8  # more than any way from a leftover place through a login to the prompt takes
SYNC_S = 15.0
# Listening after each sending of a sync, longer each time that nothing came, so that a slow
# unit's answers to the ones before are all in before anything is believed.
SYNC_QUIETS_S = (QUIET_S, 1.0, 2.5)
LOGIN_S = 10.0
HANDSHAKE_S = 3.0
PAGES = 20


@dataclass(frozen=True)
class Wait:
    """A place off the prompt where a device waits, told by the end of what it said.

    `answer` gets on from there, with an Enter after it unless it is a key that acts alone.
    """

    at: re.Pattern[bytes]
    answer: bytes = b""
    enter: bool = True


@dataclass(frozen=True)
class Grammar:
    """What the devices of one family say.

    All patterns are searched for in everything heard since the last sending, and those of
    places where the device waits must match at its end only (`\\Z`): elsewhere they may
    be a name that a user gave.  `questions` ask whether to do something: they get a bare
    Enter, then an N, and never a yes.  `menus` are what lies off the way, with what leads
    towards the prompt.  `wake` goes before the first Enter of a sync.
    """

    unit: str  # "a BayTech RPC3", for the question whether it is one
    prompt: re.Pattern[bytes]
    pagers: tuple[Wait, ...] = ()
    questions: re.Pattern[bytes] | None = None
    menus: tuple[Wait, ...] = ()
    login: LoginWords | None = None
    wake: bytes = ERASE
    handshake: bool = True  # an Enter before each command, for units that drop it otherwise

    def waits(self, heard: bytes) -> bool:
        """Whether the device waits for us: a prompt, pager or question is the last thing said."""
        return bool(
            self.prompt.search(heard)
            or self.asks(heard)
            or _at(self.pagers, heard)
            or self.asks_login(heard)
        )

    def admits(self, heard: bytes) -> bool:
        """Whether it has said what it makes of a password."""
        refused = self.login is not None and self.login.refuses(heard)
        return refused or self.waits(heard) or _at(self.menus, heard) is not None

    def asks(self, heard: bytes) -> bool:
        """Whether it asks whether to do something."""
        return bool(self.questions and self.questions.search(heard))

    def asks_login(self, heard: bytes) -> bool:
        """Whether it asks for a username or a password."""
        return bool(self.login and self.login.asks(heard))


def prompt_line(name: bytes) -> re.Pattern[bytes]:
    """A last line of prompts and nothing else; `name` is the pattern of one, with its spaces."""
    return re.compile(rb"(?:\A|[\r\n])[ ]*(?:" + name + rb")+\Z")


def only_prompts(name: bytes) -> re.Pattern[bytes]:
    """Prompts of that `name`, blanks, and nothing else: what was left over, before an answer.

    The blanks are told in one way only, or a long run of prompts would never end being tried.
    """
    return re.compile(rb"(?:\s*(?:" + name + rb"))+\s*\Z")


class CommandLine:
    """A session with a device that has a prompt.

    Everything may raise LineTrouble, after which `sync` finds the way again; `sync` also
    LoginRefused, after which nothing does.
    """

    def __init__(self, session: Session, spec: PduSpec, grammar: Grammar) -> None:
        self._session = session
        self._enter = spec.enter
        self._grammar = grammar
        self._login = Login(session, spec, grammar.login) if grammar.login else None

    def sync(self) -> None:
        """Find out where the session was left, and lead it to a prompt.

        Raises LineTrouble when no prompt comes.
        """
        step = "finding the prompt"
        if self._login:
            self._login.begin()
        self._session.drain(step)
        reply = Reply(self._grammar.wake + self._enter)
        silent = 0
        for _ in range(SYNC_SENDS):
            heard = self._hear(reply, step, SYNC_QUIETS_S[silent])
            if self._grammar.prompt.search(heard):
                self._arrive()
                return
            silent += not heard
            if silent == len(SYNC_QUIETS_S):
                break
            login = self._login.reply(heard) if self._login else None
            reply = login or Reply(self._way_on(heard))
        what = f"no prompt, but {self._session.plain(heard)}" if heard else "no answer"
        raise self._session.trouble(
            step,
            f"{what}; is it {self._grammar.unit}, powered, at the baud rate of the rig file?",
        )

    def _hear(self, reply: Reply, step: str, quiet_s: float) -> bytes:
        """What comes back.  A password is never followed by an Enter while it is looked at."""
        heard = b""
        if reply.secret:
            heard = self._session.ask(
                reply.data,
                self._grammar.admits,
                step="login",
                deadline_s=LOGIN_S,
                secret=reply.secret,
            )
        else:
            self._session.send(reply.data, step)
        return heard + self._session.drain(step, quiet_s=quiet_s, deadline_s=SYNC_S)

    def _arrive(self) -> None:
        if self._login:
            self._login.done()
        if self._grammar.handshake:
            self.handshake()

    def _way_on(self, heard: bytes) -> bytes:
        if self._grammar.asks(heard):
            return b"N" + self._enter
        wait = _at((*self._grammar.pagers, *self._grammar.menus), heard)
        return self._typed(wait) if wait else self._enter

    def _typed(self, wait: Wait) -> bytes:
        return wait.answer + (self._enter if wait.enter else b"")

    def handshake(self) -> None:
        """An Enter, answered by a prompt; some units drop a command that none came before."""
        self._session.ask(
            self._enter,
            lambda heard: bool(self._grammar.prompt.search(heard)),
            step="handshake",
            deadline_s=HANDSHAKE_S,
        )

    def command(
        self,
        text: str,
        *,
        deadline_s: float,
        is_answer: Callable[[bytes], bool] = lambda _: True,
        keys: bytes | None = None,
        step: str = "",
    ) -> bytes:
        """Type one command; what came, up to the prompt or the question that ends it.

        `keys` are sent instead, just as they are, where `text` only says what they do.
        `step` is what errors call it, if not by the text.  Pagers on the way are paged and
        taken out.  `is_answer` refuses what is no answer though a prompt ends it (one left
        over, before a table): then we read on.  Raises LineTrouble at the deadline, which
        holds for each page, and when the device asks for a login instead.
        """
        grammar = self._grammar
        step = step or text
        if grammar.handshake:
            self.handshake()
        heard = self._session.ask(
            text.encode() + self._enter if keys is None else keys,
            lambda heard: grammar.waits(heard) and is_answer(heard),
            step=step,
            deadline_s=deadline_s,
        )
        for _ in range(PAGES):
            pager = _at(grammar.pagers, heard)
            if pager is None:
                break
            page = self._session.ask(
                self._typed(pager), grammar.waits, step=f"{step}: next page", deadline_s=deadline_s
            )
            heard = pager.at.sub(b"", heard) + b"\n" + page
        if grammar.asks_login(heard):
            raise self._session.trouble(
                step, f"the session has ended: {self._session.plain(heard, 40)}"
            )
        return heard


def _at(waits: tuple[Wait, ...], heard: bytes) -> Wait | None:
    return next((wait for wait in waits if wait.at.search(heard)), None)
