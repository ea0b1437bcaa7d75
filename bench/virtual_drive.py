"""A virtual drive of a given profile under load, and its log of requests."""

import secrets
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from statistics import fmean
from typing import Literal

import leadline
from leadline.drive import queue_depth
from leadline.drive.bind import Drive, bind
from leadline.host.connection import Host, open_host
from leadline.inventory.rig import Rig, load_rig
from leadline.load.fio import run_slices
from leadline.load.slices import Slice, SliceSetting
from leadline.load.workload import Workload
from leadline.virtual import rig as virtual
from leadline.virtual.request_log import count_lost, read_request_log, true_rates
from leadline.virtual.rig import Changes
from leadline.virtual.state import State, made_up

RIG = Path(leadline.__file__).parent / "rigs" / "virtual.yaml"
SLOT = "ssd1"
IDENTITY = """\
model: LEADLINE VSSD
serial: VSSD0001
wwn: 0x5000c5000000a001
firmware: "1.0"
capacity_bytes: 8589934592
"""
ON_IDE = (
    ("controllers:\n", "controllers:\n  - name: ide\n    driver: ata_piix\n"),
    ("    controller: ahci\n", "    controller: ide\n"),
    ("      bus: ahci\n", "      bus: ide\n"),
)


@dataclass
class UnderTest:
    """One virtual drive under load, and what its own log says of that load."""

    rig: Rig
    host: Host
    drive: Drive
    log: Path

    def slices(self, workload: Workload, settings: Sequence[SliceSetting]) -> Sequence[Slice]:
        """Slices on the drive, in order."""
        return run_slices(
            self.host,
            self.drive.node,
            workload,
            settings,
            depth_path=queue_depth.path(self.drive),
            seeds=[secrets.randbits(31) for _ in settings],
        )

    def true_ratio(self, deep: int, shallow: int) -> float:
        """By the log: what the drive did a second with so many in flight, over all its life.

        RuntimeError where requests are missing from it.
        """
        if lost := count_lost(self.log):
            raise RuntimeError(
                f"{self.log}: {lost} requests are missing, so that it cannot tell the truth: "
                "make room on that file system"
            )
        rates = true_rates(read_request_log(self.log))
        return rates[deep].per_second / rates[shallow].per_second

    def mean_service_s(self, last: int) -> float:
        """By the log: how long the drive took for each of so many requests, the last ones."""
        return fmean(one.end_ns - one.start_ns for one in read_request_log(self.log)[-last:]) / 1e9


@contextmanager
def under_test(
    folder: Path, profile: str, *, bus: Literal["ahci", "ide"] = "ahci"
) -> Iterator[UnderTest]:
    """The drive of such a profile (what follows IDENTITY), for as long as the block lasts."""
    path = folder / "profile.yaml"
    path.write_text(IDENTITY + profile)
    rig = load_rig(_rig_of_its_own(folder, bus))
    changes = Changes(profiles={SLOT: path})
    try:
        with (
            virtual.running(rig, changes, say=lambda _: None),
            open_host(rig.host) as host,
        ):
            drive = bind(host, rig.drive(SLOT))
            for setting, value in (("scheduler", "none"), ("nomerges", "2")):  # as the suite pins
                host.write_value(f"/sys/block/{drive.name}/queue/{setting}", value)
            # As the suite holds one: else udev reads the drive each time that a load closes it.
            host.hold_device(drive.node)
            yield UnderTest(rig, host, drive, State(rig.name).medium(SLOT) / "requests.jsonl")
    finally:
        State(rig.name).forget()


def _rig_of_its_own(folder: Path, bus: str) -> Path:
    """The packaged rig under another name: a user's stays alone, and benches do not meet.

    On the bus "ide" its SATA drive is behind a controller that has no NCQ.
    """
    name = made_up("bench")
    text = RIG.read_text()
    for old, new in (
        ("rig: virtual", f"rig: {name}"),
        ("leadline/virtual/virtual/", f"leadline/virtual/{name}/"),
        ("profile: profiles/", f"profile: {RIG.parent}/profiles/"),
        *(ON_IDE if bus == "ide" else ()),
    ):
        text = text.replace(old, new)
    path = folder / f"{name}.yaml"
    path.write_text(text)
    return path
