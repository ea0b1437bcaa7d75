"""The guest image, the kernel in it, and the machine around it: as far as files can tell.

mmdebstrap is played by a program of the test's own, for what is tested is what Leadline makes
of its output.  Guests really boot in `virtual/test_virtual_rig.py`.
"""

import fcntl
import gzip
import io
import json
import lzma
import multiprocessing
import os
import struct
import subprocess
import sys
import tarfile
import tempfile
from collections.abc import Iterator
from pathlib import Path

import pytest

from leadline.errors import Misuse, RigTrouble, message_of
from leadline.host.programs import install_hint
from leadline.virtual import accel, image, kernel
from leadline.virtual.cpio import CpioWriter
from leadline.virtual.initrd import Keys, compose
from leadline.virtual.packing import MODULES

RELEASE = "6.1.0-test-amd64"
ELF_WITH_PVH = b"\x7fELF" + bytes(60) + struct.pack("<III", 4, 8, 18) + b"Xen\0" + bytes(8)


def big_image(payload: bytes, release: str = RELEASE) -> bytes:
    """A bzImage as far as its header goes (the kernel's Documentation/arch/x86/boot.rst)."""
    setup = bytearray(512 * 2)
    setup[0x1F1] = 1
    setup[0x202:0x206] = b"HdrS"
    struct.pack_into("<H", setup, 0x20E, 0x100)  # the release stands at 0x200 more
    text = f"{release} (somebody@somewhere) #1\0".encode()
    setup[0x300 : 0x300 + len(text)] = text
    struct.pack_into("<II", setup, 0x248, 16, len(payload))
    return bytes(setup) + bytes(16) + payload


def entries(archive: bytes) -> Iterator[tuple[str, int, int, bytes]]:
    """Name, mode, mtime and content of each entry of all archives in a row."""
    at = 0
    while at < len(archive) and archive[at : at + 6] == b"070701":
        fields = [int(archive[at + 6 + 8 * n : at + 14 + 8 * n], 16) for n in range(13)]
        mode, mtime, size, length = fields[1], fields[5], fields[6], fields[11]
        name = archive[at + 110 : at + 110 + length - 1].decode()
        start = at + 110 + length
        start += -start % 4
        yield name, mode, mtime, archive[start : start + size]
        at = start + size + -size % 4


def test_cpio_entries_are_aligned_and_complete() -> None:
    out = io.BytesIO()
    cpio = CpioWriter(out)
    cpio.directory("etc")
    cpio.file("etc/odd", b"12345", 0o600, mtime=77)
    cpio.link("sbin", "usr/sbin")
    cpio.character_device("dev/console", 0o600, 5, 1)
    cpio.close()
    assert list(entries(out.getvalue())) == [
        ("etc", 0o040755, 0, b""),
        ("etc/odd", 0o100600, 77, b"12345"),
        ("sbin", 0o120777, 0, b"usr/sbin"),
        ("dev/console", 0o020600, 0, b""),
        ("TRAILER!!!", 0, 0, b""),
    ]


def test_a_kernel_that_can_be_entered_directly_is_unpacked() -> None:
    payload = lzma.compress(ELF_WITH_PVH) + b"\0\0\0\0"  # the kernel's build appends the length
    assert kernel.uncompressed(big_image(payload)) == ELF_WITH_PVH
    assert kernel.uncompressed(big_image(gzip.compress(ELF_WITH_PVH))) == ELF_WITH_PVH


@pytest.mark.parametrize(
    "payload",
    [
        lzma.compress(b"\x7fELF without the note that QEMU wants"),
        lzma.compress(b"no ELF"),
        b"\x28\xb5\x2f\xfd zstd",
        b"\xfd7zXZ\0 and then nonsense",
        gzip.compress(ELF_WITH_PVH + os.urandom(4096))[:-9],
    ],
)
def test_a_kernel_that_cannot_be_entered_directly_stays_compressed(payload: bytes) -> None:
    assert kernel.uncompressed(big_image(payload)) is None


def test_the_release_of_a_kernel_image(tmp_path: Path) -> None:
    compressed, plain, other = (tmp_path / name for name in ("bzImage", "vmlinux", "notes.txt"))
    compressed.write_bytes(big_image(b""))
    plain.write_bytes(b"\x7fELF...Linux version 6.9.0-rc1 (me@here) ...")
    other.write_text("Linux version 6.9.0 is nice")
    assert kernel.version(compressed) == RELEASE
    assert kernel.version(plain) == "6.9.0-rc1"
    with pytest.raises(Misuse, match=r"notes\.txt: found no Linux kernel"):
        kernel.version(other)
    with pytest.raises(Misuse, match="cannot be read"):
        kernel.version(tmp_path / "absent")


def test_modules_come_with_what_they_need() -> None:
    dep = "kernel/a/libata.ko:\nkernel/a/ahci.ko.xz: kernel/a/libahci.ko kernel/a/libata.ko\n"
    files, absent = kernel.with_dependencies(["ahci", "virtio_net"], dep)
    assert files == {"kernel/a/ahci.ko.xz", "kernel/a/libahci.ko", "kernel/a/libata.ko"}
    assert absent == {"virtio_net"}
    assert kernel.module_name("kernel/drivers/net/virtio-net.ko.zst") == "virtio_net"


@pytest.fixture
def cache(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))
    return tmp_path / "cache" / "leadline" / "images"


def root_tar(path: Path) -> None:
    """A root file system as mmdebstrap would write it, in small."""
    folder = f"./usr/lib/modules/{RELEASE}"
    needed = [*MODULES]
    dep = "".join(f"kernel/{name}.ko:\n" for name in needed)
    files = {
        f"./boot/vmlinuz-{RELEASE}": big_image(lzma.compress(ELF_WITH_PVH)),
        f"{folder}/modules.dep": dep.encode(),
        f"{folder}/modules.builtin": b"",
        f"{folder}/kernel/unwanted.ko": b"big",
        "./usr/bin/fio": b"program",
        "./usr/share/doc/fio/copyright": b"text",
        "./var/lib/dpkg/status": b"text",
    }
    files |= {f"{folder}/kernel/{name}.ko": b"module" for name in needed}
    with tarfile.open(path, "w") as archive:
        for name, data in files.items():
            member = tarfile.TarInfo(name)
            member.size, member.mtime, member.mode = len(data), 1234, 0o755
            archive.addfile(member, io.BytesIO(data))


def play_mmdebstrap(folder: Path, monkeypatch: pytest.MonkeyPatch, script: str) -> None:
    folder.mkdir()
    program = folder / "mmdebstrap"
    program.write_text(f"#!/bin/sh\n{script}\n")
    program.chmod(0o755)
    monkeypatch.setenv("PATH", f"{folder}:{os.environ['PATH']}")


# The tar file is the argument that ends in it.
COPY = 'for word; do case $word in */root.tar) cp "$SOURCE" "$word";; esac; done'


@pytest.fixture
def bootstrap(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A stand-in that does what mmdebstrap does; the file that it adds a line to each time."""
    root_tar(tmp_path / "source.tar")
    monkeypatch.setenv("SOURCE", str(tmp_path / "source.tar"))
    count = tmp_path / "count"
    script = f"echo once >>{count}\necho 'I: unpacking...'\nsleep ${{BUILD_S:-0.5}}\n{COPY}"
    play_mmdebstrap(tmp_path / "bin", monkeypatch, script)
    return count


def test_an_image_is_built_once_of_what_the_guest_needs(cache: Path, bootstrap: Path) -> None:
    said: list[str] = []
    built = image.ensure_image(said.append)
    assert built == image.ensure_image(said.append)
    assert bootstrap.read_text() == "once\n"
    assert any("unpacking" in line for line in said)
    assert built.release == RELEASE
    assert built.kernel.read_bytes() == ELF_WITH_PVH
    found = {name: (mtime, data) for name, _, mtime, data in entries(built.root.read_bytes())}
    assert found["usr/bin/fio"] == (1234, b"program")  # Python's .pyc files know the time
    assert f"usr/lib/modules/{RELEASE}/kernel/ahci.ko" in found
    assert not {name for name in found if "unwanted" in name or "dpkg" in name or "doc" in name}
    left = {path.name for path in cache.iterdir()}
    assert left == {built.folder.name, f"{built.folder.name}.lock", f"{built.folder.name}.log"}


def test_two_processes_do_not_build_it_twice(
    cache: Path, bootstrap: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("BUILD_S", "5")  # the other one has come by then
    program = "from leadline.virtual import image; image.ensure_image(print)"
    both = [
        subprocess.Popen([sys.executable, "-c", program], stdout=subprocess.PIPE, text=True)
        for _ in range(2)
    ]
    said = [process.communicate(timeout=60)[0] for process in both]
    assert [process.returncode for process in both] == [0, 0]
    assert bootstrap.read_text() == "once\n"
    assert any("another process is building it" in text for text in said)


def test_a_build_of_another_process_is_not_waited_for_for_ever(
    cache: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(image, "_OTHERS_SECONDS", 0.0)
    cache.mkdir(parents=True)
    path = cache / f"{image.recipe_hash()}.lock"
    with path.open("w") as held:
        fcntl.flock(held, fcntl.LOCK_EX)
        with pytest.raises(RigTrouble, match=f"another process has been building .*fuser {path}"):
            image.ensure_image(lambda _: None)


def test_a_build_that_does_not_end_when_it_is_told_to_is_killed(
    cache: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(image, "_BUILD_SECONDS", 1)
    monkeypatch.setattr(image, "_ENDS_SECONDS", 0.5)
    hangs = "trap '' TERM; while :; do sleep 0.1; done"
    play_mmdebstrap(tmp_path / "bin", monkeypatch, hangs)
    with pytest.raises(RigTrouble, match="took over 1 s to build") as caught:
        image.ensure_image(lambda _: None)
    assert "and was killed" in message_of(caught.value)


def test_a_failed_build_says_why_and_leaves_nothing_half_done(
    cache: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    play_mmdebstrap(tmp_path / "bin", monkeypatch, "echo 'E: no \033[31msource answers'; exit 25")
    with pytest.raises(RigTrouble) as caught:
        image.ensure_image(lambda _: None)
    message = str(caught.value)
    assert "mmdebstrap ended with 25" in message
    assert "source answers" in message
    assert "\033" not in message
    assert not [path for path in cache.iterdir() if path.is_dir()]


def test_a_build_without_root_and_without_user_namespaces_says_what_it_needs(
    cache: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    said = "E: unable to pick chroot mode automatically (use --mode for manual selection)"
    play_mmdebstrap(tmp_path / "bin", monkeypatch, f"echo '{said}' >&2; exit 1")
    with pytest.raises(RigTrouble, match=r"apt install uidmap .*shadow-utils.*/etc/subuid"):
        image.ensure_image(lambda _: None)


def test_what_a_killed_build_left_is_cleared_away(cache: Path, bootstrap: Path) -> None:
    left = cache / f"{image.recipe_hash()}.building-dead"
    left.mkdir(parents=True)
    (left / "root.tar").write_bytes(b"half")
    image.ensure_image(lambda _: None)
    assert not left.exists()


def test_without_mmdebstrap_its_package_is_named(
    cache: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("PATH", "/nonexistent")
    with pytest.raises(RigTrouble, match=r"mmdebstrap is not installed.*apt install mmdebstrap"):
        image.ensure_image(lambda _: None)


@pytest.mark.skipif(os.geteuid() != 0, reason="mounts a small file system")
def test_a_full_disk_is_said_with_what_is_needed(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    small = tmp_path / "small"
    small.mkdir()
    subprocess.run(["mount", "-t", "tmpfs", "-o", "size=1m", "small", str(small)], check=True)
    try:
        monkeypatch.setenv("XDG_CACHE_HOME", str(small))
        play_mmdebstrap(tmp_path / "bin", monkeypatch, "echo must not run >&2; exit 1")
        with pytest.raises(RigTrouble, match=rf"{small}\S*: \d+ MiB free, .* needs \d+ MiB"):
            image.ensure_image(lambda _: None)
    finally:
        subprocess.run(["umount", str(small)], check=True)


def test_a_rig_adds_its_init_and_keys_to_the_image(cache: Path, bootstrap: Path) -> None:
    built = image.ensure_image(lambda _: None)
    initrd = cache.parent / "initrd"
    assert compose(built, Keys(b"private", b"public"), None, initrd) == ""
    found = {name: (mode, data) for name, mode, _, data in entries(initrd.read_bytes())}
    assert found["init"][0] == 0o100755
    assert found["etc/ssh/ssh_host_ed25519_key"] == (0o100600, b"private")
    assert found["etc/ssh/authorized_keys"][1] == b"public"


def test_a_kernel_of_ones_own_brings_its_modules_or_is_said_to_lack_them(
    cache: Path, bootstrap: Path, tmp_path: Path
) -> None:
    built = image.ensure_image(lambda _: None)
    own = tmp_path / "own" / "bzImage"
    own.parent.mkdir()
    own.write_bytes(big_image(b"", "6.99.0-own"))
    keys, initrd = Keys(b"", b""), tmp_path / "initrd"
    advice = compose(built, keys, own, initrd)
    assert "no modules found" in advice
    assert "virtio_net" in advice
    modules = own.parent / "lib/modules/6.99.0-own"
    modules.mkdir(parents=True)
    (modules / "modules.dep").write_text("kernel/ahci.ko:\n")
    (modules / "modules.builtin").write_text("kernel/drivers/scsi/sd_mod.ko\n")
    (modules / "kernel").mkdir()
    (modules / "kernel/ahci.ko").write_bytes(b"mine")
    advice = compose(built, keys, own, initrd)
    assert "has no module" in advice
    assert "ahci" not in advice.split("module")[-1]
    assert "sd_mod" not in advice
    found = {name: data for name, _, _, data in entries(initrd.read_bytes())}
    assert found["usr/lib/modules/6.99.0-own/kernel/ahci.ko"] == b"mine"


def play_qemu(folder: Path, monkeypatch: pytest.MonkeyPatch, version: str) -> None:
    folder.mkdir()
    program = folder / accel.QEMU
    program.write_text(f"#!/bin/sh\necho 'QEMU emulator version {version} (Debian)'\n")
    program.chmod(0o755)
    monkeypatch.setenv("PATH", f"{folder}:/usr/bin:/bin")


def test_qemu_is_there_and_young_enough(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    play_qemu(tmp_path / "old", monkeypatch, "5.2.0")
    with pytest.raises(RigTrouble, match=r"5\.2\.0.*: 6\.2 or newer is needed"):
        accel.choose(Path("kernel"))
    monkeypatch.setenv("PATH", "/nonexistent")
    with pytest.raises(RigTrouble, match=r"not installed.*apt install qemu-system-x86"):
        accel.choose(Path("kernel"))


def test_each_program_that_is_missing_has_a_package(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PATH", "/nonexistent")
    missing = accel.missing_programs()
    assert "setpriv" in missing
    assert all(install_hint(program).startswith("apt install ") for program in missing)


def test_without_kvm_the_machine_is_emulated_and_that_is_said(
    cache: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    play_qemu(tmp_path / "bin", monkeypatch, "7.2.0")
    absent = accel.choose(Path("kernel"), tmp_path / "kvm")
    assert (absent.kvm, absent.notice.count("\n")) == (False, 0)
    assert f"no {tmp_path / 'kvm'}" in absent.notice
    # A device that is there, and a QEMU that boots nothing on it.
    (tmp_path / "kvm").touch()
    useless = accel.choose(Path("kernel"), tmp_path / "kvm")
    assert not useless.kvm
    assert "runs no Linux" in useless.notice
    assert f"remove {cache.parent / 'kvm.json'}" in useless.notice
    assert not json.loads((cache.parent / "kvm.json").read_text())["works"]


@pytest.mark.parametrize(
    ("version", "thread", "cpus"),
    [("7.2.22", "single", 1), ("8.0.5", "single", 1), ("8.1.0", "multi", 2)],
)
def test_processors_that_may_miss_a_patch_are_not_emulated_at_once(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, version: str, thread: str, cpus: int
) -> None:
    play_qemu(tmp_path / "bin", monkeypatch, version)
    emulated = accel.choose(Path("kernel"), tmp_path / "kvm")
    assert f"tcg,thread={thread}" in emulated.arguments()
    assert emulated.cpus == cpus


@pytest.mark.skipif(os.geteuid() != 0, reason="becomes another user to have no permission")
def test_no_permission_on_kvm_is_one_plain_line(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    play_qemu(tmp_path / "bin", monkeypatch, "7.2.0")
    (tmp_path / "kvm").touch(mode=0o600)
    temporary = Path(tempfile.gettempdir())
    for folder in (tmp_path, *tmp_path.parents):
        if folder != temporary and folder.is_relative_to(temporary):
            folder.chmod(0o755)  # pytest keeps its directories to its own user
    answers: multiprocessing.SimpleQueue[accel.Accelerator] = multiprocessing.SimpleQueue()

    def ask() -> None:
        os.setuid(65534)
        answers.put(accel.choose(Path("kernel"), tmp_path / "kvm"))

    child = multiprocessing.get_context("fork").Process(target=ask)
    child.start()
    child.join(30)
    assert child.exitcode == 0
    refused = answers.get()
    assert not refused.kvm
    assert refused.notice.startswith("no permission to use")
    assert "group kvm" in refused.notice
