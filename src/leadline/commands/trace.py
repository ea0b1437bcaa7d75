"""`leadline trace`: block traces of multitasking; a module each for what is done with them."""

import argparse

from leadline.commands import (
    trace_check,
    trace_generate,
    trace_record,
    trace_replay,
    trace_show,
)

_ACTIONS = (trace_generate, trace_record, trace_check, trace_show, trace_replay)
_EXAMPLES = """\
examples:
  leadline trace generate --list
  leadline trace generate dual-copy --out traces/
  leadline trace check traces/dual-copy.iolog.gz
  leadline trace show traces/*.iolog.gz
  leadline trace replay traces/*.iolog.gz --rig rigs/my-bench.yaml --drive one

`leadline trace ACTION --help` explains each.
"""


def register(subparsers: "argparse._SubParsersAction[argparse.ArgumentParser]") -> None:
    """Add `trace` and its actions to the command line."""
    parser = subparsers.add_parser(
        "trace",
        help="block traces: generate or record, check, show, replay",
        description="Block traces of multitasking loads, as fio's iolog.",
        epilog=_EXAMPLES,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    actions = parser.add_subparsers(dest="action", required=True, metavar="ACTION")
    for action in _ACTIONS:
        action.register(actions)
