"""Do requests really overlap at the drive?  Seen in the kernel's tracepoints.

libata's ``ata_qc_issue`` and ``ata_qc_complete_*`` name each command's opcode and tag
as it is handed to the controller; where libata does not drive the disk, the SCSI layer's
``scsi_dispatch_cmd_*`` tell at least how many commands the host adapter holds.
"""

import re
from collections import Counter
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from typing import Literal, NamedTuple

from leadline.drive import tracing
from leadline.drive.bind import Drive
from leadline.errors import DriveFault
from leadline.host.connection import Host
from leadline.host.programs import overhear
from leadline.host.trouble import DeadlinePassed, ProgramFailed

Source = Literal["libata", "scsi"]

READS = 64
OFFERED_DEPTH = 8
READ_BYTES = 4096
LARGE_BYTES = 512 * 1024  # takes any drive long enough for the next to be sent meanwhile
RUNTIME_MS = 500  # a slow disk ends the probe here, a fast one after READS
DEADLINE_S = 60.0  # one SCSI timeout of 30 s and the recovery after it

_STARTS = {"libata": ("ata_qc_issue",), "scsi": ("scsi_dispatch_cmd_start",)}
_ENDS = {
    "libata": ("ata_qc_complete_done", "ata_qc_complete_failed", "ata_qc_complete_internal"),
    "scsi": ("scsi_dispatch_cmd_done", "scsi_dispatch_cmd_error", "scsi_dispatch_cmd_timeout"),
}

# The opcodes that carry an NCQ tag (ACS-4 4.14.1), and those that a drive gets without NCQ.
_NCQ_OPCODES = {
    0x60: "READ FPDMA QUEUED",
    0x61: "WRITE FPDMA QUEUED",
    0x63: "NCQ NON-DATA",
    0x64: "SEND FPDMA QUEUED",
    0x65: "RECEIVE FPDMA QUEUED",
}
_OTHER_OPCODES = {
    0x20: "READ SECTORS",
    0x24: "READ SECTORS EXT",
    0x25: "READ DMA EXT",
    0x29: "READ MULTIPLE EXT",
    0x35: "WRITE DMA EXT",
    0xC4: "READ MULTIPLE",
    0xC8: "READ DMA",
    0xCA: "WRITE DMA",
}

_LIBATA = re.compile(r"ata_port=(\d+) ata_dev=(\d+) tag=(\d+)")
_LIBATA_OPCODE = re.compile(r"\btf=\(([0-9a-f]{2})/")
_SCSI = re.compile(r"host_no=(\d+) channel=(\d+) id=(\d+) lun=(\d+)")
_SCSI_TAG = re.compile(r"\bdriver_tag=(\d+)")
_SCSI_OPCODE = re.compile(r"cmnd=\((\w+)")
_SCSI_RAW = re.compile(r"\braw=([0-9a-f ]+)")


@dataclass(frozen=True, slots=True)
class Overlap:
    """What was seen while requests were offered side by side.

    ``most`` and ``mean`` are commands outstanding at once, the mean over the time in
    which there was one; for libata only commands with an NCQ tag are counted.
    """

    source: Source
    commands: int
    opcodes: Mapping[str, int]  # how often each command was sent
    queued: int  # commands with an NCQ tag; for scsi all of them
    most: int
    mean: float
    busy_s: float = 0.0  # time with a command outstanding

    @property
    def rate(self) -> float:
        """Commands a second while there were any; 0 where that is not known."""
        return self.commands / self.busy_s if self.busy_s else 0.0

    @property
    def queued_writes(self) -> int:
        """Writes that could overlap other commands: with an NCQ tag; for scsi every WRITE (n)."""
        if self.source == "libata":
            return self.opcodes.get(_NCQ_OPCODES[0x61], 0)
        return sum(n for name, n in self.opcodes.items() if name.removeprefix("WRITE_").isdigit())

    def __str__(self) -> str:
        sent = ", ".join(f"{count} {name}" for name, count in sorted(self.opcodes.items()))
        held = f"at most {self.most} outstanding at once, {self.mean:.1f} on average"
        return f"{sent or 'no command seen'}; {held if self.queued else 'none of them queued'}"


class _Step(NamedTuple):
    time: float  # s, of the trace's clock
    begins: bool
    tag: str
    opcode: str
    counts: bool  # the command can overlap another one


def probe(host: Host, drive: Drive) -> Overlap:
    """Offer a few queued reads and watch them reach the drive; it reads and changes nothing.

    Larger ones decide where none overlapped: a drive may be done with 4 KiB before a busy host
    has sent the next.

    Raises TracingMissing when the kernel cannot show it, DriveFault when the reads do
    not end within a minute, RigTrouble when fio is missing or ends before it has read.
    """
    seen = _seen(host, drive, READ_BYTES)
    if seen.queued == 0 or seen.most > 1:
        return seen
    larger = _seen(host, drive, LARGE_BYTES)
    return larger if larger.most > 1 else seen


def _seen(host: Host, drive: Drive, block_bytes: int) -> Overlap:
    source: Source = "libata" if drive.link else "scsi"
    argv = _fio(drive.node, block_bytes)
    with tracing.instance(host, drive) as instance:
        _watch(host, instance, drive, source)
        try:
            # Failed reads are seen by the kernel log's watch; here the trace is what counts.
            done = host.run(argv, deadline=DEADLINE_S, check=False)
            overhear(host, "fio", done.stdout.partition(b";fio-")[2])
        except DeadlinePassed as error:
            raise DriveFault(
                f"{host.name}: {drive.node}: {OFFERED_DEPTH} queued reads did not end within "
                f"{DEADLINE_S:.0f} s; the kernel log shows what the drive did"
            ) from error
        text = host.read_file(f"{instance}/trace").decode("ascii", "replace")
    seen = read_trace(text, source, _place(drive, source))
    if done.exit_code and not any("READ" in name for name in seen.opcodes):
        # It offered nothing: its engine is missing, say.  That is not the drive's doing.
        raise ProgramFailed(host.name, argv, done.exit_code, done.stdout, done.stderr)
    return seen


def during(host: Host, drive: Drive, load: Callable[[], None]) -> Overlap:
    """Watch what reaches the drive while `load` lasts; others offer it, before and after, too.

    Raises TracingMissing when the kernel cannot show it, and what `load` raises.
    """
    source: Source = "libata" if drive.link else "scsi"
    with tracing.instance(host, drive) as instance:
        # All events at once: an end that nobody records yet would leave its command outstanding.
        host.write_value(f"{instance}/tracing_on", "0")
        _watch(host, instance, drive, source)
        host.write_value(f"{instance}/tracing_on", "1")
        load()
        host.write_value(f"{instance}/tracing_on", "0")
        text = host.read_file(f"{instance}/trace").decode("ascii", "replace")
    return read_trace(text, source, _place(drive, source))


def read_trace(text: str, source: Source, place: tuple[int, ...]) -> Overlap:
    """The overlap in a trace, as the file ``trace`` prints it.

    ``place`` is (port, device) for libata and (host, channel, id, lun) for scsi; other
    drives' lines are passed over.
    """
    opcodes: Counter[str] = Counter()
    outstanding: set[str] = set()
    queued = most = 0
    busy_s = tag_s = last = 0.0
    for step in _steps(text, source, place):
        if outstanding:
            busy_s += step.time - last
            tag_s += len(outstanding) * (step.time - last)
        last = step.time
        if not step.begins:
            outstanding.discard(step.tag)
            continue
        opcodes[step.opcode] += 1
        if step.counts:
            queued += 1
            outstanding.add(step.tag)
            most = max(most, len(outstanding))
    mean = tag_s / busy_s if busy_s else 0.0
    return Overlap(source, opcodes.total(), dict(opcodes), queued, most, mean, busy_s)


def _steps(text: str, source: Source, place: tuple[int, ...]) -> Iterator[_Step]:
    pattern = _LIBATA if source == "libata" else _SCSI
    for time, name, fields in tracing.events(text):
        if name not in _STARTS[source] + _ENDS[source]:
            continue
        where = pattern.search(fields)
        if where and tuple(int(n) for n in where.groups()[: len(place)]) == place:
            yield _Step(time, name in _STARTS[source], *_command(fields, source))


def _command(fields: str, source: Source) -> tuple[str, str, bool]:
    """Tag, name and whether it may overlap others, of one event."""
    if source == "libata":
        place, opcode = _LIBATA.search(fields), _LIBATA_OPCODE.search(fields)
        number = int(opcode[1], 16) if opcode else -1
        name = _NCQ_OPCODES.get(number) or _OTHER_OPCODES.get(number) or f"command {number:02X}h"
        return place[3] if place else "", name, number in _NCQ_OPCODES
    # Kernels before 5.17 print no tag: there the command's own bytes tell it from others.
    tag = _SCSI_TAG.search(fields) or _SCSI_RAW.search(fields)
    opcode = _SCSI_OPCODE.search(fields)
    return tag[1] if tag else fields, opcode[1] if opcode else "command", True


def _place(drive: Drive, source: Source) -> tuple[int, ...]:
    if source == "libata":
        return tracing.ata_place(drive)
    return tuple(int(number) for number in drive.hctl.split(":"))


def _fio(node: str, block_bytes: int) -> list[str]:
    """Rounds of OFFERED_DEPTH reads submitted together, so that even a fast drive shows overlap.

    (Threads that read one each do not: a drive that takes 0.3 ms held 3 of 8.)
    """
    return [
        "fio",
        "--name=overlap",
        f"--filename={node}",
        "--readonly",
        "--direct=1",
        "--rw=randread",
        "--randrepeat=0",
        "--norandommap",
        f"--bs={block_bytes}",
        "--ioengine=libaio",
        f"--iodepth={OFFERED_DEPTH}",
        f"--iodepth_batch_submit={OFFERED_DEPTH}",
        f"--iodepth_batch_complete_min={OFFERED_DEPTH}",
        f"--number_ios={READS}",
        f"--runtime={RUNTIME_MS}ms",
        "--output-format=terse",
    ]


def _watch(host: Host, instance: str, drive: Drive, source: Source) -> None:
    fields = ("ata_port", "ata_dev") if source == "libata" else ("host_no", "channel", "id", "lun")
    place = _place(drive, source)
    only = " && ".join(f"{name} == {number}" for name, number in zip(fields, place, strict=True))
    for event in _STARTS[source]:
        tracing.watch(host, instance, f"{source}:{event}", only)
    for event in _ENDS[source]:
        tracing.watch(host, instance, f"{source}:{event}", only, optional=True)
