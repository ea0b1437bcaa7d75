"""Every family, faults in any order: no false on, no false off, no hang, and on in the end.

In memory on a virtual clock, twenty sequences a unit by default; over real ptys, by the
machine's clock and all units side by side, one of a single step.  A thousand of the ones and
fifty of the others a unit, of up to five steps, take half an hour:

    LEADLINE_PDU_SEQUENCES=1000 LEADLINE_PTY_SEQUENCES=50 \
        ./run shell pytest -s selftests/test_pdu_sequences.py

Those over ptys are repeated by LEADLINE_SEED, which is printed.
"""

import os
import random
import secrets
from collections.abc import Iterator
from concurrent.futures import Future, ThreadPoolExecutor
from pathlib import Path

import pytest
from hypothesis import given, note, settings
from hypothesis import strategies as st

from leadline.power import port as port_module
from leadline.virtual.pdus import login
from selftests.pdu_sequences import Step, carry_out, random_steps
from selftests.pdu_specimens import SPECIMENS, Specimen
from selftests.pdu_worlds import in_memory, over_pty

IN_MEMORY = int(os.environ.get("LEADLINE_PDU_SEQUENCES", "20"))
OVER_PTYS = int(os.environ.get("LEADLINE_PTY_SEQUENCES", "1"))
STEPS = 5  # at most, in a sequence
SEED = int(os.environ.get("LEADLINE_SEED") or secrets.randbits(31))
DEADLINE_S = 3.0  # a tenth of the usual one, for every silence is waited for

ON_PTYS = [specimen for specimen in SPECIMENS if specimen.fits_a_pty]


@pytest.mark.parametrize("specimen", SPECIMENS, ids=str)
@settings(max_examples=IN_MEMORY, deadline=None)
@given(rng=st.randoms(use_true_random=False))
def test_in_memory(specimen: Specimen, rng: random.Random) -> None:
    steps = random_steps(rng, specimen, most=STEPS, slow_s=(0.2, 1.0, 4.0, 11.0))
    note(f"{steps}")
    with in_memory(specimen) as world:
        carry_out(world, specimen, steps)


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
