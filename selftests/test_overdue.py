"""Slices, replays and preconditioning that do not end in time: whose fault that is.

That of verified writes is in `test_integrity_session`.
"""

from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import pytest

from leadline.errors import DriveFault, RigTrouble
from leadline.host.connection import Host, open_host
from leadline.host.trouble import DeadlinePassed
from leadline.inventory.rig import HostSpec
from leadline.load import fio, precondition
from leadline.load.fio import run_slices
from leadline.load.overdue import MOST_SAMPLES, held_now
from leadline.load.slices import SliceSetting
from leadline.load.workload import random_read, random_write
from leadline.trace import replaying
from leadline.trace.replay_job import Replay
from leadline.trace.trace import READ, trace_of

ASKED = [SliceSetting(None, 4, 0.5)] * 8  # 4 s: 46 s are waited for them


class LateHost:
    """A rig on which fio does not end, or (`answers`) which itself says nothing any more.

    The drive has requests for `held_s` seconds, or (`share`) for a share of the deadline.
    """

    name = "rig"

    def __init__(
        self,
        held_s: float = 0.0,
        *,
        share: float = 0.0,
        left: Sequence[int] = (),
        counts: bool = True,
        answers: bool = True,
    ) -> None:
        self._held_s, self._share, self._left = held_s, share, left
        self._counts, self._answers = counts, answers

    def exists(self, path: str) -> bool:
        assert path == "/sys/block/sdx/inflight"
        return self._counts

    def run(
        self,
        argv: Sequence[str],
        *,
        deadline: float,
        sample: tuple[str, float] | None,
        **_: Any,
    ) -> None:
        assert (sample is not None) == self._counts
        if not self._answers:
            raise DeadlinePassed("rig: run sh: no answer in 51 s")
        samples: list[tuple[float, str]] = []
        if sample is not None:
            every, held_s = sample[1], max(self._held_s, self._share * deadline)
            busy, all_of_them = round(held_s / every), round(deadline / every)
            assert all_of_them <= max(MOST_SAMPLES, 46 / 0.02), "it is sent home in one piece"
            texts = ["       0        0\n"] * (all_of_them - busy) + ["       3        1\n"] * busy
            samples = [(every * n, text) for n, text in enumerate(texts)]
        raise DeadlinePassed("rig: sh: not finished", b"", b"fio said this", self._left, samples)


@pytest.fixture(autouse=True)
def _has_fio(monkeypatch: pytest.MonkeyPatch) -> None:
    for module in (fio, precondition, replaying):
        monkeypatch.setattr(module, "require", lambda *_: "3.33")


def run(host: LateHost) -> None:
    made: Any = host
    run_slices(made, "/dev/sdx", random_read(), ASKED, depth_path=None, seeds=range(8))


def test_a_drive_that_holds_its_requests_is_at_fault() -> None:
    """Each for less than the 30 s after which the kernel would say something."""
    with pytest.raises(DriveFault, match=r"of 4 s in all within 46 s.*requests for 40 s.*\n.*this"):
        run(LateHost(40.0))


def test_a_drive_that_keeps_fio_from_being_ended_is_at_fault() -> None:
    with pytest.raises(DriveFault, match="not even SIGKILL ended it: it waits for the drive"):
        run(LateHost(3.0, left=[77]))
    with pytest.raises(DriveFault, match="it waits for the drive"):
        run(LateHost(0.0, left=[77], counts=False))


def test_a_rig_that_was_late_with_the_load_is_trouble() -> None:
    with pytest.raises(DeadlinePassed, match=r"requests for 4 s of it; is the rig overloaded"):
        run(LateHost(4.0))
    with pytest.raises(DeadlinePassed, match="is the rig overloaded"):
        run(LateHost(0.0, left=[77]))


def test_where_nobody_counts_requests_it_is_not_known() -> None:
    with pytest.raises(DeadlinePassed, match=r"was ended; does the drive still answer\?"):
        run(LateHost(40.0, counts=False))


def test_a_rig_that_does_not_answer_is_trouble() -> None:
    with pytest.raises(DeadlinePassed):
        run(LateHost(40.0, answers=False))


def replay(host: LateHost) -> None:
    made: Any = host
    trace = trace_of(range(1, 301), READ, 0, 4096)
    replaying.replay(made, "/dev/sdx", [Replay(trace, 8)], "fast", writes=False)


def fill(host: LateHost) -> None:
    made: Any = host
    precondition.precondition(made, "/dev/sdx", random_write(), (0, 4 * 10**12), depth=32)


def round_(host: LateHost) -> None:
    made: Any = host
    span = (0, 1 << 40)
    precondition.precondition(made, "/dev/sdx", random_write(), span, depth=32, fill=False)


@pytest.mark.parametrize(
    ("late", "message"),
    [
        (replay, r"did not end its replay of 300 requests within 90 s, and was ended; the drive"),
        (
            fill,
            r"preconditioning \(fill\) did not end within 16000\d\d s, and was ended; the drive",
        ),
        (round_, r"preconditioning \(random_write\) did not end within 300 s, and was ended; the"),
    ],
)
def test_a_drive_that_is_too_slow_for_a_replay_or_preconditioning_is_at_fault(
    late: Callable[[LateHost], None], message: str
) -> None:
    with pytest.raises(DriveFault, match=rf"rig: /dev/sdx: .*{message}.*had requests.*\n.*this"):
        late(LateHost(share=0.95))
    with pytest.raises(DriveFault, match="not even SIGKILL ended it: it waits for the drive"):
        late(LateHost(share=0.01, left=[77]))
    with pytest.raises(DeadlinePassed, match="s of it; is the rig overloaded"):
        late(LateHost(share=0.3))
    with pytest.raises(DeadlinePassed, match="was ended; does the drive still answer"):
        late(LateHost(share=0.95, counts=False))
    with pytest.raises(DeadlinePassed, match="does the drive still answer"):
        late(LateHost(answers=False))


def test_requests_below_layers_are_counted_at_their_drive() -> None:
    asked: list[str] = []

    class Counting(LateHost):
        def exists(self, path: str) -> bool:
            asked.append(path)
            return True

    host: Any = Counting(share=0.95)
    span, below = (0, 1 << 30), "/sys/block/sdx/inflight"
    with pytest.raises(DriveFault, match="/mnt/file: preconditioning"):
        precondition.precondition(host, "/mnt/file", random_write(), span, depth=32, inflight=below)
    assert asked == [below]


def test_what_a_drive_has_now_is_read_from_the_rig(tmp_path: Path) -> None:
    counted = tmp_path / "inflight"
    counted.write_text("       3        1\n")
    with open_host(HostSpec(reach="local")) as host:
        assert held_now(host, str(counted)) == 4
        assert held_now(host, str(tmp_path / "none")) is None
    with pytest.raises(RigTrouble):
        held_now(host, str(counted))


def test_a_deadline_tells_what_was_sampled_until_then() -> None:
    with open_host(HostSpec(reach="local")) as host:
        assert isinstance(host, Host)
        with pytest.raises(DeadlinePassed) as caught:
            host.run(["sleep", "1000"], deadline=0.5, sample=("/proc/sys/kernel/ostype", 0.02))
    assert caught.value.left == ()
    assert len(caught.value.samples) > 5
    assert {text for _, text in caught.value.samples} == {"Linux\n"}
