"""A load of verified writes on a rig, from here: started, listened to, cut off, read back."""

import json
import os
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Self

from leadline.errors import DriveFault, RigTrouble
from leadline.host.connection import Host, HostLost, Running
from leadline.host.trouble import last_lines, printable
from leadline.host.wire import BOOTSTRAP, for_bootstrap, source_of
from leadline.integrity.account import Account
from leadline.integrity.check import Checked, Found, Sectors
from leadline.integrity.history import History
from leadline.integrity.intents import REMARK, IntentLog
from leadline.integrity.plan import Plan
from leadline.integrity.report import found_in
from leadline.load.overdue import held_now, inflight_of

PARTS = (
    "leadline.host.agent_bytes",
    "leadline.host.agent_files",
    "leadline.integrity.pattern",
    "leadline.integrity.plan",
    "leadline.integrity.report",
    "leadline.integrity.writer",
)
SILENCE_S = 120.0
"""libata and the SCSI layer give a request up after 30 s, and try it anew."""
LISTEN_S = 1.0
PORTION = 1000
"""Events, about, that are taken in at a time.  A drive, or a file, may be faster than we are: what
comes while all that has come is taken in would be more each time, and the load never enough."""
COMMAND_EVERY_S = 0.1


@dataclass(frozen=True)
class Target:
    """A drive as a load needs it: its node and name, and how many requests it is given.

    `command` is a CDB that is sent beside the load, with `length` bytes of data in.
    """

    host: Host
    node: str
    name: str
    in_flight: int
    command: bytes = b""
    length: int = 0

    def __str__(self) -> str:
        return f"{self.name} ({self.node} on {self.host.name})"

    @property
    def inflight(self) -> str:
        """Where the kernel counts the requests that the drive has."""
        return inflight_of(self.node)

    def start(self, plan: Plan, seconds: float) -> Running:
        """Start the load, or with 0 seconds the reading back."""
        job = {
            "device": self.node,
            "plan": list(plan),
            "in_flight": self.in_flight,
            "seconds": seconds,
            "command": self.command.hex(),
            "length": self.length,
            "every_s": COMMAND_EVERY_S,
        }
        argv = ["python3", "-IS", "-c", BOOTSTRAP, json.dumps(job)]
        return self.host.start(argv, input=for_bootstrap(source_of(PARTS)))


class Load:
    """A load under way; a context manager, which ends it.

    The write guard has admitted to writing, whoever calls.
    """

    def __init__(self, target: Target, plan: Plan, seconds: float, log: IntentLog) -> None:
        self.account = Account(plan)
        self._target = target
        self._log = log
        log.remark(f"load of at most {seconds:g} s on {target.node}")
        log.sync()
        self._running = target.start(plan, seconds)

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self._running.stop()

    def until(self, enough: Callable[[Account], bool]) -> None:
        """Listen until that is so, or the load has ended.

        Raises DriveFault where a read is wrong, a request fails, or the drive keeps what it was
        given, RigTrouble where the load ends by itself or says nothing any more, HostLost.
        """
        heard = time.monotonic()
        while not (self.account.ended or enough(self.account)):
            lines = self._running.lines(LISTEN_S, PORTION)
            self._take(lines)
            self._refuse_failures()
            if lines:
                heard = time.monotonic()
            elif self._running.ended:
                raise _broken_off(self._target, self._running)
            elif time.monotonic() - heard > SILENCE_S:
                under_way = self.account.history.under_way()
                what = f"{under_way} requests under way, and none was answered"
                raise _silent(self._target, what)

    def cut_off(self) -> None:
        """The power was cut meanwhile: take what had arrived by then.

        Requests may have failed after that, or be on their way for ever.  DriveFault where a
        read had returned what it must not, RigTrouble where the load just goes on.
        """
        self._log.remark("the power was cut")
        try:
            # All of it first: to take in what is late may last longer than a load may go on.
            late, goes_on = self._until_silence()
        finally:
            self._running.stop()
        self._account_for(late)
        if goes_on:
            raise RigTrouble(f"{self._target}: the load goes on, though its power was cut")

    def _until_silence(self) -> tuple[list[str], bool]:
        """What comes yet, and whether there is no end of it."""
        late: list[str] = []
        limit = time.monotonic() + SILENCE_S
        try:
            while not self._running.ended and time.monotonic() <= limit:
                lines = self._running.lines(LISTEN_S, PORTION)
                if not lines:
                    return late, False
                self._log.keep(lines)
                late += lines
        except HostLost:
            # That is how it ends, where the host lost its power too: what had come before counts.
            lines = self._running.lines(0.0)
            self._log.keep(lines)
            late += lines
        return late, not self._running.ended

    def _take(self, lines: list[str]) -> None:
        self._log.keep(lines)
        self._account_for(lines)

    def _account_for(self, lines: list[str]) -> None:
        try:
            for line in lines:
                self.account.take(line)
        except (DriveFault, RigTrouble) as error:
            raise type(error)(
                f"{self._target}: {error}. Request by request: {self._log.path}"
            ) from error

    def _refuse_failures(self) -> None:
        account = self.account
        under_way = account.history.under_way()
        if account.command_failed:
            raise DriveFault(f"{self._target}: it does not say any more who it is, beside a load")
        for number, errno in account.failed.items():
            request = account.plan.request(number)
            raise DriveFault(
                f"{self._target}: a {request.kind} of {request.sectors} sectors at LBA "
                f"{request.lba} failed ({os.strerror(errno)}); the kernel's log says why"
            )
        if account.ended and under_way:
            raise RigTrouble(f"{self._target}: the load ended with {under_way} requests under way")


def read_back(target: Target, account: Account, *, cut: bool, log: IntentLog) -> Checked:
    """Read the whole span and hold it against the account.

    After a cut what was not flushed may be old.  Without one, or after a shutdown, everything is
    current, and is known from now on: where writes overlapped, one of them has won.  RigTrouble
    when it cannot be read to its end, DriveFault when it is the drive that does not answer.
    """
    plan, history = account.plan, account.history
    unheard = account.is_unheard if cut else _nothing
    sectors = Sectors(plan, history.lasting if cut else history.current, history.current, unheard)
    log.remark("read back")
    with target.start(plan, 0.0) as running:
        lines: list[str] = []
        heard = time.monotonic()
        while "end" not in lines:
            lines = running.lines(LISTEN_S)
            log.keep([f"{REMARK} {line}" for line in lines])
            for lba, found in (_found_back(line, target) for line in lines if line != "end"):
                sectors.take(lba, found)
                if not cut:
                    _remember(history, lba, found)
            if lines:
                heard = time.monotonic()
            elif running.ended:
                raise _broken_off(target, running)
            elif time.monotonic() - heard > SILENCE_S:
                raise _silent(target, "nothing was answered")
    checked = sectors.checked()
    if checked.sectors != plan.sectors:
        raise RigTrouble(f"{target}: {checked.sectors} of {plan.sectors} sectors were read back")
    return checked


def _found_back(line: str, target: Target) -> tuple[int, list[Found]]:
    """What was found, and from which LBA on."""
    word, _, rest = line.partition(" ")
    lba, _, found = rest.partition(" ")
    try:
        if word != "v":
            raise ValueError(word)
        return int(lba), found_in(found)
    except ValueError as error:
        said = printable(line[:80])
        raise RigTrouble(f"{target}: reading back said what is no answer: {said!r}") from error


def _remember(history: History, lba: int, found: Sequence[Found]) -> None:
    for place, each in enumerate(found, lba):
        if isinstance(each, int):
            history.observed(place, each)


def _nothing(number: int) -> bool:
    return False


def _silent(target: Target, what: str) -> DriveFault | RigTrouble:
    """Whose fault it is that nothing is answered any more: the drive's where it has requests.

    RigTrouble, too, where the rig itself does not answer.
    """
    held = held_now(target.host, target.inflight)
    said = f"{target}: {what} in {SILENCE_S:.0f} s"
    if held:
        return DriveFault(f"{said}; the drive has {held} requests yet, and the rig answers")
    if held is None:
        return RigTrouble(f"{said}; does the drive still answer?")
    return RigTrouble(f"{said}, and the drive has none; is the rig overloaded?")


def _broken_off(target: Target, running: Running) -> RigTrouble:
    said = last_lines(running.stderr) or " nothing"
    code = "" if running.exit_code is None else f" (exit code {running.exit_code})"
    return RigTrouble(f"{target}: the load ended before its time{code}. It said:{said}")
