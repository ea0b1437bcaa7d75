"""A drive before and after its power was cut: what has changed, and whose doing that is.

A drive that comes back as another, slower, with a smaller queue or with errors counted has
failed.  But libata counts an unannounced loss of the link among the drive's errors, and
takes speed and queueing away for them: after an abrupt cut that is our own doing.
"""

from collections.abc import Collection

from leadline.drive.ask import Identity
from leadline.drive.bind import Drive, Link, another, differences
from leadline.drive.kernel_events import KernelEvent
from leadline.drive.smart import ERROR_COUNTERS, SmartSnapshot, compare
from leadline.errors import DriveFault, RigTrouble

_OUR_CUT = "our own abrupt cut counted as the drive's errors, and libata"
_REMEDY = "cycle it gracefully, or boot the rig anew"


def unchanged_but_for(before: Drive, after: Identity, expected_firmware: str | None) -> None:
    """Raise DriveFault unless it is the same drive, with the firmware that is expected.

    Without one, nothing may have changed; with one, which has been flashed, whatever else it
    brings is its own business, and is told as what the drive says of itself with it.
    """
    if expected_firmware is None:
        changed = differences(before.identity, after)
    else:
        changed = [*another(before.identity, after), *_not_come(before, after, expected_firmware)]
    if changed:
        raise DriveFault(
            f"{_who(before)}: came back from a power cycle as another drive: {'; '.join(changed)}"
        )


def _not_come(before: Drive, after: Identity, firmware: str) -> list[str]:
    if after.firmware == firmware:
        return []
    had = before.identity.firmware
    if after.firmware == had:
        return [f"firmware is still {had!r} and {firmware!r} was to come"]
    return [f"firmware was {had!r} and is {after.firmware!r}, and {firmware!r} was to come"]


def as_fast_as_before(
    before: Drive, after: Drive, *, abrupt: bool, events: Collection[KernelEvent] = ()
) -> None:
    """Raise DriveFault for a slower link, a smaller queue, or NCQ switched off.

    RigTrouble where libata took it away after an abrupt cut, and where the kernel does not
    tell it any more.  `events` are what the kernel has said of the drive since it set it up
    anew.
    """
    was, now = (_gbps(drive.link.speed) if drive.link else None for drive in (before, after))
    if was and now is None:
        raise _untold(before, "its link's speed", f"{was:g} Gb/s")
    if was and now and now < was:
        what = f"{_who(before)}: its link came back at {now:g} Gb/s and was at {was:g} Gb/s"
        if abrupt and after.link and _limited(after.link, was):
            raise RigTrouble(f"{what}: {_OUR_CUT} lowered the speed; {_REMEDY}")
        raise DriveFault(what)
    if any(event.kind == "ncq-disabled" for event in events):
        what = f"{_who(before)}: came back from a power cycle without queueing"
        if abrupt:
            raise RigTrouble(f"{what}: {_OUR_CUT} disabled NCQ; {_REMEDY}")
        raise DriveFault(f"{what}: error handling has disabled NCQ")
    if before.queue_depth and after.queue_depth is None:
        raise _untold(before, "its device queue depth", str(before.queue_depth))
    if before.queue_depth and after.queue_depth and after.queue_depth < before.queue_depth:
        raise DriveFault(
            f"{_who(before)}: came back with a device queue depth of {after.queue_depth}, and had "
            f"{before.queue_depth}"
        )


def no_errors_counted(
    before: Drive, was: SmartSnapshot, now: SmartSnapshot, *, abrupt: bool
) -> None:
    """Raise DriveFault where a counter of the drive's errors rose while its power was cycled.

    RigTrouble for errors of the link alone after an abrupt cut, which tears it off.  Phy events
    are left out: a link that is trained anew counts some.
    """
    changed = [delta for delta in compare(was, now) if delta.name in ERROR_COUNTERS]
    risen = [delta for delta in changed if delta.indicts]
    if not risen:
        return
    said = ", ".join(f"{delta.name} from {delta.before} to {delta.after}" for delta in risen)
    what = f"{_who(before)}: came back from a power cycle with more errors counted: {said}"
    if abrupt and all(delta.indicts == "link" for delta in risen):
        raise RigTrouble(
            f"{what}: our own abrupt cut may have torn a transfer; cycle it gracefully to see"
        )
    raise DriveFault(what)


def _untold(before: Drive, what: str, was: str) -> RigTrouble:
    return RigTrouble(
        f"{_who(before)}: the kernel does not tell {what} after the power cycle, which was {was}; "
        "so it cannot be compared: is the drive on the same port?"
    )


def _limited(link: Link, was: float) -> bool:
    """Whether error handling keeps the link below the speed that it had."""
    limit = _gbps(link.speed_limit)
    return link.speed_lowered > 0 or (limit is not None and limit < was)


def _gbps(speed: str) -> float | None:
    """Of sysfs' "6.0 Gbps"; None where there is none."""
    number = speed.partition(" ")[0]
    return float(number) if number.replace(".", "", 1).isdigit() else None


def _who(drive: Drive) -> str:
    return f"slot {drive.spec.slot}: {drive.identity.model} {drive.identity.serial}"
