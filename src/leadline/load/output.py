"""What fio leaves of a batch: its JSON, its logs of requests, and what was read back."""

import io
import json
import re
import tarfile
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from leadline.errors import RigTrouble

Requests = list[tuple[float, float]]
"""(completion on the rig's clock in Unix seconds, latency in seconds), in fio's order."""

SAVING_NOTE = " : Saving output of "
LOG_NAME = re.compile(r"(.+)_lat\.\d+\.log")


@dataclass(frozen=True)
class JobResult:
    """One fio job: its error (0, an errno, or -1), requests counted, share of a CPU used,
    and how long it ran, drain included."""

    error: int
    counted: int
    cpu: float
    ran_s: float


@dataclass(frozen=True)
class Batch:
    """One fio process: version, exit code, what it said outside its JSON, and by job name
    the results, the logged requests, and the device queue depth read back (as text)."""

    version: str
    exit_code: int
    said: str
    jobs: Mapping[str, JobResult]
    requests: Mapping[str, Requests]
    depths: Mapping[str, str]


def read_batch(archive: bytes) -> Batch:
    """Read the tar archive that batch.sh sends.  Raises RigTrouble when fio left no result."""
    files = unpack(archive)
    try:
        exit_code = int(files["exit-code"])
        output = files["output.json"]
    except (KeyError, ValueError):
        raise RigTrouble("fio left no result; is the rig's /dev/shm or /tmp full?") from None
    printed = files.get("fio.out", b"").decode("utf-8", "replace")
    document, notes = split_output(output.decode("utf-8", "replace"))
    lines = [line.strip() for line in (notes + "\n" + printed).splitlines()]
    # fio says much twice, once a job.
    said = "\n".join(dict.fromkeys(line for line in lines if line and SAVING_NOTE not in line))
    if document is None:
        raise RigTrouble(f"fio ended with exit code {exit_code} and no JSON; it said: {said}")
    requests = {}
    depths = {}
    for name, data in files.items():
        if match := LOG_NAME.fullmatch(name):
            requests[match[1]] = parse_log(data)
        elif name.endswith(".prerun.txt"):
            text = data.decode("utf-8", "replace").strip()
            depths[name.removesuffix(".prerun.txt")] = text
    jobs = {str(job["jobname"]): _job_result(job) for job in document["jobs"]}
    version = str(document.get("fio version", ""))
    return Batch(version, exit_code, said, jobs, requests, depths)


def split_output(text: str) -> tuple[dict[str, Any] | None, str]:
    """fio's JSON document in its `--output` file, and the text around it.

    fio puts its notes into the same file, most before the document and some after it
    (a signal's).  None when there is no document with jobs.
    """
    decoder = json.JSONDecoder()
    for match in re.finditer(r"^\{", text, flags=re.MULTILINE):
        try:
            document, end = decoder.raw_decode(text, match.start())
        except json.JSONDecodeError:
            continue
        if isinstance(document.get("jobs"), list):
            return document, text[: match.start()] + text[end:]
    return None, text


def parse_log(data: bytes) -> Requests:
    """A log of requests: `time ms, latency ns, direction, size, ...` a line.

    Raises RigTrouble on a line that is something else (a disk that was full cuts it), such as
    one with a latency below 0: a clock that ran backwards has spoilt the others, too.
    """
    requests = []
    for number, line in enumerate(data.splitlines(), 1):
        fields = line.split(b",", 2)
        try:
            time_ms, latency_ns = int(fields[0]), int(fields[1])
        except (ValueError, IndexError):
            raise _no_request(number, line, "") from None
        if min(time_ms, latency_ns) < 0:
            raise _no_request(number, line, ": its time or its latency is negative")
        # No request takes no time: a latency of 0 is a clock too coarse to see it.
        requests.append((time_ms / 1e3, max(1, latency_ns) / 1e9))
    return requests


def _no_request(number: int, line: bytes, why: str) -> RigTrouble:
    shown = line[:80].decode("ascii", "replace")
    return RigTrouble(f"fio's log, line {number}: {shown!r} is no request{why}")


def _job_result(job: Mapping[str, Any]) -> JobResult:
    directions = [job[name] for name in ("read", "write", "trim") if name in job]
    counted = sum(int(direction.get("total_ios", 0)) for direction in directions)
    # total_err counts requests that failed; error is how the job ended, and may be 0.
    error = int(job.get("error", 0)) or int(job.get("first_error", 0))
    if not error and int(job.get("total_err", 0)):
        error = -1
    cpu = (float(job.get("usr_cpu", 0.0)) + float(job.get("sys_cpu", 0.0))) / 100.0
    return JobResult(error, counted, cpu, ran_s=int(job.get("job_runtime", 0)) / 1e3)


def unpack(archive: bytes) -> dict[str, bytes]:
    """The files of a tar archive, by name.  Raises RigTrouble when it is none."""
    files = {}
    try:
        with tarfile.open(fileobj=io.BytesIO(archive)) as tar:
            for member in tar:
                content = tar.extractfile(member)
                if content is not None:
                    files[member.name.removeprefix("./")] = content.read()
    except tarfile.TarError as error:
        raise RigTrouble(f"the archive of fio's results cannot be read: {error}") from error
    return files
