"""The device queue depth: what the kernel lets the drive hold at once.

Depth 1 means commands that are not queued (READ DMA), not queued commands one at a
time: for those the device queue depth is 32 and the offered depth 1.
"""

from leadline.drive.bind import Drive
from leadline.drive.kernel_watch import KernelHistory
from leadline.drive.ladder import CANNOT_QUEUE, Ladder, switched_off
from leadline.errors import DriveFault, Misuse, RigTrouble
from leadline.host.connection import FileTrouble, Host
from leadline.host.journal import Journal

NCQ_DEPTH = 32  # tags of NCQ, and libata's ATA_MAX_QUEUE: more is EINVAL


def path(drive: Drive) -> str:
    """The kernel attribute."""
    return f"/sys/block/{drive.name}/device/queue_depth"


def deepest(host: Host, drive: Drive) -> int:
    """How many requests the drive and its adapter hold at once, whatever the setting is now.

    An ATA drive says it in IDENTIFY word 75 (ACS-4), and one that has no NCQ is taken to hold all
    tags: the ladder says why it does not.  Another holds as many as the kernel has set, or 32.
    """
    found = host.read_files([f"/sys/class/scsi_host/{drive.controller.scsi_host}/can_queue"])
    (said,) = found.values() or (None,)
    adapter = int(said) if said and said.strip().isdigit() else 0
    own = drive.identify.ncq.queue_depth if drive.identify else (drive.queue_depth or 1)
    if drive.identify is None:
        own = max(own, NCQ_DEPTH)
    limits = [limit for limit in (own, adapter) if limit > 1]
    return min([*limits, *([NCQ_DEPTH] if drive.identify else [])])


def owed(drive: Drive, promised: int) -> int | None:
    """`promised`, the depth in the matrix, if an ATA drive's IDENTIFY word 75 (ACS-4) advertises
    less; None where it keeps its word, or has no NCQ: the ladder says that."""
    found = drive.identify
    if found is None or not found.ncq.supported or found.ncq.queue_depth >= promised:
        return None
    return promised


def read(host: Host, drive: Drive) -> int:
    """The device queue depth now, as the kernel says it.

    It may be a fiction: after ``NCQ disabled due to excessive errors`` it still reads 32.
    Raises RigTrouble when the drive's node is gone.
    """
    return int(host.read_file(path(drive)))


def set_depth(host: Host, journal: Journal, drive: Drive, depth: int, ladder: Ladder) -> None:
    """Set the device queue depth through the journal, and see that the kernel took it.

    ``ladder`` is this drive's, climbed in this boot and before anything was written: the
    first write repairs what error handling broke, so it may only come after the look.

    Raises Misuse for a depth that cannot be, DriveFault when the ladder is broken so that
    the drive cannot queue, RigTrouble when the kernel did not do as told.
    """
    if ladder.serial != drive.identity.serial or ladder.boot_id != host.boot_id():
        raise ValueError(
            f"the ladder is of drive {ladder.serial} in boot {ladder.boot_id}: climb that of "
            f"{drive.identity.serial} before the first write to its queue depth"
        )
    refuse(host.name, drive, depth, ladder)
    try:
        if read(host, drive) == depth:
            return
        journal.change(path(drive), str(depth))
    except FileTrouble as error:
        raise RigTrouble(
            f"{host.name}: the kernel refused a device queue depth of {depth} for {drive.node}: "
            f"{error}"
        ) from error
    found = read(host, drive)
    if found != depth:
        raise RigTrouble(
            f"{host.name}: the device queue depth of {drive.node} was set to {depth} and is "
            f"{found}: something else on the rig writes it, or the host adapter takes no more"
        )


def refuse(host_name: str, drive: Drive, depth: int, ladder: Ladder) -> None:
    """Raise what forbids this depth, if anything does: see :func:`set_depth`."""
    limit = NCQ_DEPTH if drive.identify else None
    if depth < 1 or (limit is not None and depth > limit):
        most = f" to {limit}" if limit else " or more"
        raise Misuse(f"{drive.spec.slot}: a device queue depth of {depth} cannot be: it is 1{most}")
    refuse_unqueued(host_name, drive, depth, ladder)
    advertised = drive.identify.ncq.queue_depth if drive.identify else depth
    if depth > advertised:
        raise Misuse(
            f"{drive.spec.slot}: {drive.identity.model} holds {advertised} commands at most "
            f"(IDENTIFY word 75), and a device queue depth of {depth} was asked for"
        )


def refuse_unqueued(host_name: str, drive: Drive, depth: int, ladder: Ladder) -> None:
    """Raise DriveFault where a broken rung of the ladder forbids this depth."""
    # Any write after error handling switched NCQ off would bring it back and hide the fault.
    reasons = ("error handling", *(CANNOT_QUEUE if depth > 1 else ()))
    broken = next((r for r in ladder.rungs if r.holds is False and r.name in reasons), None)
    if broken:
        raise DriveFault(
            f"{_who(host_name, drive)} does not queue, so its device queue depth is not set to "
            f"{depth}. {broken}"
        )


def refuse_switched_off(host_name: str, drive: Drive, history: KernelHistory) -> None:
    """Raise DriveFault where error handling has switched queueing off by now.

    The ladder is climbed once, and knows nothing of what came later; ``history`` does.
    """
    event = switched_off(drive, history)
    if event:
        raise DriveFault(
            f"{_who(host_name, drive)} does not queue any more: error handling switched it off, "
            f"the kernel log says {event.text!r}. Another write to its device queue depth would "
            "bring queueing back and hide that; boot the rig anew to test it further"
        )


def _who(host_name: str, drive: Drive) -> str:
    return f"{drive.spec.slot}: {drive.identity.model} {drive.identity.serial} on {host_name}"
