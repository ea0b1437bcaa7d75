"""The guest of the virtual rig: a kernel and a root file system in memory, built once and kept.

Built by mmdebstrap from the distribution's packages, with this machine's own apt sources, and
cached by what went into it: `<user cache>/leadline/images/<hash>/` holds `kernel`,
`root.cpio` and `image.json`.  A root file system in memory has no disk to find, check or spoil,
so the guest boots in a third of the time, and cutting its power hurts nothing.
"""

import contextlib
import errno
import fcntl
import hashlib
import json
import os
import platform
import re
import shutil
import signal
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import IO

from leadline.errors import RigTrouble
from leadline.host.programs import install_hint
from leadline.host.trouble import last_lines, printable
from leadline.inventory.fields import user_cache
from leadline.virtual.packing import MODULES, NOT_KEPT, pack

Say = Callable[[str], None]

_FORMAT = 1  # raised when the same packages are put together differently
_BUILD_SECONDS = 1800
_OTHERS_SECONDS = 2400.0  # for a build of another process, and its packing
_ENDS_SECONDS = 60.0
_POLL_SECONDS = 0.25
_NEEDED_BYTES = {"build": 1200 << 20, "image": 1000 << 20}

_PACKAGES = (
    *("mount", "kmod", "udev", "util-linux", "iproute2", "openssh-server", "python3"),
    *("fio", "blktrace", "smartmontools", "sg3-utils", "hdparm"),
    # What the write guard is to recognise is made with these.
    *("mdadm", "lvm2", "dmsetup", "cryptsetup-bin", "bcache-tools", "e2fsprogs", "xfsprogs"),
)
_KERNEL_PACKAGE = {"ubuntu": "linux-image-generic"}
_OTHER_KERNEL_PACKAGE = "linux-image-amd64"

# Not unpacked at all: most of the time that a build takes.
_NOT_INSTALLED = (
    *("/usr/share/doc/*", "/usr/share/man/*", "/usr/share/locale/*", "/usr/share/info/*"),
    "/etc/kernel/postinst.d/*",  # would build an initramfs
    *(f"/lib/modules/*/kernel/{part}/*" for part in ("sound", "drivers/gpu", "drivers/media")),
    *(f"/lib/modules/*/kernel/drivers/{part}/*" for part in ("infiniband", "net/wireless")),
)


@dataclass(frozen=True)
class Image:
    """A guest image in the cache."""

    folder: Path
    release: str
    """The kernel's, such as `6.1.0-56-amd64`."""

    @property
    def kernel(self) -> Path:
        """For QEMU's `-kernel`."""
        return self.folder / "kernel"

    @property
    def root(self) -> Path:
        """A cpio archive for QEMU's `-initrd`; it has no /init, see `initrd.py`."""
        return self.folder / "root.cpio"


def ensure_image(say: Say) -> Image:
    """The guest image, built when the cache has none; `say` is told how that goes.

    Two processes do not build at once: the second waits for the first.  Raises RigTrouble when
    it cannot be built: a program is missing, the disk is full, no package source answers.
    """
    if platform.machine() not in ("x86_64", "AMD64"):
        raise RigTrouble(
            f"the virtual rig is an x86-64 machine, built on one; this is {platform.machine()}: "
            "run it on an x86-64 machine"
        )
    folder = user_cache() / "leadline" / "images" / recipe_hash()
    found = _cached(folder)
    if found is not None:
        return found
    try:
        folder.parent.mkdir(parents=True, exist_ok=True)
        with _alone(folder, say):
            return _cached(folder) or _build(folder, say)
    except OSError as trouble:
        raise RigTrouble(_disk_message(folder.parent, trouble)) from trouble


def recipe_hash() -> str:
    """What names an image in the cache: all that decides what is in it."""
    system = _distribution()
    recipe = [_FORMAT, system, _PACKAGES, MODULES, _NOT_INSTALLED, NOT_KEPT.pattern]
    return hashlib.sha256(json.dumps(recipe).encode()).hexdigest()[:16]


def _distribution() -> tuple[str, str]:
    """This machine's distribution and its release, such as ("debian", "bookworm")."""
    try:
        system = platform.freedesktop_os_release()
    except OSError:
        system = {}
    name = system.get("ID", "")
    if name in ("debian", "ubuntu"):
        return name, system.get("VERSION_CODENAME", "")
    return "debian", "stable"


def _cached(folder: Path) -> Image | None:
    try:
        described = json.loads((folder / "image.json").read_text())
    except FileNotFoundError:
        return None
    return Image(folder, described["release"])


@contextlib.contextmanager
def _alone(folder: Path, say: Say) -> Iterator[None]:
    """Hold the build's lock; a holder that dies frees it."""
    path = folder.with_suffix(".lock")
    with path.open("w") as lock:
        if not _locked(lock):
            say("guest image: another process is building it; waiting")
            deadline = time.monotonic() + _OTHERS_SECONDS
            while not _locked(lock):
                if time.monotonic() > deadline:
                    raise RigTrouble(
                        f"another process has been building the guest image for over "
                        f"{_OTHERS_SECONDS:.0f} s; find it by `fuser {path}`, and end it"
                    )
                time.sleep(_POLL_SECONDS)
        yield


def _locked(lock: IO[str]) -> bool:
    """Whether the lock is ours now."""
    try:
        fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError:
        return False
    return True


def _build(folder: Path, say: Say) -> Image:
    begun = time.monotonic()
    _require_room(folder.parent)
    for left in folder.parent.glob(f"{folder.name}.building-*"):
        shutil.rmtree(left)  # of a build that was killed, for the lock is ours
    with tempfile.TemporaryDirectory(prefix=f"{folder.name}.building-", dir=folder.parent) as name:
        work = Path(name)
        say("guest image: building it once, of the distribution's packages (a minute or two)")
        _bootstrap(work / "root.tar", folder.with_suffix(".log"), say)
        say("guest image: packing")
        fresh = work / "image"
        fresh.mkdir()
        release, absent = pack(work / "root.tar", fresh)
        if absent:
            say(f"guest image: kernel {release} has no module {', '.join(sorted(absent))}")
        described = {"release": release, "packages": _PACKAGES}
        (fresh / "image.json").write_text(json.dumps(described))
        fresh.rename(folder)
    say(f"guest image: built in {time.monotonic() - begun:.0f} s, kept in {folder}")
    return Image(folder, release)


def _require_room(cache: Path) -> None:
    for place, purpose in ((Path(tempfile.gettempdir()), "build"), (cache, "image")):
        free, needed = shutil.disk_usage(place).free, _NEEDED_BYTES[purpose]
        if free < needed:
            raise RigTrouble(
                f"{place}: {free >> 20} MiB free, and the guest {purpose} needs "
                f"{needed >> 20} MiB: make room, or name a place with more "
                f"({'TMPDIR' if purpose == 'build' else 'XDG_CACHE_HOME'})"
            )


def _disk_message(place: Path, trouble: OSError) -> str:
    if trouble.errno in (errno.ENOSPC, errno.EDQUOT):
        needed = sum(_NEEDED_BYTES.values()) >> 20
        return f"{place}: the disk is full; the guest image needs {needed} MiB there and in TMPDIR"
    where = trouble.filename or place
    return f"{where}: the guest image cannot be kept there: {trouble.strerror}; set XDG_CACHE_HOME"


def _bootstrap(tar: Path, log: Path, say: Say) -> None:
    """Have mmdebstrap write the guest's file system to `tar`."""
    if shutil.which("mmdebstrap") is None:
        raise RigTrouble(
            f"mmdebstrap is not installed, and builds the guest: {install_hint('mmdebstrap')}"
        )
    words = ["mmdebstrap", "--variant=essential", "--format=tar", "--architectures=amd64"]
    words += [f"--dpkgopt=path-exclude={path}" for path in _NOT_INSTALLED]
    words += ['--aptopt=Apt::Install-Recommends "false"', *_proxy_options()]
    distribution, release = _distribution()
    packages = [_KERNEL_PACKAGE.get(distribution, _OTHER_KERNEL_PACKAGE), *_PACKAGES]
    words += [f"--include={','.join(packages)}"]
    sources = _apt_sources(distribution)
    words += ["", str(tar), *sources] if sources else [release, str(tar)]
    with (
        log.open("w+", errors="replace") as output,
        subprocess.Popen(
            words, stdin=subprocess.DEVNULL, stdout=output, stderr=output, start_new_session=True
        ) as process,
    ):
        try:
            _follow(process, log, say)
        except BaseException as why:
            _end(process, why)
            raise
        if process.returncode != 0:
            said = log.read_text(errors="replace")
            raise RigTrouble(
                f"the guest image cannot be built: mmdebstrap ended with {process.returncode} "
                f"(all it said: {log}){_remedy(said)}{last_lines(said)}"
            )


def _remedy(said: str) -> str:
    """What helps against what mmdebstrap complains of; empty where nobody knows."""
    if "No space left on device" in said:
        return "; the disk is full: make room, or set TMPDIR"
    if "unable to pick chroot mode automatically" in said:
        return (
            "; without root it needs newuidmap, and user namespaces: "
            f"{install_hint('newuidmap')}; see that your user has a range of ids in /etc/subuid "
            "and in /etc/subgid (usermod --add-subuids, --add-subgids), and that `unshare --user "
            "--map-root-user true` works"
        )
    return ""


def _end(process: subprocess.Popen[bytes], why: BaseException) -> None:
    """Have mmdebstrap end and clean up; by SIGKILL, which leaves its mounts, where it does not."""
    process.terminate()
    try:
        process.wait(_ENDS_SECONDS)
    except subprocess.TimeoutExpired:
        os.killpg(process.pid, signal.SIGKILL)
        why.add_note(
            f"mmdebstrap did not end within {_ENDS_SECONDS:g} s of being told to, and was killed: "
            f"look for what it left, and may have mounted, in {tempfile.gettempdir()}"
        )


def _follow(process: subprocess.Popen[bytes], log: Path, say: Say) -> None:
    """Pass on what mmdebstrap says of its progress until it ends."""
    deadline = time.monotonic() + _BUILD_SECONDS
    with log.open(errors="replace") as text:
        while True:
            ended = process.poll() is not None
            for line in text:
                if line.startswith("I: ") and line.rstrip().endswith("..."):
                    say(f"guest image: {printable(line[3:].strip())}")
            if ended:
                return
            if time.monotonic() > deadline:
                raise RigTrouble(
                    f"the guest image took over {_BUILD_SECONDS} s to build: see {log}"
                )
            with contextlib.suppress(subprocess.TimeoutExpired):
                process.wait(_POLL_SECONDS)


def _proxy_options() -> list[str]:
    """This machine's way to its package sources; mmdebstrap takes over the sources alone."""
    options = []
    for scheme in ("http", "https"):
        answer = _ask("apt-config", "shell", "PROXY", f"Acquire::{scheme}::Proxy")
        found = re.fullmatch(r"PROXY='([^']+)'\s*", answer)
        if found:
            options.append(f'--aptopt=Acquire::{scheme}::Proxy "{found[1]}"')
    return options


def _apt_sources(distribution: str) -> list[str]:
    """The files that name this machine's package sources of its own distribution.

    A third party's sources have no business in the guest.  Empty when this machine has no
    apt sources: mmdebstrap then takes Debian's.
    """
    listed = _ask("apt-get", "indextargets", "Created-By: Packages")
    own = []
    for target in listed.split("\n\n"):
        fields = dict(line.split(": ", 1) for line in target.splitlines() if ": " in line)
        if fields.get("Origin", "").lower() == distribution:
            own.append(fields.get("Sourcesentry", "").rpartition(":")[0])
    if any(own):
        return sorted({path for path in own if path})
    # Without package lists apt does not know whose sources they are.
    folder = Path("/etc/apt")
    every = [folder / "sources.list", *sorted(folder.glob("sources.list.d/*"))]
    return [str(path) for path in every if path.suffix in (".list", ".sources") and path.is_file()]


def _ask(*words: str) -> str:
    """What a program prints, or "" when it is not there or fails."""
    try:
        answer = subprocess.run(words, capture_output=True, text=True, timeout=30, check=True)
    except (OSError, subprocess.SubprocessError):
        return ""
    return answer.stdout


def to_stderr(text: str) -> None:
    """The usual `say`."""
    print(f"leadline: {text}", file=sys.stderr, flush=True)
