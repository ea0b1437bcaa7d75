"""How long programs take to start in the guest, at the same addresses each time and at others.

On one guest, in turns, so that whatever else the machine does meets both alike.
"""

import tempfile
from pathlib import Path
from statistics import median

from bench.suite import ahci_drive, rig_file, up
from leadline.host.connection import Host, open_host
from leadline.inventory.rig import load_rig
from leadline.virtual.state import State, made_up

SWITCH = "/proc/sys/kernel/randomize_va_space"
SAME, RANDOM = "0", "2"
ROUNDS = 5
PROGRAMS = {"sh": (20, "sh -c :"), "fio": (2, "fio --version > /dev/null")}
"""How often each is started at a time, and how."""
LEAST_GAIN = {"sh": 2.0, "fio": 1.2}
"""How many times as long it must take at other addresses, where the guest is emulated."""
UPTIME = "read -r now _ < /proc/uptime; echo $now"
DEADLINE_S = 120.0


def measure() -> dict[str, object]:
    """Medians of seconds a start, and their ratios."""
    with tempfile.TemporaryDirectory(prefix="leadline-starts-") as folder:
        path = rig_file(Path(folder), made_up("starts"), [ahci_drive()])
        with up(path):
            rig = load_rig(path)
            emulated = State(rig.name).read_status()["accelerator"] != "kvm"
            with open_host(rig.host) as host:
                kept = {name: _in_turns(host, *of) for name, of in PROGRAMS.items()}
    ratios = {name: each[RANDOM] / each[SAME] for name, each in kept.items()}
    return {
        "emulated": emulated,
        "same_addresses_ms": {name: round(each[SAME] * 1e3, 1) for name, each in kept.items()},
        "random_addresses_ms": {name: round(each[RANDOM] * 1e3, 1) for name, each in kept.items()},
        "random_over_same": {name: round(ratio, 2) for name, ratio in ratios.items()},
        "least": LEAST_GAIN if emulated else None,
        "within_limits": not emulated or all(ratios[name] >= LEAST_GAIN[name] for name in ratios),
    }


def _in_turns(host: Host, times: int, what: str) -> dict[str, float]:
    seconds: dict[str, list[float]] = {SAME: [], RANDOM: []}
    for number in range(ROUNDS):
        for way in (SAME, RANDOM) if number % 2 == 0 else (RANDOM, SAME):
            host.run(["sh", "-c", f"echo {way} > {SWITCH}"], deadline=DEADLINE_S)
            timed = f"{UPTIME}; for i in $(seq {times}); do {what}; done; {UPTIME}"
            said = host.run(["sh", "-c", timed], deadline=DEADLINE_S).stdout.split()
            begun, ended = (float(each) for each in said)
            seconds[way].append((ended - begun) / times)
    return {way: median(each) for way, each in seconds.items()}
