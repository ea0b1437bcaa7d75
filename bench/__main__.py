"""`./run bench [name]`: run the benchmarks, or one of them; one JSON object a line."""

import argparse
import importlib
import json
import signal
import sys
from types import FrameType

from leadline.errors import DriveFault, Inconclusive, Misuse, RigTrouble, message_of
from leadline.outcomes import INTERRUPTED_CODE, error_exit_code

NAMES = {
    "first_light": "the suite on the virtual rig, warm: wall time and overhead (3 minutes)",
    "suite": "quick tests, wall time over drive time; two drives side by side (minutes)",
    "acceptance": "healthy drives through -m acceptance, ten times each: false alarms (hours)",
    "traces": "a trace of ten million requests: made, written, read, checked (a minute)",
    "multitasking": "what NCQ gains two desktop tasks at once on four disks (15 minutes)",
    "cold": "from a fresh clone with an empty cache to the summary table (minutes)",
    "starts": "programs started in an emulated guest, at the same addresses or others (a minute)",
    "rates": "rates of slices against the same fio job by hand, interleaved (5 minutes)",
    "power": "PDUs: against powerman, four side by side, and unplugged (minutes)",
    "faults": "each seeded fault of a drive, through `leadline hil`: is it named? (hours)",
    "stories": "the five stories behind the suite, by drives built like theirs (an hour)",
    "pdu_faults": "each fault of a PDU on each family: a table of what came of it (minutes)",
    "matrix": "a matrix of 100,000 cells planned, 10,000 tests of it collected (a minute)",
    "model": "the virtual drive against its profile, a million operations verified (minutes)",
    "ratios": "simulated claims: how often a verdict is wrong, its drive time (minutes)",
    "curves": "simulated depth curves: drive time, false and missed dips (5 minutes)",
    "verdict_speed": "a verdict over 10,000 slices: the time of the statistics alone (a second)",
    "truth": "claims on virtual drives of known ratio: wrong verdicts, drive time (an hour)",
    "practice": "two long runs compared, on the same drives as in truth (an hour)",
    "dips": "depth curves on virtual drives, healthy and with a seeded dip (an hour)",
}
"""What each measures, and about how long it takes on two processors without KVM."""
OF_WORDS = {"acceptance", "faults", "stories"}
"""Benchmarks that take words of their own: ./run bench faults V2 V4 --seed 7."""
GROUPS = {"verdicts": ("ratios", "curves", "verdict_speed", "truth", "practice", "dips")}


def _end(number: int, _: FrameType | None) -> None:
    raise SystemExit(128 + number)


def main() -> int:
    """Run what is asked for; the exit code is 1 when a figure misses its limit.

    Where there is no figure, for a program that is missing or a guest that does not boot, it is
    that of `leadline`, as 3 for the rig's trouble, and no other is run.
    """
    listing = "\n".join(f"  {name:14} {what}" for name, what in NAMES.items())
    listing += "".join(f"\n  {name:14} all of: {', '.join(of)}" for name, of in GROUPS.items())
    parser = argparse.ArgumentParser(
        prog="./run bench",
        description="Run benchmarks; each prints one JSON object on stdout.",
        epilog=f"benchmarks:\n{listing}\n\nwords of their own, as in ./run bench faults --help: "
        f"{', '.join(sorted(OF_WORDS))}\nexample: ./run bench rates",
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    parser.add_argument(
        "name",
        nargs="*",
        metavar="NAME",
        choices=[*NAMES, *GROUPS, []],  # argparse holds no name at all against it, too
        help="one of those below, or several; all of them, which takes a day, when none is given",
    )
    words = sys.argv[1:]
    own = words[1:] if OF_WORDS.intersection(words[:1]) else []
    asked = parser.parse_args(words[: len(words) - len(own)]).name or list(NAMES)
    within = True
    # As Ctrl-C does, so that rigs and folders of a benchmark that is ended go with it.
    signal.signal(signal.SIGTERM, _end)
    for name in [one for each in asked for one in GROUPS.get(each, (each,))]:
        measure = importlib.import_module(f"bench.{name}").measure
        try:
            figures = measure(own) if own else measure()
        except (DriveFault, RigTrouble, Misuse, Inconclusive) as error:
            print(f"bench {name}: {message_of(error)}", file=sys.stderr)
            return error_exit_code(error)
        except KeyboardInterrupt:
            print(f"bench {name}: interrupted", file=sys.stderr)
            return INTERRUPTED_CODE
        print(json.dumps({"benchmark": name, **figures}), flush=True)
        within = within and bool(figures["within_limits"])
    return 0 if within else 1


if __name__ == "__main__":
    sys.exit(main())
