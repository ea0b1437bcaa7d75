"""`leadline power map`: which drive each outlet feeds, found by switching them in turn."""

import argparse
import json
import sys
import time
from collections.abc import Mapping, Sequence
from contextlib import ExitStack
from dataclasses import dataclass
from difflib import unified_diff
from itertools import chain
from pathlib import Path
from typing import TYPE_CHECKING, Any

from leadline.errors import Misuse, RigTrouble

if TYPE_CHECKING:
    from leadline.drive.bind import Drive
    from leadline.host.connection import Host
    from leadline.inventory.rig import DriveSpec, Rig
    from leadline.power.byte_log import ByteLogs
    from leadline.power.mapping import Finding, Observation, Place
    from leadline.power.pdu import Pdu

_EXAMPLES = """\
examples:
  leadline power map --rig rigs/bench.yaml           holds the file against the wiring
  leadline power map --rig rigs/bench.yaml --write   and corrects its outlets

Each outlet of the rig file is switched off once, read back, and on again; which drives of the
rig are gone meanwhile shows what it feeds.  Before each cut every drive is flushed and put in
standby, and the host writes its file systems out.  All drives have to be free: the write guard
is asked, and nothing overrides its refusal.

Exit codes: 0 the rig file is right, 1 a drive came back as another one, 2 wrong usage, refused,
or the rig file is wrong, 3 rig trouble.
"""

_LOOK_S = 0.5


def register(subparsers: "argparse._SubParsersAction[argparse.ArgumentParser]") -> None:
    """Add `power map` to the command line."""
    parser = subparsers.add_parser(
        "power map",
        help="which drive each outlet feeds",
        description="Switch each outlet of a rig in turn, learn what it feeds, and hold that "
        "against the rig file.",
        epilog=_EXAMPLES,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    parser.add_argument("--rig", required=True, type=Path, metavar="FILE", help="the rig file")
    parser.add_argument(
        "--all-outlets",
        action="store_true",
        help="switch outlets that the rig file does not have, too, whatever they feed",
    )
    parser.add_argument(
        "--write", action="store_true", help="correct the outlets in the rig file, and show how"
    )
    parser.add_argument("--yes", action="store_true", help="go on without asking")
    parser.add_argument("--json", action="store_true", help="print one JSON object")
    parser.set_defaults(func=run)


@dataclass(frozen=True)
class _Open:
    """The rig while it is mapped: its host, its PDUs, and this machine, where the journal is.

    `mended`: outlets have been switched on just now, which a dead run left off.
    """

    rig: "Rig"
    here: "Host"
    host: "Host"
    pdus: "Mapping[str, Pdu]"
    mended: bool


def run(arguments: argparse.Namespace) -> int:
    """Map the rig; 0 when its file is right, or has been made so.

    Raises Misuse when it is wrong, and when somebody has to be asked and cannot be.
    """
    from leadline.commands.power_map_said import plan
    from leadline.inventory.rewrite import text_of
    from leadline.inventory.rig import load_rig
    from leadline.power.byte_log import ByteLogs, folder_of_command
    from leadline.run_id import new_run_id

    rig = load_rig(arguments.rig)
    if not rig.pdus:
        raise Misuse(f"{rig.where('pdus')}: pdus: found none, expected one whose outlets to map")
    before = text_of(rig.path)
    with ExitStack() as stack:
        logs = stack.enter_context(ByteLogs(folder_of_command(new_run_id()), _tell))
        opened = _open(rig, logs, stack)
        own = _is_own_machine(opened, arguments)
        places, left_out = _places(opened, arguments, own_machine=own)
        drives = _checked(opened)
        _ask(arguments, plan(rig, places, left_out, drives, own_machine=own))
        seen = _cut_all(opened, places)
    return _conclude(arguments, rig, before, seen, left_out, own_machine=own)


def _conclude(
    arguments: argparse.Namespace,
    rig: "Rig",
    before: str,
    seen: "Sequence[Observation]",
    left_out: "Sequence[Place]",
    *,
    own_machine: bool,
) -> int:
    """Hold what was seen against the file, write it if that is asked for, say it."""
    from leadline.commands.power_map_said import entry, sentences
    from leadline.inventory.rig import load_rig
    from leadline.power.mapping import findings

    found = findings(rig, seen, own_machine=own_machine)
    done: dict[str, Any] = {
        "rig": rig.name,
        "file": str(rig.path),
        "outlets": [entry(each, seen) for each in found],
        "not_switched": [{"pdu": place.pdu, "outlet": place.outlet} for place in left_out],
    }
    diff, why_not = _write(rig, before, found) if arguments.write else ("", "")
    if diff:
        found = findings(load_rig(arguments.rig), seen, own_machine=own_machine)
    problems = [f"{each.where}: {each.problem}" for each in found if each.problem]
    done |= {"holds": not problems, "written": bool(diff), "diff": diff, "problems": problems}
    print(json.dumps(done, indent=2) if arguments.json else sentences(done), flush=True)
    if problems:
        raise Misuse("\n".join(filter(None, [*problems, why_not])))
    return 0


def _open(rig: "Rig", logs: "ByteLogs", stack: ExitStack) -> _Open:
    """Outlets of dead runs first, then the PDUs, the host, and the lease of every drive."""
    from leadline.booting import await_boot, left_without_power
    from leadline.host.connection import open_host
    from leadline.host.lease import holder_text, take
    from leadline.inventory.rig import HostSpec
    from leadline.mend import mend_outlets
    from leadline.power.pdu import open_pdu

    here = stack.enter_context(open_host(HostSpec(reach="local")))
    cut = left_without_power(here, [rig])
    mended = mend_outlets(here, [rig], logs)
    for sentence in chain(mended, *map(await_boot, cut)):
        _tell(sentence)
    pdus = {spec.name: stack.enter_context(open_pdu(spec, log=logs.of(spec))) for spec in rig.pdus}
    host = stack.enter_context(open_host(rig.host))
    for spec in rig.drives:
        resource = spec.resource
        stack.enter_context(take(host, resource, holder_text("power map")))
    return _Open(rig, here, host, pdus, bool(mended))


def _is_own_machine(opened: _Open, arguments: argparse.Namespace) -> bool:
    from leadline.drive.guard import is_own_machine

    own = is_own_machine(opened.host)
    if own and arguments.all_outlets:
        raise Misuse(
            f"{opened.rig.path}: --all-outlets: any outlet that is not in the file may feed this "
            "machine, which would cut its own power; steer the rig from another machine"
        )
    return own


def _places(
    opened: _Open, arguments: argparse.Namespace, *, own_machine: bool
) -> "tuple[tuple[Place, ...], tuple[Place, ...]]":
    """The outlets to cut, and those that are on and are left out."""
    from leadline.power.mapping import Place, place_of, to_cut

    rig = opened.rig
    on: set[Place] = set()
    for name, pdu in opened.pdus.items():
        if pdu.reads_back():
            on |= {Place(name, number) for number, is_on in pdu.status().items() if is_on}
        else:  # those that the file names are, or their drives would not be there
            on |= {place_of(entry) for entry in rig.outlets if entry.pdu == name}
    for entry in rig.outlets:
        if place_of(entry) not in on:
            raise RigTrouble(
                f"{rig.path}: outlet {entry.name}: {place_of(entry)} is off, so what it feeds "
                f"cannot be seen; `leadline power --rig {rig.path} {entry.name} on` switches it on"
            )
    places = to_cut(rig, on, all_outlets=arguments.all_outlets, own_machine=own_machine)
    if not places:
        raise Misuse(
            f"{rig.where('outlets')}: outlets: found none to switch, expected one at least; "
            "--all-outlets switches those that the file does not have"
        )
    return places, tuple(sorted(on - set(places)))


def _checked(opened: _Open) -> "list[Drive]":
    """Every drive, bound and found free by the write guard: before anybody is asked."""
    from leadline.drive.guard import admit_rig

    drives = [_bound(opened, spec) for spec in opened.rig.drives]
    admit_rig(opened.host, drives).release()
    return drives


def _bound(opened: _Open, spec: "DriveSpec") -> "Drive":
    """The drive; one that has been switched on just now gets its time to be ready."""
    from leadline.drive.bind import bind

    limit = time.monotonic() + (spec.ready_s if opened.mended else 0)
    while True:
        try:
            return bind(opened.host, spec)
        except RigTrouble:
            if time.monotonic() >= limit:
                raise
        time.sleep(_LOOK_S)


def _ask(arguments: argparse.Namespace, what: str) -> None:
    _say(what)
    if arguments.yes:
        return
    if not (sys.stdin.isatty() and sys.stderr.isatty()):
        raise Misuse("nothing was switched: there is no terminal to ask on; give --yes")
    print("Go on? [y/N] ", end="", file=sys.stderr, flush=True)
    if sys.stdin.readline().strip().lower() not in ("y", "yes"):
        raise Misuse("nothing was switched")


def _cut_all(opened: _Open, places: "Sequence[Place]") -> "list[Observation]":
    from leadline.commands.power_map_said import went
    from leadline.host.journal import Journal
    from leadline.power.blackout import Cut, black_out
    from leadline.power.cycle import Bench
    from leadline.power.mapping import expected, next_cut, off_s, place_of
    from leadline.power.spin_up import SpinUp
    from leadline.power.supplies import Supply

    rig = opened.rig
    starts = {place_of(entry): SpinUp.by(rig, entry) for entry in rig.outlets}
    seen: list[Observation] = []
    with Journal(opened.here, "power map") as journal:
        bench = Bench(opened.host, rig.host, journal)
        while group := next_cut(rig, places, seen):
            which = " and ".join(map(str, group))
            _say(f"[{len(seen) + 1}] {which}: off for {off_s(rig):g} s")
            cut = Cut(
                tuple(
                    Supply(opened.pdus[place.pdu], place.outlet, starts.get(place))
                    for place in group
                ),
                expected(rig, group),
                off_s(rig),
                rig.host.boot_deadline_s,
            )
            seen.append(black_out(bench, rig.drives, cut))
            _say(f"[{len(seen)}] {which}: {went(seen[-1])} ({seen[-1].seconds:.1f} s)")
    return seen


def _write(rig: "Rig", before: str, found: "Sequence[Finding]") -> tuple[str, str]:
    """The rig file corrected: how it changed; or why it was left alone."""
    from leadline.inventory.rewrite import write_outlets
    from leadline.power.mapping import edits

    wanted = edits(rig, found)
    if wanted is None:
        return "", (
            "Nothing was written: an outlet of the file feeds nothing known, and only a person "
            "can say what it should; --all-outlets looks for its drive on the other outlets"
        )
    if not wanted:
        return "", ""
    after = write_outlets(rig.path, before, wanted)
    old, new = (text.splitlines(keepends=True) for text in (before, after))
    return "".join(unified_diff(old, new, str(rig.path), f"{rig.path} (written)")), ""


def _tell(sentence: str) -> None:
    _say(f"leadline: {sentence}")


def _say(sentence: str) -> None:
    print(sentence, file=sys.stderr, flush=True)
