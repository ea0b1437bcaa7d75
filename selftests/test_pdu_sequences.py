"""Every family, faults in any order: no false on, no false off, no hang, and on in the end.

In memory on a virtual clock, fifty sequences a unit by default; over real ptys, by the
machine's clock and all units side by side, one of a single step.  A thousand of the ones and
fifty of the others a unit take an hour:

    LEADLINE_PDU_SEQUENCES=1000 LEADLINE_PTY_SEQUENCES=50 \
        ./run shell pytest -s selftests/test_pdu_sequences.py

Those over ptys are repeated by LEADLINE_SEED, which is printed.
"""

import os
import random
import secrets
from collections.abc import Iterator
from concurrent.futures import Future, ThreadPoolExecutor
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

import pytest
from hypothesis import given, note, settings
from hypothesis import strategies as st

from leadline.power import port as port_module
from leadline.power.pdu import OVERTIME_S, SWITCH_S, Pdu
from leadline.power.port import where
from leadline.power.session import Session
from leadline.virtual.pdus import login
from leadline.virtual.pdus.line import Dialogue
from selftests.pdu_line import VirtualLine, bench
from selftests.pdu_pty import over_pty
from selftests.pdu_sequences import Outage, Step, carry_out, random_steps
from selftests.pdu_specimens import SPECIMENS, Specimen

IN_MEMORY = int(os.environ.get("LEADLINE_PDU_SEQUENCES", "50"))
OVER_PTYS = int(os.environ.get("LEADLINE_PTY_SEQUENCES", "1"))
STEPS = 5  # at most, in a sequence
SEED = int(os.environ.get("LEADLINE_SEED") or secrets.randbits(31))
DEADLINE_S = 3.0  # a tenth of the usual one, for every silence is waited for

ON_PTYS = [specimen for specimen in SPECIMENS if specimen.fits_a_pty]


@dataclass
class InMemory:
    """A `pdu_sequences.World`."""

    line: VirtualLine
    pdu: Pdu
    deadline_s: float = SWITCH_S
    late_s: float = 2 * OVERTIME_S + 1  # another outlet that moved has been put back in it

    @property
    def dialogue(self) -> Dialogue:
        return self.line.dialogue

    def now(self) -> float:
        return self.line.now()

    @contextmanager
    def unplugged(self, outage: Outage) -> Iterator[None]:
        """It may be so after the block, too: nothing happens then, and no time passes."""

        def back() -> None:
            self.dialogue.faults.left_at = outage.left_at
            self.dialogue.begin()
            self.line.coming[:] = [(self.line.time, outage.leftover)]

        self.line.unplug(outage.for_s, after_s=outage.after_s, when_back=back)
        yield

    def begin_anew(self) -> None:
        self.pdu.close()
        spec = self.pdu.spec
        session = Session(self.line.open, where(spec), clock=self.line)
        session.reopen(SWITCH_S)
        self.pdu = Pdu(spec, session)


@pytest.mark.parametrize("specimen", SPECIMENS, ids=str)
@settings(max_examples=IN_MEMORY, deadline=None)
@given(rng=st.randoms(use_true_random=False))
def test_in_memory(specimen: Specimen, rng: random.Random) -> None:
    steps = random_steps(rng, specimen, most=STEPS, slow_s=(0.2, 1.0, 4.0, 11.0))
    note(f"{steps}")
    with bench(None, specimen.family, specimen.unit) as (pdu, line):
        carry_out(InMemory(line, pdu), specimen, steps)


# Over ptys.

Ran = dict[Specimen, "Future[int]"]


@pytest.fixture(scope="module")
def over_ptys(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Ran]:
    """How many steps were gone with each unit, or what was wrong; all begin together."""
    print(f"\nLEADLINE_SEED={SEED}")
    folder = tmp_path_factory.mktemp("ptys")
    with pytest.MonkeyPatch.context() as patch, ThreadPoolExecutor(len(ON_PTYS)) as pool:
        patch.setattr(port_module, "LOCK_DIRECTORY", folder)
        patch.setenv(login.PASSWORD_ENV, login.PASSWORD)
        yield {specimen: pool.submit(_sequences, folder, specimen) for specimen in ON_PTYS}


def _sequences(folder: Path, specimen: Specimen) -> int:
    gone = 0
    for number in range(OVER_PTYS):
        rng = random.Random(f"{SEED} {specimen} {number}")
        steps = random_steps(
            rng, specimen, most=min(STEPS, OVER_PTYS), slow_s=(0.05, 0.2, 1.0, 3.0)
        )
        _sequence(folder, specimen, number, steps)
        gone += len(steps)
    return gone


def _sequence(folder: Path, specimen: Specimen, number: int, steps: list[Step]) -> None:
    try:
        with over_pty(folder, specimen, deadline_s=DEADLINE_S, late_s=60.0) as world:
            carry_out(world, specimen, steps)
    except Exception as error:
        error.add_note(f"LEADLINE_SEED={SEED}, sequence {number} of {specimen}: {steps}")
        raise


@pytest.mark.parametrize("specimen", ON_PTYS, ids=str)
def test_over_a_pty(over_ptys: Ran, specimen: Specimen) -> None:
    assert over_ptys[specimen].result() >= OVER_PTYS
