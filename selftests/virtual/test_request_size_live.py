"""Request sizes on drives that are real to Linux: what their limits promise is what arrives.

The SATA drive of the virtual rig takes 128 KiB at once; the SCSI drive takes 126 segments, so
that it is as in the story: a request of 1 MiB is cut where memory is in pieces, and only there.
"""

import re
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

import pytest

from bench.memory_in_pieces import HUGE, in_pieces
from leadline.drive import settings
from leadline.drive.arrivals import Arrived, read_limits, watch
from leadline.drive.bind import Drive, bind
from leadline.drive.request_limits import KIB, MIB, RequestLimits
from leadline.host.connection import Host, open_host
from leadline.host.hugepages import POOL, reserved
from leadline.host.journal import Journal
from leadline.inventory.rig import Rig
from leadline.load.fio import run_slices
from leadline.load.jobs import hugepages_needed
from leadline.load.slices import IO_ERRORS, SliceSetting
from leadline.load.workload import random_read
from selftests.virtual.conftest import RIGS, MakeRig
from selftests.virtual.test_hil import hil

pytestmark = pytest.mark.measures


@dataclass(frozen=True)
class Unit:
    """A drive of the rig, its settings pinned."""

    host: Host
    journal: Journal
    drive: Drive
    limits: RequestLimits

    def sent_for(self, asked: int, *, hugepages: bool = False) -> Arrived:
        """What it is sent for requests of that size."""
        huge = self.limits.huge_page() if hugepages else None
        setting = SliceSetting(None, 8, block_bytes=asked, huge_page_bytes=huge, watched=True)
        pages = hugepages_needed(random_read(), [setting])

        def run() -> list[str]:
            with reserved(self.host, self.journal, pages):
                (measured,) = run_slices(
                    self.host,
                    self.drive.node,
                    random_read(),
                    [setting],
                    depth_path=None,
                    seeds=[asked],
                )
            return list(measured.voids)

        voids, arrived = watch(self.host, self.drive, asked, run)
        assert IO_ERRORS not in voids
        return arrived


@pytest.fixture(scope="module")
def host(shared_rig: Rig) -> Iterator[Host]:
    with open_host(shared_rig.host, deadline=60) as opened:
        yield opened


@pytest.fixture
def journal(host: Host) -> Iterator[Journal]:
    """Ordinary memory of ordinary pages: a large program's may be of huge ones, unasked."""
    with Journal(host, "request-size") as opened:
        opened.change(HUGE, "never")
        yield opened


def unit(host: Host, journal: Journal, rig: Rig, slot: str) -> Unit:
    drive = bind(host, rig.drive(slot))
    settings.pin(host, journal, drive)
    return Unit(host, journal, drive, read_limits(host, drive))


@pytest.fixture
def sata(host: Host, journal: Journal, shared_rig: Rig) -> Unit:
    return unit(host, journal, shared_rig, "ssd1")


@pytest.fixture
def scsi(host: Host, journal: Journal, shared_rig: Rig) -> Unit:
    return unit(host, journal, shared_rig, "scsi1")


def test_the_sata_drive_gets_128_kib_at_once_and_its_controller_binds(sata: Unit) -> None:
    promise = sata.limits.promise(MIB)
    assert (promise.guaranteed, promise.possible) == (128 * KIB, 128 * KIB)
    assert promise.binding == "max_hw_sectors_kb is 128"
    for hugepages in (False, True):
        arrived = sata.sent_for(MIB, hugepages=hugepages)
        assert arrived.seen_in == "tracepoint"
        assert max(arrived.requests)[0] == 128 * KIB, arrived
        assert arrived.least == 128 * KIB, arrived  # but for what others may do on the drive


def test_a_megabyte_in_pieces_is_cut_at_126_segments_and_from_hugepages_arrives_whole(
    scsi: Unit,
) -> None:
    promise = scsi.limits.promise(MIB)
    assert (promise.guaranteed, promise.possible) == (504 * KIB, MIB)
    assert promise.binding == "max_segments is 126, one for each page of 4 KiB"
    with in_pieces(scsi.host):
        cut = scsi.sent_for(MIB)
    assert cut.least is not None
    assert 504 * KIB <= cut.least < 600 * KIB, cut
    assert max(size for size, _ in cut.requests) < MIB, "each one was cut"
    assert scsi.limits.promise(MIB, hugepages=True).guaranteed == MIB
    whole = scsi.sent_for(MIB, hugepages=True)
    assert [size for size, _ in whole.requests] == [MIB]
    assert scsi.host.read_file(POOL).split() == [b"0"]


@pytest.mark.parametrize("asked", [4 * KIB, 64 * KIB, 256 * KIB, 4 * MIB])
def test_other_sizes_arrive_as_large_as_is_promised(sata: Unit, scsi: Unit, asked: int) -> None:
    for drive in (sata, scsi):
        promise, arrived = drive.limits.promise(asked), drive.sent_for(asked)
        assert arrived.least is not None
        assert promise.guaranteed <= arrived.least
        assert arrived.requests[0][0] <= promise.possible


def test_without_tracing_the_counters_tell_the_mean(sata: Unit, host: Host) -> None:
    try:
        host.run(["umount", "/sys/kernel/tracing"], deadline=30)
        host.run(["umount", "/sys/kernel/debug"], deadline=30)
        arrived = sata.sent_for(MIB)
    finally:
        host.run(["mount", "-t", "debugfs", "d", "/sys/kernel/debug"], deadline=30, check=False)
        host.run(["mount", "-t", "tracefs", "t", "/sys/kernel/tracing"], deadline=30, check=False)
    assert arrived.seen_in == "stat"
    assert arrived.least == 128 * KIB


@pytest.mark.parametrize(
    ("fault", "said"),
    [
        ("{over_kib: 256}", "requests of this size fail: Input/output error"),
        pytest.param(
            "{over_kib: 256, fails: false, seconds: 4}",
            "requests of this size stall",
            marks=pytest.mark.long,
        ),
    ],
    ids=["fails", "stalls"],
)
def test_requests_over_a_size_fail_the_suite_and_smaller_ones_and_the_drive_beside_it_pass(
    make_rig: MakeRig, tmp_path: Path, fault: str, said: str
) -> None:
    """V16: the claim fails by its name, whether the kernel has seen errors or nothing."""
    profile = tmp_path / "faulty.yaml"
    healthy = (RIGS / "profiles" / "vscsi-1.0.yaml").read_text()
    profile.write_text(f"{healthy}\nfaults:\n  large_requests: {fault}\n")
    rig = make_rig(
        "over-a-size", (f"profile: {RIGS}/profiles/vscsi-1.0.yaml", f"profile: {profile}")
    )
    tests = "arrive_as_large and (scsi1 or VSSD-1.0) and (64k or 1024k)"
    code, summary, told = hil(rig, tmp_path, "-m", "acceptance", "-k", tests)
    assert code == 1, told
    explained = [each["explanation"] for each in summary["verdicts"]]
    headline = re.compile(r"(\w+): random_read of (.+) arrives as .*-(ssd1|scsi1)-")
    assert {headline.match(each).groups() for each in explained} == {  # type: ignore[union-attr]
        ("PASS", "64 KiB", "ssd1"),
        ("PASS", "1 MiB", "ssd1"),
        ("PASS", "64 KiB", "scsi1"),
        ("FAIL", "1 MiB", "scsi1"),
    }
    assert any(said in each for each in explained)
    assert any("max_hw_sectors_kb is 128" in each for each in explained), "of the one beside it"
