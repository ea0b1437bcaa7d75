"""What becomes of a request: chance and the profile's faults, drawn as it arrives."""

from __future__ import annotations

import errno
import random
from collections.abc import Sequence
from typing import NamedTuple

from leadline.virtual.profile import SECTOR_BYTES, Profile
from leadline.virtual.scheduling import Op
from leadline.virtual.slowing import Arrival, noise, slowings


class Fate(NamedTuple):
    """What becomes of one request."""

    noise: float
    """How many times as long its work takes by chance."""
    stretch: float
    """And how many times as long as that it takes for what slows it."""
    error: int
    """An errno, 0 for none."""
    lba: int
    """Whose data it is answered with."""
    delay_ns: int = 0
    """How long it hangs beyond that."""
    starved_ns: int = 0
    """How long it is passed over while there is anything else to do."""


class Fates:
    """Draws the fate of each request in the order of their arrival."""

    def __init__(self, profile: Profile, *, cycle: int, power_on_ns: int) -> None:
        self._faults = faults = profile.faults
        self._sectors = profile.capacity_bytes // SECTOR_BYTES
        self._noise = noise(profile.distribution, profile.jitter)
        self._slowings = slowings(profile, cycle=cycle, power_on_ns=power_on_ns)
        self._random = random.Random(f"{profile.seed}:{cycle}")
        self._is_plain = not self._slowings and (
            faults.large_requests,
            faults.end_of_range,
            faults.wrong_data,
            faults.starvation,
        ) == (None, None, None, None)
        # A course of its own for each, so that switching one on leaves the others' as it was.
        self._starving = random.Random(f"{profile.seed}:{cycle}:starvation")
        self._misreading = random.Random(f"{profile.seed}:{cycle}:wrong data")

    def of(self, op: Op, lba: int, sectors: int, now_ns: int, depth: int) -> Fate:
        """The next request's.

        Every request draws the same three numbers first, for the reason given above.
        """
        normal, tail, failure = self._random.gauss(), self._random.random(), self._random.random()
        faults = self._faults
        fails = op == "read" and (
            failure < faults.read_error_rate or _touches(faults.bad_lbas, lba, sectors)
        )
        error = errno.EIO if fails else 0
        if self._is_plain:
            return Fate(self._noise(normal), 1.0, error, lba)
        arrival = Arrival(op, lba, sectors, now_ns, depth, tail)
        stretch = 1.0
        for slow in self._slowings:
            stretch *= slow(arrival)
        delay_s = 0.0
        large, end = faults.large_requests, faults.end_of_range
        if large is not None and sectors * SECTOR_BYTES > large.over_kib * 1024:
            error, delay_s = errno.EIO if large.fails else error, large.seconds
        if end is not None and lba + sectors > self._sectors - end.sectors:
            delay_s += end.seconds
        return Fate(
            noise=self._noise(normal),
            stretch=stretch,
            error=error,
            lba=self._source(arrival),
            delay_ns=round(delay_s * 1e9),
            starved_ns=self._starved_ns(arrival),
        )

    def _source(self, arrival: Arrival) -> int:
        fault = self._faults.wrong_data
        if fault is None or arrival.op != "read":
            return arrival.lba
        draw, place = self._misreading.random(), self._misreading.random()
        if not arrival.queued or draw * fault.one_in >= 1.0:
            return arrival.lba
        blocks = self._sectors // arrival.sectors
        return int(place * blocks) * arrival.sectors

    def _starved_ns(self, arrival: Arrival) -> int:
        fault = self._faults.starvation
        if fault is None:
            return 0
        starves = self._starving.random() * fault.one_in < 1.0 and arrival.queued
        return round(fault.seconds * 1e9) if starves else 0


def _touches(places: Sequence[int], lba: int, sectors: int) -> bool:
    return any(lba <= place < lba + sectors for place in places)
