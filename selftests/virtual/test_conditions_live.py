"""What disturbs slices, done to a drive that is real to Linux: the kernel's counters tell.

Two drives on one AHCI controller, with a medium of a known speed that has holes where
nothing was written.
"""

from collections.abc import Callable, Iterator, Sequence

import pytest

from leadline.drive import settings
from leadline.drive.bind import Drive, bind
from leadline.drive.conditions import look
from leadline.drive.finding import Finding, failed
from leadline.drive.guard import admit
from leadline.drive.quiet import await_quiet
from leadline.host.connection import Host, open_host
from leadline.host.journal import Journal
from leadline.inventory.matrix import ModelSpec
from leadline.load.fio import run_slices
from leadline.load.slices import Slice, SliceSetting, offered_for
from leadline.load.workload import Workload, random_read, random_write
from leadline.vetting import Vetting, vet
from leadline.virtual import qmp
from selftests.quick_guest import Description, Guest, ata, booted, shell, spec_of

pytestmark = pytest.mark.alone

SSD, NEIGHBOUR = "VSSD0001", "VSSD0002"
MIB = 1 << 20
WRITTEN = (256 * MIB, 64 * MIB)
BLANK = (512 * MIB, 64 * MIB)
MODEL = ModelSpec.model_validate(
    {
        "model": "LEADLINE VSSD",
        "class": "ssd",
        "protocol": "sata",
        "queue_depth": 32,
        "cache_bytes": MIB,
        "firmware": [{"revision": "1.0", "status": "released"}],
    }
)
SETTINGS = [SliceSetting(depth, offered_for(depth), seconds=1.0) for depth in (1, 8, 8, 1)]


def trimmable(description: Description) -> Description:
    """The drive's trims punch holes into its medium, which then read as zeros."""
    node, device = description
    file = node["file"]
    assert isinstance(file, dict)
    return {**node, "discard": "unmap", "file": {**file, "discard": "unmap"}}, device


@pytest.fixture(scope="module")
def guest(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Guest]:
    folder = tmp_path_factory.mktemp("conditions")
    drives = [trimmable(ata(folder, SSD, "ide.0")), ata(folder, NEIGHBOUR, "ide.1")]
    with booted(folder, drives) as running:
        # What is too much is a share of what the slices do: as much on any machine.
        pace = {"iops": 1000, "iops_rd": 0, "iops_wr": 0, "bps": 50 * MIB, "bps_rd": 0, "bps_wr": 0}
        qmp.execute(running.monitor, "block_set_io_throttle", {"id": SSD, **pace})
        yield running


@pytest.fixture(scope="module")
def host(guest: Guest) -> Iterator[Host]:
    with open_host(guest.spec, deadline=60) as opened:
        yield opened


@pytest.fixture(scope="module")
def ssd(host: Host) -> Drive:
    drive = bind(host, spec_of(SSD))
    fill(host, drive, WRITTEN)
    return drive


@pytest.fixture
def vetted(host: Host, ssd: Drive) -> Iterator[Vetting]:
    """The drive, its settings pinned and given back afterwards."""
    with Journal(host, "selftest") as journal:
        settings.pin(host, journal, ssd)
        yield vet(host, ssd, MODEL, 1 << 30)
        journal.give_back()


def fill(host: Host, drive: Drive, span: tuple[int, int]) -> None:
    at, count = span[0] // MIB, span[1] // MIB
    words = f"bs=1M seek={at} count={count} oflag=direct conv=fsync status=none"
    shell(host, f"tr '\\0' x < /dev/zero | dd of=$dev iflag=fullblock {words}", drive)
    left_alone(host)


def left_alone(host: Host) -> None:
    """Wait until udev has looked at a drive that was open for writing: slices would count it."""
    host.run(["udevadm", "settle"], deadline=30)


def measured(
    vetted: Vetting,
    workload: Workload | None = None,
    wanted: Sequence[SliceSetting] = SETTINGS,
    *,
    disturbed: Callable[[], object] = lambda: None,
) -> tuple[list[Slice], tuple[Finding, ...]]:
    """A batch of slices on the drive, with the checks around it; and what happens in between."""
    drive, workload = vetted.drive, workload or random_read(WRITTEN)
    path = f"/sys/block/{drive.name}/device/queue_depth"

    def run() -> list[Slice]:
        seeds = range(len(wanted))
        node, host = drive.node, vetted.host
        slices = run_slices(host, node, workload, wanted, depth_path=path, seeds=seeds)
        disturbed()
        return slices

    try:
        return vetted.measure(workload, run)
    finally:
        vetted.host.write_value(path, "32")


def outcomes(findings: Sequence[Finding]) -> dict[str, str]:
    return {finding.name: finding.outcome for finding in findings}


def void_names(findings: Sequence[Finding]) -> set[str]:
    return {finding.name for finding in failed(findings)}


def test_a_quiet_batch_is_sound_and_every_request_accounted_for(vetted: Vetting) -> None:
    slices, findings = measured(vetted)
    assert void_names(findings) == set(), findings
    unknown = {name for name, outcome in outcomes(findings).items() if outcome == "unknown"}
    assert unknown <= {"temperature"}, "a virtual drive has no sensor"
    assert not {name for each in slices for name in each.voids} & outcomes(findings).keys()
    assert sum(each.requests for each in slices) > 100


def test_every_command_is_accounted_for_when_far_more_is_offered_than_held(
    vetted: Vetting,
) -> None:
    measured(vetted)  # samples are taken before the first slice, by commands of our own
    before = look(vetted.host, vetted.around, before=True)
    slices, findings = measured(vetted, wanted=[SliceSetting(1, 16, seconds=1.0)] * 2)
    after = look(vetted.host, vetted.around, before=False)
    assert outcomes(findings)["other-commands"] == "ok"
    assert before.commands is not None
    assert after.commands is not None
    assert after.commands - before.commands == sum(each.requests for each in slices) > 0


def test_merged_requests_are_seen(vetted: Vetting) -> None:
    """Sequential reads that wait for a drive of depth 1, in a scheduler that may merge them."""
    queue = f"/sys/block/{vetted.drive.name}/queue"
    for name, value in (("scheduler", "mq-deadline"), ("nomerges", "0")):
        vetted.host.write_value(f"{queue}/{name}", value)
    # The settings that are in force now are what is pinned, or that would be found as well.
    loose = vet(vetted.host, vetted.drive, MODEL, 1 << 30)
    sequential = Workload("sequential_read", rw="read", span=WRITTEN)
    slices, findings = measured(loose, sequential, [SliceSetting(1, 32, seconds=1.0)])
    assert void_names(findings) == {"merged"}
    assert all("merged" in each.voids for each in slices)


def test_a_neighbour_on_the_same_controller_is_seen(vetted: Vetting) -> None:
    other = bind(vetted.host, spec_of(NEIGHBOUR))
    assert vetted.around.neighbours == (other.name,)
    read = "dd if=$dev of=/dev/null bs=4k count=2000 iflag=direct"
    _, findings = measured(vetted, disturbed=lambda: shell(vetted.host, read, other))
    assert void_names(findings) == {"neighbour"}
    assert any(f"{other.name} did 2000 requests" in finding.found for finding in findings)


def test_a_smart_poll_beside_the_slices_is_seen(vetted: Vetting) -> None:
    poll = "smartctl --all $dev || true"
    _, findings = measured(vetted, disturbed=lambda: shell(vetted.host, poll, vetted.drive))
    assert "other-commands" in void_names(findings)
    assert void_names(findings) <= {"other-commands", "errors"}, "QEMU aborts some of them"


def test_another_program_that_reads_the_drive_is_seen(vetted: Vetting) -> None:
    read = "dd if=$dev of=/dev/null bs=4k count=500 iflag=direct"
    _, findings = measured(vetted, disturbed=lambda: shell(vetted.host, read, vetted.drive))
    assert void_names(findings) == {"other-io"}


def test_a_setting_that_moves_is_seen(vetted: Vetting) -> None:
    path = f"/sys/block/{vetted.drive.name}/queue/nr_requests"
    _, findings = measured(vetted, disturbed=lambda: vetted.host.write_value(path, "24"))
    assert void_names(findings) == {"settings-moved"}


def test_blank_flash_is_seen_and_so_is_trimmed(host: Host, vetted: Vetting) -> None:
    _, findings = measured(vetted, random_read(BLANK))
    assert void_names(findings) == {"unwritten"}
    fill(host, vetted.drive, BLANK)
    written = vet(host, vetted.drive, MODEL, 1 << 30)
    _, findings = measured(written, random_read(BLANK))
    assert void_names(findings) == set()
    shell(host, f"blkdiscard --offset {BLANK[0]} --length {BLANK[1]} $dev", vetted.drive)
    left_alone(host)
    trimmed = vet(host, vetted.drive, MODEL, 1 << 30)
    _, findings = measured(trimmed, random_read(BLANK))
    assert void_names(findings) == {"unwritten"}


def test_udev_leaves_a_drive_alone_that_is_held_for_writing(vetted: Vetting) -> None:
    """It would look at the drive each time that a slice which may write closes it."""
    wanted = [SliceSetting(8, 16, seconds=1.0)] * 4
    with admit(vetted.host, spec_of(SSD), vetted.drive, "write", allow_writes=True):
        for _ in range(2):
            _, findings = measured(vetted, random_write(BLANK), wanted)
            assert void_names(findings) == {"not-preconditioned"}
    left_alone(vetted.host)  # let go, it is looked at after all: before the next test


def test_what_udev_missed_it_looks_at_before_a_quiet_drive_is_told(host: Host, ssd: Drive) -> None:
    """It looks once for each time that the drive was closed, and reads it for one of them alone."""
    closed = 8
    with admit(host, spec_of(SSD), ssd, "write", allow_writes=True):
        # One by one: what is not taken note of yet is not noted twice.
        once = "dd if=/dev/null of=$dev conv=notrunc status=none; sleep 0.2"
        shell(host, "; ".join([once] * closed), ssd)
        counts = f"/sys/block/{ssd.name}/device/iodone_cnt", f"/sys/block/{ssd.name}/stat"
        before = [host.read_file(path) for path in counts]
    said: list[str] = []
    assert await_quiet(host, {ssd.name}, said.append)
    after = [host.read_file(path) for path in counts]
    commands = int(after[0], 16) - int(before[0], 16)
    reads = int(after[1].split()[0]) - int(before[1].split()[0])
    assert said
    assert 10 < reads < 2 * 60, (reads, commands)
    assert commands - reads >= closed, (reads, commands)  # each look asks it who it is
    assert host.run(["udevadm", "settle", "--timeout=0"], deadline=30, check=False).exit_code == 0


def test_a_span_within_the_cache_is_seen(vetted: Vetting) -> None:
    _, findings = measured(vetted, random_read((WRITTEN[0], 8 * MIB)))
    assert void_names(findings) == {"span"}
