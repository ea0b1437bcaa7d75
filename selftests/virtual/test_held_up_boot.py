"""A guest of which the host has no time as it boots."""

import shutil
import signal
import subprocess
import time
from pathlib import Path

import pytest

from leadline.virtual import accel
from leadline.virtual.image import ensure_image

BEFORE = b"clocksource: hpet"  # what the kernel says last before it sets its interrupts up
AFTER = b"Calibrating delay"
BOOT_S = 120.0
HELD_S = 0.1  # the kernel's check of its timer is shorter
FREE_S = 0.002


def test_a_guest_that_is_held_up_as_it_starts_its_clock_finds_its_timer(tmp_path: Path) -> None:
    if shutil.which(accel.QEMU) is None:
        pytest.skip(f"{accel.QEMU} is not installed")
    kernel = ensure_image(lambda _: None).kernel
    emulated = accel.Accelerator(False, "")
    console = tmp_path / "console.log"
    words = [accel.QEMU, "-machine", "q35", *emulated.arguments(), "-smp", "1", "-m", "256"]
    words += ["-nodefaults", "-no-user-config", "-no-reboot", "-display", "none"]
    words += ["-serial", f"file:{console}", "-kernel", str(kernel)]
    words += ["-append", f"console=ttyS0 panic=-1 {emulated.kernel_arguments()}"]
    process = subprocess.Popen(["setpriv", "--pdeathsig", "KILL", *words])
    try:
        limit, held = time.monotonic() + BOOT_S, 0
        while process.poll() is None:  # with nothing to boot from it ends by itself
            assert time.monotonic() < limit, console.read_text(errors="replace")[-2000:]
            heard = console.read_bytes() if console.exists() else b""
            if BEFORE in heard and AFTER not in heard:
                process.send_signal(signal.SIGSTOP)
                time.sleep(HELD_S)
                process.send_signal(signal.SIGCONT)
                held += 1
            time.sleep(FREE_S)
    finally:
        process.kill()
        process.wait()
    said = console.read_text(errors="replace")
    assert held, said
    assert "8254 timer not connected" not in said
    assert "panic - not syncing: VFS" in said
