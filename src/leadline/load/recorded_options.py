"""The settings of a recorded run, from the options that fio repeats in its JSON.

fio puts a job's own options under "job options" and those of the [global] section under
"global options", each as the user wrote it, all of them text.
"""

import re
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from leadline.drive.text import plain
from leadline.load.recorded_document import Unusable

SYNCHRONOUS = frozenset(
    {"sync", "psync", "vsync", "pvsync", "pvsync2", "mmap", "splice", "libpmem", "dev-dax"}
)
"""Engines that have one request in flight whatever iodepth says (FIO_SYNCIO)."""
_THROUGH_PAGE_CACHE = SYNCHRONOUS | {"libaio", "io_uring", "posixaio", "windowsaio", "solarisaio"}
_NO_DRIVE = frozenset({"null", "cpuio", "filecreate", "filestat", "filedelete", "exec"})
_DEFAULT_ENGINE = "psync"  # fio's own default on Linux
_THROTTLES = ("rate", "rate_iops", "thinktime", "latency_target", "flow")
_ALIASES = {"readwrite": "rw", "blocksize": "bs", "blocksize_range": "bsrange"}
_SIZE = re.compile(r"(\d+)\s*([kmg]?)(?:i?b)?", re.IGNORECASE)
_MULTIPLES = {"": 1, "k": 1 << 10, "m": 1 << 20, "g": 1 << 30}
_COLON = re.compile(r"(?<!\\):")


@dataclass(frozen=True)
class JobOptions:
    """What one entry of fio's "jobs" was asked to do.

    `depth` is iodepth, `jobs` how many jobs the entry stands for.  `target` is the device
    or file, "" when the options name none; `block_bytes` None when sizes are mixed.
    `throttle` is the option that holds the load back, "" if none; `in_turn` says that the
    job waited for the ones before it; `cached` that pages may come from the host's memory;
    `sample_ms` how often rates are sampled, None when nobody said; `read_percent` how many of a
    mix are reads, None for no mix.
    """

    rw: str
    engine: str
    target: str
    block_bytes: int | None
    depth: int
    jobs: int
    cached: bool
    throttle: str
    in_turn: bool
    sample_ms: float | None
    read_percent: int | None = None

    @property
    def synchronous(self) -> bool:
        """Whether the engine has one request in flight, whatever the depth."""
        return self.engine in SYNCHRONOUS


def job_options(document: Mapping[str, Any], entry: Mapping[str, Any]) -> JobOptions:
    """The options of one entry of `document["jobs"]`.

    Raises Unusable when they are not there, or name what no depth claim can be made of.
    """
    options = _merged(document, entry)
    engine = options.get("ioengine", _DEFAULT_ENGINE)
    if engine in _NO_DRIVE:
        raise Unusable(f"its ioengine is {engine}, which reads and writes no drive")
    rw = options.get("rw", "read").partition(":")[0]
    return JobOptions(
        rw={"readwrite": "rw"}.get(rw, rw),
        engine=engine,
        target=_target(options),
        block_bytes=_block_bytes(options, writes="write" in rw),
        depth=_count(options, "iodepth"),
        jobs=_count(options, "numjobs") if _is_on(options, "group_reporting") else 1,
        cached=engine in _THROUGH_PAGE_CACHE and not _is_direct(options),
        throttle=next((name for name in _THROTTLES if _is_on(options, name)), ""),
        in_turn=_is_on(options, "stonewall") or "wait_for" in options,
        sample_ms=_sample_ms(options),
        read_percent=_read_percent(options) if rw in ("rw", "readwrite", "randrw") else None,
    )


def _read_percent(options: Mapping[str, str]) -> int:
    """As fio has it: of rwmixread and rwmixwrite the one that is given, else half."""
    for name, turned in (("rwmixread", False), ("rwmixwrite", True)):
        text = options.get(name)
        if text is None:
            continue
        if not re.fullmatch(r"[0-9]{1,3}", text) or int(text) > 100:
            raise Unusable(f"its {name} is {text[:40]!r}, expected a percentage")
        return 100 - int(text) if turned else int(text)
    return 50


def _merged(document: Mapping[str, Any], entry: Mapping[str, Any]) -> dict[str, str]:
    parts = [document.get("global options"), entry.get("job options")]
    known = [part for part in parts if isinstance(part, dict)]
    if not known:
        raise Unusable(
            "it has neither job options nor global options, so its depth is not in it; "
            "fio before 2.10 does not write them"
        )
    merged: dict[str, str] = {}
    for part in known:
        for name, value in part.items():
            merged[_ALIASES.get(name) or name] = plain(str(value)).strip()
    return merged


def _is_on(options: Mapping[str, str], name: str) -> bool:
    return options.get(name, "0") != "0"


def _is_direct(options: Mapping[str, str]) -> bool:
    if options.get("ioengine") == "mmap":
        return False
    return _is_on(options, "direct") or options.get("buffered") == "0"


def _count(options: Mapping[str, str], name: str) -> int:
    text = options.get(name, "1")
    if not re.fullmatch(r"0*[1-9][0-9]{0,5}", text):
        raise Unusable(f"its {name} is {text[:40]!r}, expected a number from 1")
    return int(text)


def _sample_ms(options: Mapping[str, str]) -> float | None:
    given = [options.get(name, "") for name in ("bwavgtime", "log_avg_msec")]
    return next((float(text) for text in given if re.fullmatch(r"[1-9][0-9]{0,7}", text)), None)


def _target(options: Mapping[str, str]) -> str:
    names = _COLON.split(options.get("filename", ""))
    if len(names) > 1:
        raise Unusable(
            f"its one job runs on {len(names)} devices or files ({', '.join(names)[:80]}); "
            "record one drive at a time"
        )
    directory = options.get("directory", "")
    return "/".join(part for part in (directory, names[0]) if part)


def _block_bytes(options: Mapping[str, str], *, writes: bool) -> int | None:
    """The size of a request, in bytes; fio's "4k,8k" is of reads and writes."""
    if {"bsrange", "bssplit"} & options.keys():
        return None
    sizes = options.get("bs", "4096").split(",")
    text = sizes[1] if writes and len(sizes) > 1 else sizes[0]
    match = _SIZE.fullmatch(text.strip())
    if match is None:
        raise Unusable(f"its bs is {text[:40]!r}, expected a size such as 4k")
    return int(match[1]) * _MULTIPLES[match[2].lower()]
