"""Whether QEMU can use the processor's virtualisation: tried, for /dev/kvm alone says little."""

import json
import os
import shutil
import subprocess
from dataclasses import dataclass
from pathlib import Path

from leadline.errors import RigTrouble
from leadline.host.programs import install_hint
from leadline.host.trouble import printable
from leadline.inventory.fields import user_cache

QEMU = "qemu-system-x86_64"
_OLDEST_QEMU = (6, 2)  # `-device` takes JSON from there on
_PATCHES_SEEN = (8, 1)
"""Emulated, a processor of an older QEMU may run an instruction for ever that another has replaced
meanwhile, as Linux does at each begin and end of a trace: QEMU's commit deba78709a (accel/tcg:
Always lock pages before translation) mended it."""
_CPUS = 2
_EMULATED_CPU = "max,-erms,-fsrm,-xsave,-avx,-avx2,-pku"
"""Without what a processor does fast and an emulator slowly: told that `rep movsb` is fast, Linux
copies and clears memory byte by byte, and where there is XSAVE the dynamic linker saves the whole
extended state at each function's first call.  Without it there is no AVX and there are no
protection keys, which Linux does not find out by itself."""
_PROBE_SECONDS = 10.0  # 1 s is usual; asked once a boot
_VERSION_SECONDS = 20.0
_DEVICE = Path("/dev/kvm")

# With no root file system a kernel panics once it has set up processors, memory, interrupts and
# timers: further than a machine comes on which KVM starts and then hangs.
_END = b"Kernel panic - not syncing: VFS"


@dataclass(frozen=True)
class Accelerator:
    """How QEMU is to run the guest's code."""

    kvm: bool
    notice: str
    """One line for the user when it is emulated, else ""."""
    parallel: bool = True
    """Whether this QEMU may emulate several processors at once."""

    @property
    def cpus(self) -> int:
        """How many processors a machine gets that asks for no number.

        Those that are emulated in turns have up to 100 ms each: one alone answers sooner.
        """
        return _CPUS if self.kvm or self.parallel else 1

    def arguments(self) -> list[str]:
        """For QEMU's command line."""
        if self.kvm:
            return ["-accel", "kvm", "-cpu", "host"]
        turns = "multi" if self.parallel else "single"
        return ["-accel", f"tcg,thread={turns}", "-cpu", _EMULATED_CPU]

    def kernel_arguments(self) -> str:
        """For the guest's kernel.

        An emulated time stamp counter follows this machine's.  Linux does not trust it unless
        told to, and reads the slow HPET instead: a quarter of the boot.  With
        its programs at other addresses each time, QEMU translates some of each anew (seen: 40
        blocks a shell; at the same ones, none), and looks for the rest: a shell took four times
        as long to start, fio twice.  At its start Linux waits a few ticks of the time stamp counter
        for interrupts of the timer: where this machine kept QEMU waiting just then, none came, and
        it panicked.  (Under KVM it leaves that check out by itself.)
        """
        return "" if self.kvm else "tsc=reliable norandmaps no_timer_check"


def choose(kernel: Path, device: Path = _DEVICE) -> Accelerator:
    """KVM when `kernel` runs under it, else emulation.

    Raises RigTrouble when QEMU is missing or too old.
    """
    version, numbers = _qemu_version()
    why = _no_kvm(device, version, kernel)
    if not why:
        return Accelerator(True, "")
    notice = f"{why[0]}: the machine is emulated, which is slower{why[1]}"
    return Accelerator(False, notice, parallel=numbers >= _PATCHES_SEEN)


def _no_kvm(device: Path, version: str, kernel: Path) -> tuple[str, str] | None:
    """What keeps this machine from using KVM, with a remedy in brackets; None when nothing does."""
    if not device.exists():
        return f"no {device}", ""
    if not os.access(device, os.R_OK | os.W_OK):
        return f"no permission to use {device}", " (usually it is enough to be in the group kvm)"
    if not _remembered(version, kernel):
        remedy = f" (tried once a boot; was this machine very busy then, remove {_notes()})"
        return f"{device} is there but runs no Linux", remedy
    return None


def _qemu_version() -> tuple[str, tuple[int, ...]]:
    """What QEMU says of its version, and the version's first two numbers."""
    try:
        answer = subprocess.run(
            [QEMU, "--version"],
            check=False,
            capture_output=True,
            text=True,
            timeout=_VERSION_SECONDS,
        )
    except FileNotFoundError:
        raise RigTrouble(
            f"{QEMU} is not installed, and is the virtual rig's machine: {install_hint(QEMU)}"
        ) from None
    except subprocess.TimeoutExpired:
        raise RigTrouble(f"`{QEMU} --version` said nothing in {_VERSION_SECONDS:.0f} s") from None
    first = printable(answer.stdout.partition("\n")[0])
    words = [word for word in first.split() if word[:1].isdigit()]
    numbers = tuple(int(part) for part in words[0].split(".")[:2]) if words else (0, 0)
    if numbers < _OLDEST_QEMU:
        oldest = ".".join(map(str, _OLDEST_QEMU))
        raise RigTrouble(f"{first or QEMU}: {oldest} or newer is needed: {install_hint(QEMU)}")
    return first, numbers


def _notes() -> Path:
    """Where the probe's answer is kept."""
    return user_cache() / "leadline" / "kvm.json"


def _remembered(version: str, kernel: Path) -> bool:
    """The probe's answer, asked once for each boot of this machine and each QEMU."""
    boot = Path("/proc/sys/kernel/random/boot_id").read_text().strip()
    notes = _notes()
    try:
        known = json.loads(notes.read_text())
        if (known["boot"], known["qemu"]) == (boot, version):
            return bool(known["works"])
    except (OSError, ValueError, KeyError):
        pass  # never asked, or unreadable: ask
    works = boots(kernel, Accelerator(True, ""))
    notes.parent.mkdir(parents=True, exist_ok=True)
    notes.write_text(json.dumps({"boot": boot, "qemu": version, "works": works}))
    return works


def boots(kernel: Path, accelerator: Accelerator) -> bool:
    """Whether the kernel gets to the end of its own start on such a machine, in good time."""
    words = [QEMU, "-machine", "q35", *accelerator.arguments(), "-smp", "2", "-m", "256"]
    words += ["-nodefaults", "-no-user-config", "-no-reboot", "-display", "none"]
    words += ["-serial", "stdio", "-kernel", str(kernel), "-append"]
    words += [f"console=ttyS0 panic=-1 {accelerator.kernel_arguments()}"]
    try:
        answer = subprocess.run(
            words,
            check=False,
            stdin=subprocess.DEVNULL,
            capture_output=True,
            timeout=_PROBE_SECONDS,
        )
    except subprocess.TimeoutExpired:
        return False
    return _END in answer.stdout


def missing_programs() -> list[str]:
    """Programs that starting a virtual rig needs and that are not there."""
    wanted = (QEMU, "ssh", "ssh-keygen", "setpriv")
    return [program for program in wanted if shutil.which(program) is None]
