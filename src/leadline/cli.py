"""The `leadline` command: one subcommand a module under `leadline.commands`."""

import argparse
import importlib
import os
import sys
import traceback
from collections.abc import Sequence
from importlib.metadata import version

from leadline.errors import DriveFault, Inconclusive, Misuse, RigTrouble, message_of
from leadline.outcomes import DEFECT_CODE, INTERRUPTED_CODE, UNREAD_CODE, error_exit_code

_COMMANDS = (
    "calibrate",
    "flash",
    "hil",
    "identify",
    "judge",
    "kernel_log",
    "plan",
    "power",
    "power_log",
    "power_map",
    "recompute",
    "trace",
    "virtual",
)
# Commands of two words; the first by itself is a command, too.
_TWO_WORDS = ("power log", "power map")


def main(arguments: Sequence[str] | None = None) -> int:
    """Run one subcommand; its exit code, errors of all four owners printed as one message."""
    words = _joined(sys.argv[1:] if arguments is None else arguments)
    parser = _parser(words[0] if words else "")
    try:
        namespace, rest = parser.parse_known_args(words)
        if rest and not getattr(namespace, "passes_rest", False):
            parser.error(f"unknown arguments: {' '.join(rest)}")
        namespace.rest = rest
        code = namespace.func(namespace)
        sys.stdout.flush()
    except (DriveFault, RigTrouble, Misuse, Inconclusive) as error:
        print(f"leadline: {message_of(error)}", file=sys.stderr)
        return error_exit_code(error)
    except KeyboardInterrupt as interrupt:
        if trouble := message_of(interrupt).strip():
            print(f"leadline: interrupted, {trouble}", file=sys.stderr)
        return INTERRUPTED_CODE
    except BrokenPipeError:
        # The reader has gone (`leadline plan | head`): nothing to say, and nobody to say it to.
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        return UNREAD_CODE  # not 0, which says that a claim holds
    except Exception:
        # Python itself would end with 1, which says that a drive failed.
        traceback.print_exc()
        print("leadline: this is a defect of Leadline's own; please report it", file=sys.stderr)
        return DEFECT_CODE
    return int(code)


def _joined(words: Sequence[str]) -> list[str]:
    """Two words that name one command become one; only at the very beginning.

    So `leadline power --rig FILE log status` is about an outlet that is called log.
    """
    pair = " ".join(words[:2])
    return [pair, *words[2:]] if pair in _TWO_WORDS else list(words)


class _Version(argparse.Action):
    """Prints the version, which is looked up only when it is asked for."""

    def __init__(self, option_strings: Sequence[str], dest: str) -> None:
        super().__init__(option_strings, dest, nargs=0, help="the version of Leadline")

    def __call__(self, parser: argparse.ArgumentParser, *_: object) -> None:
        parser.exit(0, f"leadline {version('leadline')}\n")


def _parser(wanted: str) -> argparse.ArgumentParser:
    """The parser; only the module of the wanted command is imported, if there is one."""
    parser = argparse.ArgumentParser(
        prog="leadline",
        description="Hardware-in-the-loop tests of SATA and SAS drives.",
        epilog="Exit codes: 0 holds, 1 a claim fails, 2 wrong usage or input, 3 rig trouble, "
        "4 inconclusive, 70 a defect of Leadline, 130 interrupted, 141 whoever read the output is "
        "gone.",
    )
    parser.add_argument("--version", action=_Version)
    subparsers = parser.add_subparsers(dest="command", required=True, metavar="COMMAND")
    name = wanted.replace("-", "_").replace(" ", "_")
    for module in [name] if name in _COMMANDS else _COMMANDS:
        importlib.import_module(f"leadline.commands.{module}").register(subparsers)
    return parser


if __name__ == "__main__":
    sys.exit(main())
