"""Pin the kernel's settings that would come between the load and the drive.

A slice measures the drive only when requests reach it as they were made: no scheduler
that holds them back, none merged, writes not throttled, the link awake, and as many
requests as the host adapter takes.  Everything goes through the journal and is given back.
"""

import errno
from collections.abc import Mapping

from leadline.drive.bind import Drive
from leadline.drive.text import plain
from leadline.errors import RigTrouble
from leadline.host.connection import FileTrouble, Host
from leadline.host.journal import Journal

# What each attribute is set to; one that this kernel or drive does not have is left out.
PINNED = {
    "queue/scheduler": "none",
    "queue/nomerges": "2",  # no merging at all; 1 would still try simple ones
    "queue/wbt_lat_usec": "0",  # write-back throttling off
    "link_power_management_policy": "max_performance",
}
KEPT_BY_FIRMWARE = "keep_firmware_settings"
"""The link's power as the BIOS left it: Linux 6.9 and later say so of ports that are external, and
do not take the word back (`ata_scsi_lpm_store` in drivers/ata/libata-sata.c)."""
NR_REQUESTS = "queue/nr_requests"
_UNSUPPORTED = (errno.EOPNOTSUPP, errno.EINVAL)


def pin(host: Host, journal: Journal, drive: Drive) -> Mapping[str, str]:
    """Pin every setting, and see that it holds; returns the values now, by attribute.

    ``queue/nr_requests`` among them bounds the offered depth.  To be called again after the
    drive's node came anew, for then all are as the kernel likes them.  Raises RigTrouble
    when the kernel does not take one.
    """
    paths = _paths(drive)
    before = _read(host, paths)
    # Recorded before the scheduler, so given back after it: a new scheduler resets both.
    for name in (NR_REQUESTS, "queue/wbt_lat_usec"):
        if name in before:
            journal.borrow(paths[name])
    for name, value in PINNED.items():
        if before.get(name) == KEPT_BY_FIRMWARE:
            continue
        if name in before and before[name] != value:
            _change(host, journal, paths[name], value)
    _admit_all_requests(host, journal, drive, paths[NR_REQUESTS])
    return _checked(host, paths)


def _paths(drive: Drive) -> dict[str, str]:
    paths = {name: f"/sys/block/{drive.name}/{name}" for name in (*PINNED, NR_REQUESTS)}
    adapter = f"/sys/class/scsi_host/{drive.controller.scsi_host}"
    paths["link_power_management_policy"] = f"{adapter}/link_power_management_policy"
    return paths


def _read(host: Host, paths: Mapping[str, str]) -> dict[str, str]:
    read = host.read_files(list(paths.values()))
    texts = {name: read.get(path) for name, path in paths.items()}
    return {name: setting_text(data) for name, data in texts.items() if data is not None}


def setting_text(data: bytes) -> str:
    """An attribute's value; of a choice such as ``[none] mq-deadline`` the chosen one."""
    text = plain(data.decode("ascii", "replace")).strip()
    chosen = text.partition("[")[2].partition("]")[0]
    return chosen or text


def _change(host: Host, journal: Journal, path: str, value: str) -> None:
    try:
        journal.change(path, value)
    except FileTrouble as error:
        if error.errno in _UNSUPPORTED and path.endswith("link_power_management_policy"):
            return  # a port without link power management has nothing to pin
        raise RigTrouble(f"{host.name}: {path} could not be set to {value}: {error}") from error


def _admit_all_requests(host: Host, journal: Journal, drive: Drive, path: str) -> None:
    """As many requests as the adapter takes; without a scheduler there cannot be more."""
    limit_path = f"/sys/class/scsi_host/{drive.controller.scsi_host}/can_queue"
    now = _read(host, {"now": path, "limit": limit_path})
    if int(now.get("now", 0)) < int(now.get("limit", 0)):
        _change(host, journal, path, now["limit"])


def _checked(host: Host, paths: Mapping[str, str]) -> dict[str, str]:
    after = _read(host, paths)
    moved = {
        name: after[name]
        for name, value in PINNED.items()
        if name in after and after[name] != value and name != "link_power_management_policy"
    }
    if moved:
        said = ", ".join(f"{name} is {value!r}" for name, value in moved.items())
        raise RigTrouble(
            f"{host.name}: pinned settings do not hold: {said}; does a tuning daemon (tuned, a "
            "udev rule) on the rig write them? Stop it while drives are tested"
        )
    return after
