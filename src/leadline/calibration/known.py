"""What verdicts are told of a rig's noise by its calibration, and when that is stale."""

from datetime import datetime, timedelta

from leadline.calibration.store import Calibration, Conditions
from leadline.plans import SIGMA_SESSION, Noise
from leadline.verdict.calibration import DEEP

STALE_AFTER = timedelta(days=30)
FEWEST_SESSIONS = 3
"""Two know their spread so badly (24.7 times is allowed for) that a guess serves better."""


def noise_of(calibration: Calibration, now_with: Conditions, now: datetime) -> Noise:
    """The noise to allow for, with a note that says where it comes from.

    A stale calibration is used all the same, for a guess would be no better: the note warns
    of what has changed.
    """
    noise = calibration.noise
    figures = f"pair sd {noise.pair_sd:.2%}, sigma_d {noise.sigma_d:.2%}"
    count = len(calibration.sessions)
    enough = count >= FEWEST_SESSIONS
    known = noise.sigma_session if enough else None
    measured_deep = calibration.newest.conditions.deep == DEEP
    deep = noise.sigma_session_deep if enough and measured_deep else None
    if known is None:
        sessions = "one was" if count == 1 else f"{count} were"
        figures += f"; between sessions {SIGMA_SESSION:.0%} was assumed, {sessions} calibrated"
    else:
        figures += f", between sessions {known:.2%}"
        figures += "" if deep is None else f", at depth {DEEP} {deep:.2%}"
    note = f"noise: calibrated {calibration.date:%Y-%m-%d} ({figures})"
    if changes := stale(calibration, now_with, now):
        note += f"; STALE: {', '.join(changes)}; run leadline calibrate again"
    return Noise(
        sigma_d=noise.sigma_d,
        sigma_session=known or SIGMA_SESSION,
        note=note,
        sigma_session_deep=deep,
    )


def stale(calibration: Calibration, now_with: Conditions, now: datetime) -> list[str]:
    """Why a calibration may no longer hold; empty when it should."""
    before = calibration.newest.conditions
    age = now - calibration.date
    changes = [f"it is {age.days} days old"] if age > STALE_AFTER else []
    pairs = (
        ("the drive's firmware", before.firmware, now_with.firmware),
        ("the kernel", before.kernel, now_with.kernel),
        ("fio", before.fio, now_with.fio),
        ("the depth held against 1", str(before.deep), str(now_with.deep)),
    )
    changes += [f"{what} was {old} and is {new}" for what, old, new in pairs if old != new]
    return changes
