"""How many requests overlap at the drive: counted in a trace, and what a probe cannot say."""

from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from types import SimpleNamespace
from typing import ClassVar, cast

import pytest

from leadline.drive import overlap, tracing
from leadline.drive.bind import Drive
from leadline.drive.overlap import Source, read_trace
from leadline.host.connection import Host
from leadline.host.trouble import ProgramFailed
from selftests.drive_specimens import sata_drive

LIBATA = """\
# tracer: nop
#           TASK-PID     CPU#  |||||  TIMESTAMP  FUNCTION
 kworker/0:1H-44  [000] d..1.  10.000000: ata_qc_issue: ata_port=1 ata_dev=0 tag=3 \
proto=ATA_PROT_NCQ cmd=ATA_CMD_FPDMA_READ  tf=(60/08:18:10:ee:01/00:00:00:00:00/40)
 kworker/0:1H-44  [000] d..1.  10.001000: ata_qc_issue: ata_port=1 ata_dev=0 tag=4 \
proto=ATA_PROT_NCQ cmd=ATA_CMD_FPDMA_READ  tf=(60/08:20:10:ee:01/00:00:00:00:00/40)
 kworker/0:1H-44  [000] d..1.  10.001500: ata_qc_issue: ata_port=2 ata_dev=0 tag=9 \
proto=ATA_PROT_NCQ cmd=ATA_CMD_FPDMA_READ  tf=(60/08:48:10:ee:01/00:00:00:00:00/40)
          <idle>-0  [001] d.h1.  10.003000: ata_qc_complete_done: ata_port=1 ata_dev=0 tag=3 \
flags=b{ ACTIVE DMAMAP IO } status={ DRDY }  res=(40/00:00:00:00:00/00:00:00:00:00/00)
          <idle>-0  [001] d.h1.  10.004000: ata_qc_complete_failed: ata_port=1 ata_dev=0 tag=4 \
flags=b{ ACTIVE DMAMAP IO } status={ DRDY ERR }  res=(41/40:00:00:00:00/00:00:00:00:00/00)
 kworker/0:1H-44  [000] d..1.  10.010000: ata_qc_issue: ata_port=1 ata_dev=0 tag=5 \
proto=ATA_PROT_NCQ cmd=ATA_CMD_FPDMA_READ  tf=(60/08:28:10:ee:01/00:00:00:00:00/40)
          <idle>-0  [001] d.h1.  10.011000: ata_qc_complete_done: ata_port=1 ata_dev=0 tag=5 \
flags=b{ ACTIVE DMAMAP IO } status={ DRDY }  res=(40/00:00:00:00:00/00:00:00:00:00/00)
"""

SCSI = """\
 fio-9  [001] .....  5.000000: scsi_dispatch_cmd_start: host_no=1 channel=0 id=3 lun=0 \
data_sgl=1 prot_sgl=0 prot_op=SCSI_PROT_NORMAL driver_tag=7 scheduler_tag=-1 \
cmnd=(READ_10 lba=1 txlen=8 protect=0 raw=28 00 00 00 00 01 00 00 08 00)
 fio-9  [001] .....  5.000100: scsi_dispatch_cmd_start: host_no=1 channel=0 id=3 lun=0 \
data_sgl=1 prot_sgl=0 prot_op=SCSI_PROT_NORMAL driver_tag=8 scheduler_tag=-1 \
cmnd=(READ_10 lba=2 txlen=8 protect=0 raw=28 00 00 00 00 02 00 00 08 00)
 <idle>-0  [001] d.H2.  5.000400: scsi_dispatch_cmd_done: host_no=1 channel=0 id=3 lun=0 \
data_sgl=1 prot_sgl=0 prot_op=SCSI_PROT_NORMAL driver_tag=7 scheduler_tag=-1 \
cmnd=(READ_10 lba=1 txlen=8 protect=0 raw=28 00 00 00 00 01 00 00 08 00) result=(status=GOOD)
 <idle>-0  [001] d.H2.  5.000500: scsi_dispatch_cmd_done: host_no=1 channel=0 id=3 lun=0 \
data_sgl=1 prot_sgl=0 prot_op=SCSI_PROT_NORMAL driver_tag=8 scheduler_tag=-1 \
cmnd=(READ_10 lba=2 txlen=8 protect=0 raw=28 00 00 00 00 02 00 00 08 00) result=(status=GOOD)
"""


def test_overlap_is_counted_from_libatas_tracepoints() -> None:
    seen = read_trace(LIBATA, "libata", (1, 0))
    assert seen.opcodes == {"READ FPDMA QUEUED": 3}
    assert (seen.commands, seen.queued, seen.most) == (3, 3, 2)
    # 1 ms of one, 2 ms of two, 1 ms of one, and later 1 ms of one: 7 tag-ms in 5 busy ms.
    assert seen.mean == pytest.approx(7 / 5)


def test_only_the_drive_asked_for_is_counted() -> None:
    assert read_trace(LIBATA, "libata", (2, 0)).commands == 1
    assert read_trace(LIBATA, "libata", (1, 1)).commands == 0


def test_commands_without_a_tag_do_not_count_as_queued() -> None:
    unqueued = LIBATA.replace("tf=(60/", "tf=(25/").replace(
        "ATA_CMD_FPDMA_READ", "ATA_CMD_READ_EXT"
    )
    seen = read_trace(unqueued, "libata", (1, 0))
    assert seen.opcodes == {"READ DMA EXT": 3}
    assert (seen.queued, seen.most, seen.mean) == (0, 0, 0.0)
    assert "none of them queued" in str(seen)


def test_overlap_is_counted_from_the_scsi_layers_tracepoints() -> None:
    seen = read_trace(SCSI, "scsi", (1, 0, 3, 0))
    assert seen.opcodes == {"READ_10": 2}
    assert (seen.queued, seen.most) == (2, 2)
    assert seen.mean == pytest.approx((0.1 + 2 * 0.3 + 0.1) / 0.5)


def test_an_older_kernels_trace_without_tags_tells_commands_by_their_bytes() -> None:
    old = SCSI.replace("driver_tag=7 scheduler_tag=-1 ", "").replace(
        "driver_tag=8 scheduler_tag=-1 ", ""
    )
    assert read_trace(old, "scsi", (1, 0, 3, 0)).most == 2


def test_an_empty_trace_says_that_nothing_was_seen() -> None:
    assert str(read_trace("# tracer: nop\n", "libata", (1, 0))).startswith("no command seen")


@pytest.mark.parametrize(
    ("text", "source", "place", "writes"),
    [
        (LIBATA, "libata", (1, 0), 0),
        (LIBATA.replace("tf=(60/", "tf=(61/"), "libata", (1, 0), 3),
        (LIBATA.replace("tf=(60/", "tf=(35/"), "libata", (1, 0), 0),
        (SCSI, "scsi", (1, 0, 3, 0), 0),
        (SCSI.replace("READ_10", "WRITE_16"), "scsi", (1, 0, 3, 0), 2),
    ],
)
def test_writes_that_are_queued_are_told_from_others(
    text: str, source: Source, place: tuple[int, ...], writes: int
) -> None:
    assert read_trace(text, source, place).queued_writes == writes


@contextmanager
def instance(host: Host, drive: Drive) -> Iterator[str]:
    yield "/tracing"


class Tracefs:
    """A tracing instance that has `LIBATA` in it; what is written there, and when."""

    name = "rig"

    def __init__(self) -> None:
        self.did: list[str] = []

    def exists(self, path: str) -> bool:
        return True

    def write_value(self, path: str, text: str) -> None:
        self.did.append(f"{path.removeprefix('/tracing/')} {text}")

    def read_file(self, path: str) -> bytes:
        self.did.append("read")
        return LIBATA.encode()


def test_a_load_is_watched_when_every_event_is_recorded(monkeypatch: pytest.MonkeyPatch) -> None:
    """A command whose end nobody records yet would be outstanding for ever."""
    monkeypatch.setattr(tracing, "instance", instance)
    host = Tracefs()
    seen = overlap.during(cast(Host, host), sata_drive(), lambda: host.did.append("load"))
    assert seen == read_trace(LIBATA, "libata", (1, 0))
    off, *events, on, load, end, read = host.did
    assert (off, on, load, end, read) == (
        "tracing_on 0",
        "tracing_on 1",
        "load",
        "tracing_on 0",
        "read",
    )
    assert "events/libata/ata_qc_issue/enable 1" in events
    assert "events/libata/ata_qc_complete_done/enable 1" in events


class WithoutItsEngine:
    """A rig whose fio has no libaio: it ends before it has read anything."""

    name = "rig"
    versions: ClassVar[dict[str, str]] = {}

    def run(self, argv: list[str], **_: object) -> SimpleNamespace:
        return SimpleNamespace(exit_code=1, stdout=b"", stderr=b"fio: engine libaio not loadable")

    def read_file(self, path: str) -> bytes:
        return b"# tracer: nop"


def test_a_probe_that_offers_nothing_says_nothing_of_the_drive(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(tracing, "instance", instance)
    monkeypatch.setattr(overlap, "_watch", lambda *_: None)
    with pytest.raises(ProgramFailed, match="engine libaio not loadable"):
        overlap.probe(cast(Host, WithoutItsEngine()), sata_drive())


ONE_BY_ONE = "\n".join(LIBATA.splitlines()[-2:])


class InTurn:
    """A rig on which fio's reads of a size show this in the trace."""

    name = "rig"

    def __init__(self, **traces: str) -> None:
        self.traces = traces
        self.sizes: list[str] = []
        self.versions: dict[str, str] = {}

    def run(self, argv: list[str], **_: object) -> SimpleNamespace:
        self.sizes.append(next(each for each in argv if each.startswith("--bs=")))
        return SimpleNamespace(exit_code=0, stdout=b"", stderr=b"")

    def read_file(self, path: str) -> bytes:
        return (self.traces["small"] if len(self.sizes) == 1 else self.traces["large"]).encode()


@pytest.mark.parametrize(
    ("small", "large", "asked", "most"),
    [
        (LIBATA, "", 1, 2),
        (ONE_BY_ONE, LIBATA, 2, 2),
        (ONE_BY_ONE, ONE_BY_ONE, 2, 1),
    ],
)
def test_larger_reads_decide_where_small_ones_did_not_overlap(
    monkeypatch: pytest.MonkeyPatch, small: str, large: str, asked: int, most: int
) -> None:
    """As of a drive that is done with 4 KiB before a busy host has sent the next."""
    monkeypatch.setattr(tracing, "instance", instance)
    monkeypatch.setattr(overlap, "_watch", lambda *_: None)
    host = InTurn(small=small, large=large)
    seen = overlap.probe(cast(Host, host), sata_drive())
    assert seen.most == most
    assert host.sizes == ["--bs=4096", f"--bs={512 * 1024}"][:asked]


def test_the_page_says_how_much_is_read_for_it() -> None:
    page = Path(__file__).parents[1] / "docs" / "explanation" / "ncq-ladder.md"
    assert f"{overlap.READS} reads" in page.read_text()
