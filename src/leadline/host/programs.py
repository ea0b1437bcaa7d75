"""The programs that Leadline calls: the packages they come in, and their versions."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, NamedTuple

from leadline.host.trouble import ProgramMissing, ProgramTooOld

if TYPE_CHECKING:
    from leadline.host.connection import Host

VERSION_DEADLINE_S = 30.0  # the first `fio --version` takes 1.3 s on an emulated rig


class Package(NamedTuple):
    """Where a program comes from; the argument with which it prints its version."""

    debian: str
    fedora: str
    version: str = "--version"


_SG3 = Package("sg3-utils", "sg3_utils", "-V")
_UTIL_LINUX = Package("util-linux", "util-linux")
_LVM2 = Package("lvm2", "lvm2")
_OPENSSH_CLIENT = Package("openssh-client", "openssh-clients", "-V")

PACKAGES: dict[str, Package] = {
    "dmesg": _UTIL_LINUX,
    "lsblk": _UTIL_LINUX,
    "wipefs": _UTIL_LINUX,
    "findmnt": _UTIL_LINUX,
    "blockdev": _UTIL_LINUX,
    "setpriv": _UTIL_LINUX,
    "losetup": Package("mount", "util-linux-core"),
    "mount": Package("mount", "util-linux-core"),
    "umount": Package("mount", "util-linux-core"),
    "fallocate": _UTIL_LINUX,
    "mdadm": Package("mdadm", "mdadm"),
    "pvcreate": _LVM2,
    "vgcreate": _LVM2,
    "lvcreate": _LVM2,
    "dmsetup": Package("dmsetup", "device-mapper", "version"),
    "mkfs.ext4": Package("e2fsprogs", "e2fsprogs", "-V"),
    "fio": Package("fio", "fio"),
    "hdparm": Package("hdparm", "hdparm", "-V"),
    "smartctl": Package("smartmontools", "smartmontools"),
    "sg_inq": _SG3,
    "sg_logs": _SG3,
    "sg_readcap": _SG3,
    "sg_sat_identify": _SG3,
    "sg_ses": _SG3,
    "sg_vpd": _SG3,
    "sg_raw": _SG3,
    "sg_write_buffer": _SG3,
    "python3": Package("python3", "python3"),
    "udevadm": Package("udev", "systemd-udev"),
    "systemctl": Package("systemd", "systemd"),
    "ssh": _OPENSSH_CLIENT,
    "ssh-keygen": _OPENSSH_CLIENT,
    "qemu-system-x86_64": Package("qemu-system-x86", "qemu-system-x86-core"),
    "qemu-img": Package("qemu-utils", "qemu-img"),
    "nbdkit": Package("nbdkit", "nbdkit"),
    "mmdebstrap": Package("mmdebstrap", "mmdebstrap"),
    "newuidmap": Package("uidmap", "shadow-utils", "--help"),
    "fusermount3": Package("fuse3", "fuse3", "-V"),
    "blktrace": Package("blktrace", "blktrace", "-V"),
    "blkparse": Package("blktrace", "blktrace", "-V"),
    "powerman": Package("powerman", "powerman", "-V"),
}


def install_hint(program: str) -> str:
    """How to install a program: ``apt install fio (Debian, Ubuntu) or dnf ... (Fedora)``."""
    package = PACKAGES.get(program.rpartition("/")[2])
    if package is None:
        return f"install the package that has {program}"
    return f"apt install {package.debian} (Debian, Ubuntu) or dnf install {package.fedora} (Fedora)"


def missing(where: str, program: str) -> ProgramMissing:
    """The error for a program that is not there."""
    return ProgramMissing(f"{where}: {program} is not installed; there: {install_hint(program)}")


def require(host: Host, program: str, minimum: str | None = None) -> str:
    """The version of a program on the rig, such as ``3.33``; asked once.

    The versions seen are kept in ``host.versions``, over reconnections too, to be recorded
    with the run: after a power cycle the rig's programs are what they were.
    Raises ProgramMissing, and ProgramTooOld when it is older than ``minimum``.
    """
    if program not in host.versions:
        package = PACKAGES.get(program)
        argument = package.version if package else "--version"
        answer = host.run([program, argument], deadline=VERSION_DEADLINE_S, check=False)
        host.versions[program] = parse_version(answer.stdout + b"\n" + answer.stderr)
    version = host.versions[program]
    if minimum and not version:
        said = f"{program} does not tell its version; {minimum} or newer is needed"
        raise ProgramTooOld(f"{host.name}: {said}; there: {install_hint(program)}")
    if minimum and _numbers(version) < _numbers(minimum):
        said = f"{program} {version} is too old; {minimum} or newer is needed"
        raise ProgramTooOld(f"{host.name}: {said}; there: {install_hint(program)}")
    return version


def overhear(host: Host, program: str, output: bytes) -> None:
    """Keep a program's version that it told beside what it was run for, so that none asks again.

    On an emulated rig it takes a second to ask fio.
    """
    if program not in host.versions and (version := parse_version(output)):
        host.versions[program] = version


def parse_version(output: bytes) -> str:
    """The first version number in what a program printed, or ``""``.

    ``fio-3.33``, ``smartctl 7.3 2022-02-28``, ``hdparm v9.65``, ``OpenSSH_9.2p1``,
    ``version string: 2.31 20220209``, ``252``.
    """
    text = output.decode("utf-8", "replace")
    found = re.search(r"\d+(?:\.\d+)+", text) or re.search(r"\d+", text)
    return found.group() if found else ""


def _numbers(version: str) -> tuple[int, ...]:
    return tuple(int(part) for part in re.findall(r"\d+", version))
