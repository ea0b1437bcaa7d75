"""Take a stack of ours off its drives: at the end of its test, or what a dead run left of one.

What is there is looked at, and not what should be: of a build that was killed half way any
layers may be there.  Each is known by the mark in its superblock, and what has another one is
left alone.  The data of each layer is lost with it, as its drives' was when it was built.
"""

import json
from collections.abc import Sequence
from dataclasses import dataclass

from leadline.drive.in_use import parse_mounts
from leadline.drive.text import plain
from leadline.errors import RigTrouble
from leadline.host.connection import FileTrouble, Host
from leadline.host.trouble import ProgramFailed
from leadline.stack.build import DEADLINE_S, settle
from leadline.stack.mark import Mark, mark_in

TRIES = 5
"""udev may put a stopped array together again, or hold a device open, just then."""


@dataclass(frozen=True, slots=True)
class Found:
    """One signature on a device, as wipefs names it."""

    kind: str
    uuid: str

    def __str__(self) -> str:
        return f"{self.kind} {self.uuid}".strip()


def dismantle(host: Host, mark: Mark, drives: Sequence[str]) -> list[str]:
    """Take everything of `mark` off the drives of these kernel names.

    What is on them and not of this mark is left, and told, a sentence for each drive.  Raises
    RigTrouble where something of ours cannot be taken down.
    """
    for left in reversed(range(TRIES)):
        settle(host)
        try:
            return _dismantled(host, mark, drives)
        except ProgramFailed:
            if not left:
                raise
    raise AssertionError("the last try returns or raises")


def marks_on(host: Host, drive: str) -> set[Mark]:
    """The marks of ours on a drive (a kernel name) on which there is no signature besides."""
    marks = {mark_in(each.uuid) for each in signatures(host, drive)}
    return set() if None in marks else {mark for mark in marks if mark}


def signatures(host: Host, name: str) -> list[Found]:
    """The signatures on a block device of this kernel name."""
    argv = ["wipefs", "--no-act", "--json", f"/dev/{name}"]
    return parse_found(host.name, host.run(argv, deadline=DEADLINE_S).stdout)


def parse_found(host_name: str, output: bytes) -> list[Found]:
    """The signatures in wipefs' JSON; it prints nothing where there are none."""
    if not output.strip():
        return []
    try:
        rows = json.loads(output)["signatures"]
        return [Found(plain(row["type"]), plain(row.get("uuid") or "")) for row in rows]
    except (ValueError, KeyError, TypeError) as error:
        raise RigTrouble(
            f"{host_name}: wipefs printed something other than its JSON ({error!r}); "
            "install util-linux 2.33 or newer there"
        ) from error


def _dismantled(host: Host, mark: Mark, drives: Sequence[str]) -> list[str]:
    """From the top down; of each device the mark goes first, so that nothing takes it up again."""
    _unmount(host, mark)
    for volume in _volumes(host, mark):
        _wipe(host, mark, volume)
        _run(host, "dmsetup", "remove", "--retry", mark.volume)
        settle(host)
    for array in _arrays(host, mark, drives):
        _wipe(host, mark, array)
        settle(host)
        _run(host, "mdadm", "--stop", f"/dev/{array}")
    said = [_wipe(host, mark, drive) for drive in drives]
    settle(host)
    return [sentence for sentence in said if sentence]


def _unmount(host: Host, mark: Mark) -> None:
    mounts = host.read_file("/proc/self/mountinfo").decode("utf-8", "replace")
    if any(mount.point == mark.mount_point for mount in parse_mounts(mounts)):
        _run(host, "umount", mark.mount_point)
    if host.exists(mark.mount_point):
        host.remove_dir(mark.mount_point)


def _volumes(host: Host, mark: Mark) -> list[str]:
    """The kernel's name of our logical volume, if there is one."""
    names = [name for name in host.list_dir("/sys/block") if name.startswith("dm-")]
    paths = {name: f"/sys/block/{name}/dm/name" for name in names}
    read = host.read_files(list(paths.values()))
    ours = mark.volume.encode()
    return [name for name, path in paths.items() if (read[path] or b"").strip() == ours]


def _arrays(host: Host, mark: Mark, drives: Sequence[str]) -> list[str]:
    """Arrays of which one of these drives is a member, by a mark of ours that is on it."""
    ours = [drive for drive in drives if marks_on(host, drive) == {mark}]
    holders = {holder for drive in ours for holder in _holders(host, drive)}
    return sorted(holder for holder in holders if holder.startswith("md"))


def _holders(host: Host, name: str) -> list[str]:
    try:
        return host.list_dir(f"/sys/block/{name}/holders")
    except FileTrouble:
        return []  # the drive is gone


def _wipe(host: Host, mark: Mark, name: str) -> str:
    """Take our mark off a device; "", or a sentence on what is there and not ours."""
    found = signatures(host, name)
    foreign = [each for each in found if mark_in(each.uuid) != mark]
    if foreign:
        listed = ", ".join(dict.fromkeys(map(str, foreign)))
        return f"{host.name}: /dev/{name} holds {listed}, which is not ours: it is left alone"
    if found:
        _run(host, "wipefs", "--all", "--quiet", f"/dev/{name}")
    return ""


def _run(host: Host, *argv: str) -> None:
    host.run(argv, deadline=DEADLINE_S)
