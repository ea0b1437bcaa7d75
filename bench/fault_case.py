"""What a case of a seeded fault is: its drives, the tests that are there for it, what is right."""

from collections.abc import Callable, Iterator, Mapping
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from dataclasses import dataclass, replace

from bench.fault_rig import DEADLINE_S, HEALTHY, Seeded
from leadline.inventory.rig import Rig

Right = Mapping[str, tuple[str, str]]
"""By claim: the outcome, and what must be found in what is said of it (a regular expression)."""

EIGHT, OFF, NO_DIP = "depth_8_over_depth_1", "ncq_off_over_on", "no_dip"
ADVERTISED, LADDER = "drive_advertises_ncq", "ncq_ladder_holds"
ALLOWED = "kernel_allows_a_queue"
READ_BACK = "every_read_beside_queued_writes_returns_what_was_written"
CUT = "flushed_writes_outlast_a_power_cut_in_the_middle_of_the_load"
BACK, READY = "drive_comes_back_as_itself", "ready_s"
SIZE = "request_size"
MIX = "random_mix_depth_8_over_depth_1"
MIX_NO_DIP, MIX_NO_COLLAPSE = "random_mix_no_dip", "random_mix_no_collapse"
WORDS = {
    EIGHT: "depth_8_is",
    OFF: "switching_ncq_off_costs_what",
    NO_DIP: "no_depth_is_slower",
    "no_collapse": "deepest_queue",
    ADVERTISED: "advertises",
    LADDER: "ladder",
    ALLOWED: "kernel_allows",
    "streams_ncq_on_over_off": "(streams_are_not_slower and 1.0-4)",
    READ_BACK: "every_read_beside",
    CUT: "flushed_writes_outlast",
    BACK: "comes_back",
    READY: "ready_in_time",
    SIZE: "(arrive_as_large and 1024k)",
    MIX: "(busy_server_needs_the_queue and not layers)",
    MIX_NO_DIP: "(busy_server_meets_no_dip and not layers)",
    MIX_NO_COLLAPSE: "(busy_server_keeps and not layers)",
}
"""By which words pytest chooses the test of each claim."""

FAULTY, BESIDE = "faulty", "beside"
"""The slots."""


def nothing(rig: Rig) -> None:
    """What most cases do beside their tests."""


@dataclass(frozen=True)
class Case:
    """One fault, seeded.

    `before` is called with the rig, which is up, and `meanwhile` while the tests run.  `loses`
    where something must have been lost, and may.  `purpose` is the mark of the suite's tests,
    `deadline_s` how many seconds they may take before they count as hung.
    """

    name: str
    seeded: str
    drives: tuple[Seeded, ...]
    right: Right
    kernel_arguments: str = ""
    before: Callable[[Rig], None] = nothing
    meanwhile: Callable[[Rig], None] = nothing
    loses: bool = False
    purpose: str = "acceptance"
    deadline_s: float = DEADLINE_S

    def right_for(self, slot: str) -> Right:
        """What must come of the tests on one of the drives: beside the fault, that they pass."""
        return self.right if slot == FAULTY else dict.fromkeys(self.right, ("pass", ""))

    @property
    def words(self) -> list[str]:
        """The arguments of `leadline hil`."""
        return [*self.whole_words, "-k", " or ".join(WORDS[claim] for claim in self.right)]

    @property
    def whole_words(self) -> list[str]:
        """The arguments that run all tests."""
        return ["--allow-writes", "--no-excuses", "-m", self.purpose]

    @contextmanager
    def beside_the_tests(self, rig: Rig) -> Iterator[None]:
        """While the block lasts, `meanwhile` runs in a thread; what it raises is raised here."""
        with ThreadPoolExecutor(1) as pool:
            acting = pool.submit(self.meanwhile, rig)
            yield
            acting.result()


def sata(profile: Mapping[str, object]) -> tuple[Seeded, Seeded]:
    """A SATA drive that is so, and a healthy one beside it."""
    return Seeded(FAULTY, {**HEALTHY, **profile}), Seeded(BESIDE)


def ide(kind: str = "SSD", queue_depth: int = 32) -> tuple[Seeded, Seeded]:
    """A drive on a controller that has no queue, and a healthy one on one that has."""
    return Seeded(FAULTY, bus="ide", kind=kind, queue_depth=queue_depth), Seeded(BESIDE)


def scsi(profile: Mapping[str, object]) -> tuple[Seeded, Seeded]:
    """The same of SCSI, each on an outlet of its own."""
    profile = {**HEALTHY, **profile}
    faulty = Seeded(FAULTY, profile, "virtio-scsi", kind="SCSI SSD", queue_depth=128)
    return faulty, replace(faulty, slot=BESIDE, profile=HEALTHY)
