"""What of the conditions around a batch makes its slices count for nothing."""

from dataclasses import dataclass

from leadline.drive.conditions import Conditions, IoCounts
from leadline.drive.finding import (
    ERRORS,
    LINK_LIMIT,
    MERGED,
    NEIGHBOUR,
    OTHER_COMMANDS,
    OTHER_IO,
    PAGE_CACHE,
    SETTINGS_MOVED,
    STEAL_TIME,
    TEMPERATURE,
    Finding,
    verdict_on,
)
from leadline.drive.steal import taken_between

MOVED_K = 10.0
NEIGHBOUR_SHARE = 0.05
"""What the disks beside it may do of what the drive does: a system disk writes its logs."""
NEIGHBOUR_FEW = 16
"""So many requests of theirs are nothing, however idle the drive itself was."""
OTHER_SHARE = 0.01
OTHER_FEW_SECTORS = 128
"""64 KiB: one look of udev at a drive that was opened."""
OTHER_COMMANDS_FEW = 2
"""drivetemp polled by somebody else is one; a SMART poll by smartctl is five and more."""
LINK_SHARE = 0.9


@dataclass(frozen=True)
class Asked:
    """What a batch asked of the drive, in bytes; `bytes_per_s` is that of its fastest slice.

    A `sequential` load is meant to fill the link: what it loses is seen even so.  `unsure` is
    the share of those bytes by which a layer above the drive may move more, or less.
    """

    bytes: int
    bytes_per_s: float
    sequential: bool = False
    unsure: float = 0.0

    @property
    def sectors(self) -> int:
        """Sectors of 512 bytes."""
        return self.bytes // 512


def compare(
    pinned: Conditions, before: Conditions, after: Conditions, asked: Asked
) -> tuple[Finding, ...]:
    """Hold the conditions around one batch side by side: a finding for each check there is.

    `pinned` are those at which the settings were pinned: a setting may also move between
    two batches.
    """
    io = _since(before.io, after.io)
    return (
        _merged(io),
        _neighbour(before, after, io),
        _settings_moved(pinned, before, after),
        _temperature(before, after),
        _other_io(io, asked),
        _page_cache(io, asked),
        _other_commands(before, after, io),
        _errors(before, after),
        _link_limit(after, asked),
        _steal_time(before, after),
    )


def _since(before: IoCounts | None, after: IoCounts | None) -> IoCounts | None:
    """What was added; None where it is not known, or the node came anew and counts from 0."""
    if before is None or after is None or after.requests < before.requests:
        return None
    return after.since(before)


_NO_STAT = "the kernel keeps no counters of this drive (queue/iostats, /sys/block/*/stat)"


def _merged(io: IoCounts | None) -> Finding:
    if io is None:
        return Finding(MERGED, "unknown", _NO_STAT)
    return verdict_on(MERGED, io.merges > 0, f"{io.merges} requests merged of {io.requests}")


def _neighbour(before: Conditions, after: Conditions, io: IoCounts | None) -> Finding:
    if io is None:
        return Finding(NEIGHBOUR, "unknown", _NO_STAT)
    said, broken = [], False
    for name, was in before.neighbours.items():
        did = _since(was, after.neighbours.get(name))
        if did is None:
            return Finding(NEIGHBOUR, "unknown", f"{name} came or went, or keeps no counters")
        many = did.requests > max(NEIGHBOUR_FEW, NEIGHBOUR_SHARE * io.requests)
        large = did.sectors > NEIGHBOUR_SHARE * io.sectors and did.requests > NEIGHBOUR_FEW
        broken |= many or large
        said.append(f"{name} did {did.requests} requests, {_megabytes(did.sectors)}")
    ours = f"; the drive itself {io.requests}, {_megabytes(io.sectors)}"
    found = "; ".join(said) + ours if said else "no other disk on this controller"
    return verdict_on(NEIGHBOUR, broken, found)


def _settings_moved(pinned: Conditions, before: Conditions, after: Conditions) -> Finding:
    moved = [
        f"{name} was {was!r} and is {look.settings.get(name, 'gone')!r}"
        for look in (before, after)
        for name, was in pinned.settings.items()
        if look.settings.get(name) != was
    ]
    if not pinned.settings:
        return Finding(SETTINGS_MOVED, "unknown", "no setting of this drive can be read")
    held = f"all {len(pinned.settings)} as they were pinned or found"
    return verdict_on(SETTINGS_MOVED, bool(moved), "; ".join(dict.fromkeys(moved)) or held)


def _temperature(before: Conditions, after: Conditions) -> Finding:
    was, now, most = before.temperature_c, after.temperature_c, after.temperature_max_c
    if was is None or now is None:
        why = "the kernel has no sensor for this drive (the drivetemp module, from Linux 5.6)"
        return Finding(TEMPERATURE, "unknown", why)
    hot = most is not None and now > most
    limit = f", its maximum {most:g}" if most is not None else ""
    found = f"{was:g} degrees Celsius before, {now:g} after{limit}"
    return verdict_on(TEMPERATURE, hot or abs(now - was) > MOVED_K, found)


def _other_io(io: IoCounts | None, asked: Asked) -> Finding:
    if io is None:
        return Finding(OTHER_IO, "unknown", _NO_STAT)
    beyond = io.sectors - asked.sectors
    share = OTHER_SHARE + asked.unsure
    broken = beyond > max(OTHER_FEW_SECTORS, share * asked.sectors)
    return verdict_on(OTHER_IO, broken, _against(io, asked))


def _page_cache(io: IoCounts | None, asked: Asked) -> Finding:
    if io is None:
        return Finding(PAGE_CACHE, "unknown", _NO_STAT)
    missing = asked.sectors - io.sectors
    share = OTHER_SHARE + asked.unsure
    return verdict_on(PAGE_CACHE, missing > share * asked.sectors, _against(io, asked))


def _against(io: IoCounts, asked: Asked) -> str:
    reached, wanted = _megabytes(io.sectors), _megabytes(asked.sectors)
    return f"{reached} went to or from the drive, {wanted} by fio's count"


def _other_commands(before: Conditions, after: Conditions, io: IoCounts | None) -> Finding:
    if io is None or before.commands is None or after.commands is None:
        return Finding(OTHER_COMMANDS, "unknown", "the kernel counts no commands of this drive")
    # The kernel's counter has 32 bits and a sign.
    commands = (after.commands - before.commands) % (1 << 32)
    beyond = commands - io.requests
    found = f"{commands} commands, of which {io.requests} were reads, writes and the like"
    return verdict_on(OTHER_COMMANDS, beyond > OTHER_COMMANDS_FEW, found)


def _errors(before: Conditions, after: Conditions) -> Finding:
    if before.errors is None or after.errors is None:
        return Finding(ERRORS, "unknown", "the kernel counts no errors of this drive (ioerr_cnt)")
    rose = after.errors - before.errors
    return verdict_on(ERRORS, rose > 0, f"{rose} commands failed")


def _link_limit(after: Conditions, asked: Asked) -> Finding:
    if after.link_bytes_per_s is None:
        return Finding(LINK_LIMIT, "unknown", "the kernel does not tell this link's speed")
    share = asked.bytes_per_s / after.link_bytes_per_s
    rate, speed = asked.bytes_per_s / 1e6, after.link_bytes_per_s / 1e6
    found = f"the fastest slice moved {rate:.1f} MB/s, {share:.0%} of the link's {speed:.0f}"
    return verdict_on(LINK_LIMIT, share > LINK_SHARE and not asked.sequential, found)


def _steal_time(before: Conditions, after: Conditions) -> Finding:
    was, now = before.processors, after.processors
    taken = None if was is None or now is None else taken_between(was, now)
    if taken is None:
        return Finding(STEAL_TIME, "unknown", "the kernel does not tell its processors' time")
    share, broken = taken
    found = f"a hypervisor kept {share:.2f} of a processor's time from the rig"
    return verdict_on(STEAL_TIME, broken, found)


def _megabytes(sectors: int) -> str:
    return f"{sectors * 512 / 1e6:.4g} MB"
