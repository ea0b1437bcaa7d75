"""A drive in memory with N requests in its hands, which may do everything that a drive may.

What it answers is a load's lines (`leadline.integrity.account`), in an order of its own: a write
takes effect sector by sector between its issue and its acknowledgement, the cache is written
back in any order at any time.  Faults are what no drive may do.
"""

import random
from dataclasses import dataclass, field
from typing import Literal

from leadline.integrity.pattern import NOISE_BYTES, SECTOR_BYTES, stamped
from leadline.integrity.plan import FLUSH, FUA, READ, Plan, Request
from leadline.integrity.report import line_of, told

Fault = Literal[
    "none",
    "ignores flush",
    "loses a flushed write",
    "ignores FUA",
    "tears a sector",
    "misplaces a write",
    "writes a sector to two places",
    "replays an older generation",
    "returns another sector's data",
    "forgets an acknowledged write",
]
NOISE = random.Random(1).randbytes(NOISE_BYTES)
BLANK = bytes(SECTOR_BYTES)


@dataclass
class _Flying:
    number: int
    request: Request
    data: bytes = b""
    left: list[int] = field(default_factory=list)
    found: dict[int, bytes] = field(default_factory=dict)


@dataclass
class SimulatedDrive:
    """`fault_from` is the first request that the fault may befall."""

    plan: Plan
    chance: random.Random
    fault: Fault = "none"
    in_flight: int = 8
    fault_from: int = 0
    medium: dict[int, bytes] = field(default_factory=dict)
    cache: dict[int, bytes] = field(default_factory=dict)
    older: dict[int, bytes] = field(default_factory=dict)
    befell: list[int] = field(default_factory=list)
    lines: list[str] = field(default_factory=list)
    _flying: list[_Flying] = field(default_factory=list)
    _number: int = 0

    def run(self, requests: int) -> None:
        """Work until so many requests have been issued."""
        while self._number < requests:
            self._step()

    def finish(self) -> None:
        """Answer what is under way; take nothing more."""
        while self._flying:
            self._advance(self._flying[0])
        self.lines.append("end")

    def cut(self) -> None:
        """The power goes; what is under way is never answered."""
        self.cache.clear()
        self._flying.clear()
        if self.fault == "replays an older generation" and self.befell:
            lba = self.befell[0]
            self.medium[lba] = self.older[lba]

    def shut_down(self) -> None:
        """Flushed, and the power goes."""
        self._write_back(1.0)

    def sector(self, lba: int) -> bytes:
        """What a read returns."""
        return self.cache.get(lba, self.medium.get(lba, BLANK))

    def _step(self) -> None:
        if self.chance.random() < 0.02:
            self._write_back(0.1)
        if len(self._flying) < self.in_flight and self.chance.random() < 0.5:
            self._issue()
        elif self._flying:
            self._advance(self.chance.choice(self._flying))

    def _issue(self) -> None:
        self._number += 1
        request = self.plan.request(self._number)
        flying = _Flying(self._number, request, left=list(request.lbas))
        if request.kind not in (READ, FLUSH):
            flying.data = stamped(self.plan.seed, request.lba, request.sectors, self._number, NOISE)
            if self.fault == "misplaces a write" and self._befalls(request.lba):
                flying.left = [lba + 1 for lba in flying.left if lba + 1 in request.lbas]
        self.chance.shuffle(flying.left)
        self._flying.append(flying)
        self.lines.append(f"i {self._number}")

    def _advance(self, flying: _Flying) -> None:
        """A part of the work of one request, or its answer."""
        kind = flying.request.kind
        for _ in range(self.chance.randint(1, 8)):
            if flying.left:
                lba = flying.left.pop()
                if kind == READ:
                    flying.found[lba] = self._returned(lba)
                else:
                    self._take_effect(flying, lba)
        if flying.left:
            return
        self._flying.remove(flying)
        if kind == READ:
            data = b"".join(flying.found[lba] for lba in flying.request.lbas)
            words = line_of(told(data, self.plan.seed, flying.request.lba))
            self.lines.append(f"r {flying.number} {words}")
            return
        if kind == FLUSH and self.fault != "ignores flush":
            self._write_back(1.0)
        self.lines.append(f"a {flying.number}")

    def _take_effect(self, flying: _Flying, lba: int) -> None:
        place = lba - flying.request.lba
        data = flying.data[place * SECTOR_BYTES : (place + 1) * SECTOR_BYTES]
        if self.fault == "forgets an acknowledged write" and self._befalls(lba):
            return
        if self.fault == "writes a sector to two places" and self._befalls(lba):
            self.medium[lba ^ 64] = data
            self.cache.pop(lba ^ 64, None)
        if flying.request.kind == FUA and self.fault != "ignores FUA":
            self._put(lba, data)
            self.cache.pop(lba, None)
        else:
            self.cache[lba] = data

    def _returned(self, lba: int) -> bytes:
        if self.fault == "returns another sector's data" and self._befalls(lba):
            return self.sector(lba ^ 128)
        return self.sector(lba)

    def _write_back(self, share: float) -> None:
        for lba in list(self.cache):
            if self.chance.random() < share:
                self._put(lba, self.cache.pop(lba))

    def _put(self, lba: int, data: bytes) -> None:
        old = self.medium.get(lba, BLANK)
        if self.fault == "loses a flushed write" and self._befalls(lba):
            return
        if self.fault == "tears a sector" and self._befalls(lba):
            data = data[: SECTOR_BYTES // 2] + old[SECTOR_BYTES // 2 :]
        if self.fault == "replays an older generation" and self._befalls(lba):
            self.older[lba] = old
        self.medium[lba] = data

    def _befalls(self, lba: int) -> bool:
        """Whether the fault strikes now: once, after the span has been filled."""
        if self.befell or self._number < max(self.plan.fills + 40, self.fault_from):
            return False
        self.befell.append(lba)
        return True
