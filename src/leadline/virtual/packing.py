"""What mmdebstrap wrote, as the guest boots it: an uncompressed kernel, and a cpio archive.

Much of what installing needs is of no use to a guest that is started anew each time.
"""

import re
import tarfile
from pathlib import Path

from leadline.errors import RigTrouble
from leadline.virtual import kernel
from leadline.virtual.cpio import CpioWriter

MODULES = (
    *("ahci", "ata_piix", "virtio_pci", "virtio_scsi", "virtio_blk", "sd_mod", "sg"),
    *("virtio_net", "e1000", "loop", "scsi_debug", "null_blk", "ext4", "xfs", "crc32c_generic"),
    *(
        "dm_mod",
        "dm_crypt",
        "dm_snapshot",
        "dm_multipath",
        "md_mod",
        "raid0",
        "raid1",
        "raid10",
        "bcache",
    ),
)
"""The modules that the guest has, of whichever kernel."""
NEEDED_MODULES = ("ahci", "ata_piix", "virtio_pci", "virtio_scsi", "sd_mod", "sg", "virtio_net")
"""Those without which a rig does not work."""

# Needed to install, and not to run.  The rules would assemble arrays out of drives under test.
NOT_KEPT = re.compile(
    r"(boot|dev|proc|sys|run|tmp|vmlinuz|initrd)(/|\.|$)"
    r"|var/(cache|log|lib/(dpkg|apt|pam|python|systemd))/"
    r"|usr/share/(?!smartmontools|misc)|usr/include/|usr/games/"
    r"|usr/lib/(apt|dpkg|klibc|initcpio|gcc|modules-load\.d|udev/hwdb)"
    r"|usr/lib/systemd/(?!systemd-udevd|libsystemd|network)|etc/systemd/|etc/ssh/(ssh_host|moduli)"
    r"|usr/lib/x86_64-linux-gnu/(perl|gconv|libperl|libapt)"
    r"|usr/lib/python3[.\d]*/(test|idlelib|lib2to3|ensurepip|pydoc_data|tkinter|distutils)/"
    r"|usr/s?bin/(perl|dpkg|apt|debconf)|usr/lib/udev/rules\.d/\d+-(lvm|md-raid)"
)


def pack(tar: Path, folder: Path) -> tuple[str, set[str]]:
    """Make `kernel` and `root.cpio`; the kernel's release, and the modules that it has not got."""
    with tarfile.open(tar) as archive:
        members = {member.name.removeprefix("./"): member for member in archive}
        boot = [name for name in members if re.fullmatch(r"boot/vmlinuz-.+", name)]
        if not boot:
            raise RigTrouble("the guest image has no kernel in /boot: the package put none there")
        release = boot[0].removeprefix("boot/vmlinuz-")
        image = _content(archive, members[boot[0]])
        (folder / "kernel").write_bytes(kernel.uncompressed(image) or image)
        modules = f"usr/lib/modules/{release}/"
        wanted, absent = kernel.with_dependencies(
            MODULES, _content(archive, members[f"{modules}modules.dep"]).decode()
        )
        there = kernel.built_in(_content(archive, members[f"{modules}modules.builtin"]).decode())
        with (folder / "root.cpio").open("wb") as out:
            cpio = CpioWriter(out)
            for name, member in members.items():
                if name.startswith("usr/lib/modules/"):
                    rest = name.removeprefix(modules)
                    keep = member.isdir() or rest in wanted or kernel.is_index(rest)
                else:
                    keep = name != "" and not NOT_KEPT.match(name)
                if keep:
                    _copy(archive, name, member, cpio)
            _add_mount_points(cpio)
            cpio.close()
    return release, absent - there


def _copy(archive: tarfile.TarFile, name: str, member: tarfile.TarInfo, cpio: CpioWriter) -> None:
    if member.isdir():
        cpio.directory(name, member.mode, int(member.mtime))
    elif member.issym():
        cpio.link(name, member.linkname)
    elif member.isfile() or member.islnk():
        cpio.file(name, _content(archive, member), member.mode, int(member.mtime))


def _content(archive: tarfile.TarFile, member: tarfile.TarInfo) -> bytes:
    file = archive.extractfile(member)
    if file is None:
        raise RigTrouble(
            f"the guest image: {member.name} is no file: mmdebstrap made it differently"
        )
    return file.read()


def _add_mount_points(cpio: CpioWriter) -> None:
    for name in ("dev", "proc", "sys", "run"):
        cpio.directory(name)
    cpio.directory("tmp", 0o1777)
    cpio.character_device("dev/console", 0o600, 5, 1)
