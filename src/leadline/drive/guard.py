"""The write guard: the one place that admits to anything that could hurt data.

Before a drive is written, deleted from the kernel, cut from power or set differently, it
is held exclusively, asked again who it is through that handle, and looked over for
whatever lives on it.  While it is held, no file system, array or swap can claim it.

Writing needs two keys besides: ``writes: allowed`` on the drive in the rig file, and
``--allow-writes`` on the command line.
"""

from collections.abc import Sequence
from contextlib import ExitStack, suppress
from dataclasses import dataclass, field
from pathlib import Path
from typing import Literal, Self

from leadline.drive.ask import who_is
from leadline.drive.bind import Drive, differences
from leadline.drive.in_use import Node, Signature, Uses, uses_of, uses_of_all
from leadline.errors import Misuse, RigTrouble
from leadline.host.connection import DeadlinePassed, DeviceBusy, FileTrouble, Host, HostLost
from leadline.inventory.rig import DriveSpec

Purpose = Literal["write", "cut power", "delete", "change a setting", "flash"]

_DEEDS: dict[Purpose, str] = {
    "write": "it is not written to",
    "cut power": "its power is not cut",
    "delete": "it is not deleted from the kernel",
    "change a setting": "its settings are not changed",
    "flash": "its firmware is not changed",
}
# Signatures that come with another one, and need no name of their own.
_ACCOMPANYING = {"PMBR": "gpt"}


class Refused(Misuse):
    """The guard's refusal; ``reasons`` holds one sentence for each."""

    def __init__(self, message: str, reasons: Sequence[str]) -> None:
        super().__init__(message)
        self.reasons = tuple(reasons)


@dataclass
class Admission:
    """Leave to do one thing to one drive, which is held exclusively until released.

    A context manager.  Release it before the drive's node is to come anew: while it is
    held, the kernel keeps the old node's name.
    """

    host: Host
    drive: Drive
    purpose: Purpose
    _handle: int | None

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.release()

    @property
    def held(self) -> bool:
        """Whether it still holds the drive."""
        return self._handle is not None

    def confirm(self) -> None:
        """Ask the held drive once more who it is: before what is done later under this leave.

        What lives on it was looked into when it was admitted, and nothing could claim it since.
        Raises RigTrouble when another drive has its name, ValueError when it was released.
        """
        if self._handle is None:
            raise ValueError(f"{self.drive.node} was released: it has to be admitted anew")
        _confirm(self.host, self.drive.spec, self.drive, self._handle)

    def release(self) -> None:
        """Let others have the drive; nothing when that has been done, or the host is gone."""
        if self._handle is not None:
            handle, self._handle = self._handle, None
            # A handle ends with its connection, and a reconnected host does not know it.  One
            # whose power was cut may just be silent: over a user's shared connection for ever.
            with suppress(HostLost, FileTrouble, DeadlinePassed):
                self.host.release_device(handle)


@dataclass
class HostAdmission:
    """Leave to cut the power of a whole host, its drives held; a context manager.

    ``at_risk`` are the running system's own file systems that are mounted read-write: a
    bench's boot medium, for which a graceful shutdown is the protection.  Before an abrupt
    cut, write them out (``sync``) and expect them to recover by their journal.
    """

    drives: tuple[Drive, ...]
    at_risk: tuple[str, ...]
    _held: ExitStack = field(repr=False)

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.release()

    def release(self) -> None:
        """Let others have the drives."""
        self._held.close()


def admit(
    host: Host, spec: DriveSpec, drive: Drive, purpose: Purpose, allow_writes: bool = False
) -> Admission:
    """Admit to ``purpose`` on ``drive``, or refuse with every reason there is.

    Raises Refused (a Misuse) where the drive may not be touched; RigTrouble where its node
    is gone or has become another drive's, so that it has to be bound again.
    """
    if purpose == "write":
        _ask_for_keys(spec, allow_writes)
    try:
        handle = host.hold_device(drive.node)
    except DeviceBusy as error:
        _confirm_unheld(host, spec, drive)
        uses = uses_of(host, drive.name)
        reasons = reasons_against(spec, uses)
        if not uses:
            reasons.insert(
                0,
                "something holds it exclusively, a program or an imported zfs pool: find it with "
                f"`fuser -v {drive.node}` or `zpool list -v` on the rig and end it",
            )
        raise _refusal(host, drive, purpose, reasons) from error
    except FileTrouble as error:
        raise _moved(host, drive, f"the node cannot be opened: {error}") from error
    try:
        _confirm(host, spec, drive, handle)
        reasons = reasons_against(spec, uses_of(host, drive.name))
        if purpose == "write" and _is_read_only(host, drive):
            reasons.append("the kernel has it read-only (`blockdev --setrw` undoes that)")
        if reasons:
            raise _refusal(host, drive, purpose, reasons)
    except BaseException:
        host.release_device(handle)
        raise
    return Admission(host, drive, purpose, handle)


def admit_host(
    host: Host, drives: Sequence[Drive], *, held: Sequence[Admission] = ()
) -> HostAdmission:
    """Admit to cutting the power of a whole host, whose outlet feeds all of ``drives``.

    Each of them must be free, as for :func:`admit`; those of ``held`` have been found so
    already, and are released with the others.  A rig is a host with drives under test and
    nothing else: its boot medium is expected to be mounted, any other disk in use is a
    reason to refuse.
    """
    if is_own_machine(host):
        reason = "its outlet feeds the machine that Leadline itself runs on"
        raise Refused(
            f"{host.name}: the host's power is not cut: {reason}; steer the rig from another "
            "machine (`reach: ssh`)",
            [reason],
        )
    return _admit_all(host, drives, held, "the host's power is not cut")


def admit_rig(host: Host, drives: Sequence[Drive]) -> HostAdmission:
    """Admit to cutting any outlet of a rig while nobody knows yet what it feeds.

    Refuses as :func:`admit_host` does, for each outlet may turn out to be the host's; but
    drives of the machine that Leadline runs on are admitted: whoever asks leaves out the
    outlets that are known to feed it.
    """
    return _admit_all(host, drives, (), "no outlet is switched")


def is_own_machine(host: Host) -> bool:
    """Whether Leadline runs on it, however it was reached."""
    return host.boot_id() == _own_boot_id()


def _admit_all(
    host: Host, drives: Sequence[Drive], held: Sequence[Admission], deed: str
) -> HostAdmission:
    declared = {drive.name for drive in drives}
    kept = {admission.drive.name for admission in held}
    with ExitStack() as stack:
        for drive in drives:
            if drive.name not in kept:
                stack.enter_context(admit(host, drive.spec, drive, "cut power"))
        others = {n: uses for n, uses in uses_of_all(host).items() if n not in declared}
        reasons = [
            f"{name} is in use and not in the rig file: {uses} (unmount or detach it)"
            for name, uses in others.items()
            if uses and not uses.is_system
        ]
        if reasons:
            raise Refused(
                f"{host.name}: {deed}:{_bulleted(reasons)}\n"
                "A rig holds its boot medium and drives under test, and nothing else in use",
                reasons,
            )
        at_risk = tuple(
            mount.point
            for uses in others.values()
            for _, mount in uses.mounts
            if not mount.read_only
        )
        for admission in held:
            stack.callback(admission.release)
        return HostAdmission(tuple(drives), at_risk, stack.pop_all())


def _own_boot_id() -> str:
    """The kernel's id of this boot, here; a container or a local ssh has the host's."""
    return Path("/proc/sys/kernel/random/boot_id").read_text("ascii").strip()


def _ask_for_keys(spec: DriveSpec, allow_writes: bool) -> None:
    missing = []
    if spec.writes != "allowed":
        missing.append("the rig file does not say `writes: allowed` for it")
    if not allow_writes:
        missing.append("--allow-writes was not given")
    if missing:
        raise Refused(
            f"slot {spec.slot}: {spec.model} {spec.serial} is not written to: "
            f"{' and '.join(missing)}; both are needed, and everything on the drive will be lost",
            missing,
        )


def _confirm(host: Host, spec: DriveSpec, drive: Drive, handle: int) -> None:
    """The drive behind this handle is the one that was bound."""
    try:
        identity, _ = who_is(host, handle, drive.node, spec.protocol)
    except FileTrouble as error:
        raise _moved(host, drive, f"the node takes no SCSI commands: {error}") from error
    changed = differences(drive.identity, identity)
    if changed:
        raise _moved(host, drive, "another drive has its name: " + "; ".join(changed))


def _confirm_unheld(host: Host, spec: DriveSpec, drive: Drive) -> None:
    handle = host.hold_device(drive.node, exclusive=False)
    try:
        _confirm(host, spec, drive, handle)
    finally:
        host.release_device(handle)


def _moved(host: Host, drive: Drive, why: str) -> RigTrouble:
    return RigTrouble(
        f"{host.name}: {drive.node} is no longer slot {drive.spec.slot} "
        f"({drive.identity.model} {drive.identity.serial}): {why}. Nothing was done to it; the "
        "drive was reset, replugged or renumbered and has to be bound again"
    )


def _is_read_only(host: Host, drive: Drive) -> bool:
    return host.read_file(f"/sys/block/{drive.name}/ro").strip() == b"1"


def reasons_against(spec: DriveSpec, uses: Uses) -> list[str]:
    """Why a drive with these uses is not to be touched, a sentence each; none: it is free."""
    reasons = []
    for node, mount in uses.mounts:
        if mount.is_system:
            reasons.append(f"it carries the running system ({node.name} is {mount.point})")
        else:
            reasons.append(f"{node.name} is mounted at {mount.point} (unmount it)")
    reasons += [f"{node.name} is swap (`swapoff` it)" for node in uses.swaps]
    reasons += [f"it is a member of {node.name}, {_maker(node)}" for node in uses.members]
    members = _listed([mark for mark in uses.signatures if mark.is_member])
    if members:
        reasons.append(
            f"it is marked as part of an array, pool or volume group, stopped or not: {members} "
            "(if that may be lost, remove the mark with `wipefs --all`)"
        )
    allowed = {*spec.signatures, *(k for k, v in _ACCOMPANYING.items() if v in spec.signatures)}
    foreign = [mark for mark in uses.signatures if not mark.is_member and mark.kind not in allowed]
    if foreign:
        reasons.append(
            f"it holds what the rig file does not name: {_listed(foreign)} (if that may be lost, "
            "add it to the drive's `signatures` in the rig file)"
        )
    return reasons


def _listed(marks: Sequence[Signature]) -> str:
    """Each kind once a device: some formats leave their mark in several places."""
    return ", ".join(dict.fromkeys(f"{mark.kind} on {mark.device}" for mark in marks))


def _bulleted(reasons: Sequence[str]) -> str:
    return "".join(f"\n  - {reason}" for reason in reasons)


def _maker(node: Node) -> str:
    known = {"lvm": "an LVM volume", "crypt": "an encrypted volume", "mpath": "a multipath device"}
    if node.kname.startswith("md"):
        return f"an md array ({node.kind}; stop it first)"
    if node.kname.startswith("bcache"):
        return "a bcache device (stop it first)"
    return known.get(node.kind, f"a {node.kind} device") + " (take it apart first)"


def _refusal(host: Host, drive: Drive, purpose: Purpose, reasons: Sequence[str]) -> Refused:
    return Refused(
        f"slot {drive.spec.slot}: {drive.node} on {host.name} ({drive.identity.model} "
        f"{drive.identity.serial}): {_DEEDS[purpose]}:" + _bulleted(reasons),
        reasons,
    )
