"""The story of many threads and many streams: a queue is good for these, bad for those, and why.

On 500 GB disks under Solaris (2007), random reads by several threads gained by NCQ and sequential
reads by several streams lost; layer by layer the time was traced to the start of a command, which
took about 20 times as long.  Here a drive's streams take so long when requests are queued.
"""

import re
from typing import Any

from bench.fault_rig import HEALTHY, Seeded
from bench.told import SLOT, Asked, Told, interval, tell

CONCLUDED = (
    "NCQ is good for random reads by threads, bad for streams: a command takes 20 times longer"
)
FACTOR = 20
LONGER = (FACTOR / 2, 1.25 * FACTOR)
"""How much longer a command may seem to take in the device: the way to it, which is the same on
both sides and more on a busy machine, hides some; noise adds."""
WELL_ABOVE, WELL_BELOW = 2.0, 0.5
THREADS, STREAMS = "threads_ncq_on_over_off", "streams_ncq_on_over_off"
PROFILE = {**HEALTHY, "channels": 4, "faults": {"interfering_streams": {"factor": FACTOR}}}
"""With four channels, most requests of sixteen threads wait in the drive: its queue stays full
though the host be late, as it is on a busy machine."""
SLOWER = r"(?s)^FAIL: streams slower with NCQ: .*where the time went: the device takes "
WORDS = ("--no-excuses", "-m", "acceptance", "-k")
GAINED = Asked((*WORDS, "test_streams and threads_that_read and 1.0-16"), {THREADS: ("pass", "")})
LOST = Asked(
    (*WORDS, "test_streams and streams_are_not_slower and 1.0-4"), {STREAMS: ("fail", SLOWER)}
)


def measure() -> dict[str, object]:
    """The story told by such a drive."""
    gained, lost = tell(Seeded(SLOT, PROFILE), [GAINED, LOST])
    return figures_of(gained, lost)


def figures_of(gained: Told, lost: Told) -> dict[str, Any]:
    """What NCQ gains threads and costs streams, where, and what is not as it was seeded."""
    wrong = [*gained.wrong(), *lost.wrong()]
    verdicts = {THREADS: gained.verdict(THREADS), STREAMS: lost.verdict(STREAMS)}
    ratios = {claim: each.get("estimate") or 0.0 for claim, each in verdicts.items()}
    if ratios[THREADS] < WELL_ABOVE:
        wrong.append(f"threads: {ratios[THREADS]:.3g} times, expected {WELL_ABOVE:g} or more")
    if not 0 < ratios[STREAMS] <= WELL_BELOW:
        wrong.append(f"streams: {ratios[STREAMS]:.3g} times, expected {WELL_BELOW:g} or less")
    layer, times = blamed(lost.outcomes.get(STREAMS, ("", ""))[1])
    if not LONGER[0] <= times <= LONGER[1]:
        wrong.append(f"{layer}: {times:g} times longer, expected {LONGER[0]:g} to {LONGER[1]:g}")
    threads, streams = map(interval, verdicts.values())
    return {
        "concluded": CONCLUDED,
        "found": f"with NCQ, threads reach {threads} of their rate without, streams {streams}; "
        f"the {layer} takes {times:g} times longer per command when queued",
        **{claim: round(ratio, 3) for claim, ratio in ratios.items()},
        "layer": layer,
        "times_longer": times,
        "tries": gained.tries + lost.tries,
        "wrong": wrong,
        "within_limits": not wrong,
    }


def blamed(said: str) -> tuple[str, float]:
    """The layer that takes longer, and how many times; "no layer" and 0 where none is named."""
    found = re.search(r"the ([\w ]+) takes ([\d.]+) times longer per command when queued", said)
    return (found[1], float(found[2])) if found else ("no layer", 0.0)
