"""pytest's side of Leadline: options, visits, order, outcomes.  Inert unless a rig is named.

What a test may ask for stands in `leadline.fixtures`, one small module a subject;
what happens on the rig stands in `leadline.station`.
"""

import argparse
import os
import signal
from collections.abc import Generator
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

from leadline.errors import Misuse, RigTrouble
from leadline.process import end_with_parent
from leadline.running import (
    GATE_OPEN,
    GATE_OPTION,
    REPLAY_OPTION,
    RUN,
    Run,
    claim_of,
    make_run,
    run_from_worker,
    visit_of,
    worker_plan,
)
from leadline.selection import (
    CURVE_BUDGETS,
    DRIVE_TIME_S,
    applies,
    cuts_power,
    described,
    imply_purposes,
)

if TYPE_CHECKING:
    from xdist.scheduler import LoadScopeScheduling
    from xdist.workermanage import WorkerController

pytest_plugins = (
    "leadline.fixtures.rig",
    "leadline.fixtures.drive",
    "leadline.fixtures.expected",
    "leadline.fixtures.history",
    "leadline.fixtures.integrity",
    "leadline.fixtures.layers",
    "leadline.fixtures.load",
    "leadline.fixtures.power",
)

MARKERS = (
    "claim(name): the claim that this test settles; the firmware matrix gives its limit and its "
    "known issues by that name, and a drive whose class has no limit for it is left out",
    "protocol(*names): collect this test only for drives of these protocols (sata, sas, scsi)",
    "writes: this test writes to the drive, and is collected only where both keys allow it; the "
    "fixtures that write mean it, too",
    "no_limit: this claim needs no limit from the firmware matrix",
    "drive_time(seconds): what one claim of this test may cost in drive time, unless --drive-time "
    "says otherwise",
    "quick: under three minutes of drive time a drive, together; part of acceptance",
    "acceptance: what a new drive is held against once; part of soak",
    "soak: hours",
)


def pytest_addoption(parser: pytest.Parser) -> None:
    group = parser.getgroup("leadline", "Leadline: tests of physical drives on rigs")
    group.addoption(
        "--rig",
        action="append",
        default=[],
        type=Path,
        metavar="FILE",
        help="a rig file (rigs/*.yaml); may be given several times",
    )
    group.addoption(
        "--matrix",
        type=Path,
        metavar="FILE",
        help="the firmware matrix (default: firmware_matrix.yaml here, else the packaged one)",
    )
    group.addoption(
        "--allow-writes",
        action="store_true",
        help="the second key for tests that write: the first is `writes: allowed` on the drive",
    )
    group.addoption(
        "--drive-time",
        type=float,
        metavar="SECONDS",
        help="seconds of drive time that one claim may cost before it is inconclusive (as its "
        f"test says, else {DRIVE_TIME_S:g}), one of a curve {CURVE_BUDGETS} times that",
    )
    group.addoption(
        "--no-excuses",
        action="store_true",
        help="known issues of the firmware matrix excuse nothing",
    )
    group.addoption(
        "--explain",
        action="store_true",
        help="print the explanation of claims that pass, too",
    )
    group.addoption(
        "--results",
        type=Path,
        default=Path("leadline-results"),
        metavar="DIR",
        help="where the results database is kept (leadline-results)",
    )
    group.addoption("--run-id", help="the id of this run in the results (made up when not given)")
    group.addoption(GATE_OPTION, dest="gate", type=int, help=argparse.SUPPRESS)
    group.addoption(REPLAY_OPTION, dest="trace_replay", help=argparse.SUPPRESS)


def pytest_configure(config: pytest.Config) -> None:
    for marker in MARKERS:
        config.addinivalue_line("markers", marker)
    if config.option.help or not (config.option.rig or hasattr(config, "workerinput")):
        return
    if config.option.run_id:
        # `leadline hil` started us, and if it is killed we are to stop as by Ctrl-C.
        end_with_parent(signal.SIGINT)
    try:
        worker_input = getattr(config, "workerinput", None)
        if worker_input is None:
            config.stash[RUN] = make_run(config)
        elif "leadline" in worker_input:
            config.stash[RUN] = run_from_worker(config, worker_input["leadline"])
        else:
            return
        # Not listed above: it is heavy, and of no use where no rig is named.
        config.pluginmanager.import_plugin("leadline.reporting")
    except (Misuse, RigTrouble) as error:
        raise pytest.UsageError(f"leadline: {error}") from error


def pytest_generate_tests(metafunc: pytest.Metafunc) -> None:
    run = metafunc.config.stash.get(RUN, None)
    if run is not None and "visit" in metafunc.fixturenames:
        ids = [visit.id for visit in run.visits]
        metafunc.parametrize("visit", run.visits, ids=ids, indirect=True, scope="session")


def pytest_itemcollected(item: pytest.Item) -> None:
    imply_purposes(item)


def pytest_report_collectionfinish(config: pytest.Config, items: list[pytest.Item]) -> list[str]:
    run = config.stash.get(RUN, None)
    wanted = config.option.collectonly and config.get_verbosity() >= 0
    return described(items, run) if run is not None and wanted else []


@pytest.hookimpl(trylast=True)
def pytest_collection_modifyitems(config: pytest.Config, items: list[pytest.Item]) -> None:
    run = config.stash.get(RUN, None)
    if run is None:
        return
    keep = [item for item in items if applies(item, run)]
    left_out = [item for item in items if item not in keep]
    if left_out:
        config.hook.pytest_deselected(items=left_out)
    for item in keep:
        _excuse_known_issues(item, run)
    # A drive is flashed as seldom as can be.  Within a visit the files' order holds, but power
    # is cut last: a drive that does not come back has then been asked everything else.
    position = {visit.id: n for n, visit in enumerate(run.visits)}
    items[:] = sorted(keep, key=lambda item: (position.get(_visit_id(item), -1), cuts_power(item)))


def _visit_id(item: pytest.Item) -> str:
    visit = visit_of(item)
    return visit.id if visit is not None else ""


def _excuse_known_issues(item: pytest.Item, run: Run) -> None:
    from leadline.claims import ClaimFailed

    visit = visit_of(item)
    if visit is None or run.no_excuses:
        return
    for issue in run.known_issues(visit):
        if issue.excuses and issue.claim == claim_of(item):
            reason = f"known issue: {issue.summary} ({issue.link})"
            item.add_marker(pytest.mark.xfail(raises=ClaimFailed, reason=reason, strict=False))


@pytest.hookimpl(tryfirst=True)
def pytest_runtestloop(session: pytest.Session) -> None:
    """Wait for the word of `leadline hil`, whose virtual rigs boot while tests are collected."""
    gate = session.config.option.gate
    if gate is None or session.config.option.collectonly or hasattr(session.config, "workerinput"):
        return
    if os.read(gate, len(GATE_OPEN)) != GATE_OPEN:
        pytest.exit("leadline hil has ended before the rig was up", returncode=3)


@pytest.hookimpl(wrapper=True)
def pytest_runtest_call(item: pytest.Item) -> Generator[None, Any, Any]:
    """Judge the kernel's events here: in teardown a drive's fault would look like the rig's."""
    if RUN not in item.config.stash or visit_of(item) is None:
        return (yield)
    from leadline.station import watched

    with watched(item):
        return (yield)


@pytest.hookimpl(optionalhook=True)
def pytest_configure_node(node: "WorkerController") -> None:
    """Plan once, in the controlling process, and hand the plan to the workers."""
    run = node.config.stash.get(RUN, None)
    if run is not None:
        node.workerinput["leadline"] = worker_plan(run)


@pytest.hookimpl(optionalhook=True)
def pytest_xdist_make_scheduler(config: pytest.Config, log: Any) -> "LoadScopeScheduling | None":
    run = config.stash.get(RUN, None)
    if run is None:
        return None
    from leadline.distribution import SharedPathScheduling

    return SharedPathScheduling(config, log, {v.id: v.shared_path for v in run.visits})
