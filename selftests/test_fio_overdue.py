"""Slices that do not end in time: whose fault that is."""

from collections.abc import Sequence
from typing import Any

import pytest

from leadline.errors import DriveFault
from leadline.host.connection import Host, open_host
from leadline.host.trouble import DeadlinePassed
from leadline.inventory.rig import HostSpec
from leadline.load import fio
from leadline.load.fio import SAMPLE_S, run_slices
from leadline.load.slices import SliceSetting
from leadline.load.workload import random_read

ASKED = [SliceSetting(None, 4, 0.5)] * 8  # 4 s: 46 s are waited for them


class LateHost:
    """A rig on which fio does not end, or (`answers`) which itself says nothing any more."""

    name = "rig"

    def __init__(
        self, held_s: float, *, left: Sequence[int] = (), counts: bool = True, answers: bool = True
    ) -> None:
        self._held_s, self._left, self._counts, self._answers = held_s, left, counts, answers

    def exists(self, path: str) -> bool:
        assert path == "/sys/block/sdx/inflight"
        return self._counts

    def run(self, argv: Sequence[str], *, deadline: float, **_: Any) -> None:
        if not self._answers:
            raise DeadlinePassed("rig: run sh: no answer in 51 s")
        busy, all_of_them = round(self._held_s / SAMPLE_S), round(deadline / SAMPLE_S)
        texts = ["       0        0\n"] * (all_of_them - busy) + ["       3        1\n"] * busy
        samples = [(SAMPLE_S * n, text) for n, text in enumerate(texts)] if self._counts else []
        raise DeadlinePassed("rig: sh: not finished", b"", b"fio said this", self._left, samples)


@pytest.fixture(autouse=True)
def _has_fio(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(fio, "require", lambda *_: "3.33")


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


def test_a_deadline_tells_what_was_sampled_until_then() -> None:
    with open_host(HostSpec(reach="local")) as host:
        assert isinstance(host, Host)
        with pytest.raises(DeadlinePassed) as caught:
            host.run(["sleep", "1000"], deadline=0.5, sample=("/proc/sys/kernel/ostype", 0.02))
    assert caught.value.left == ()
    assert len(caught.value.samples) > 5
    assert {text for _, text in caught.value.samples} == {"Linux\n"}
