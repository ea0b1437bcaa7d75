"""pytest's side of Leadline: options, visits, order, outcomes.  Inert unless a rig is named.

What a test may ask for stands in `leadline.fixtures`, one small module a subject;
what happens on the rig stands in `leadline.station`.
"""

import argparse
import os
import signal
from collections.abc import Generator, Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

from leadline.errors import Misuse, RigTrouble
from leadline.process import end_with_parent
from leadline.running import (
    GATE_OPEN,
    GATE_OPTION,
    MEASURED,
    REPLAY_OPTION,
    RESULTS,
    RUN,
    STORED,
    Run,
    claim_of,
    make_run,
    run_from_worker,
    stay_of,
    subject_of,
    visit_of,
    worker_plan,
)
from leadline.selection import (
    CURVE_BUDGETS,
    DRIVE_TIME_S,
    applies,
    check_marks,
    compares_units,
    cuts_power,
    described,
    imply_purposes,
    imply_writes,
    not_flashed,
    reads_counters,
)

if TYPE_CHECKING:
    from xdist.scheduler import LoadScopeScheduling
    from xdist.workermanage import WorkerController

    from leadline.inventory.plan import Visit
    from leadline.inventory.stations import Stay

pytest_plugins = (
    "leadline.fixtures.rig",
    "leadline.fixtures.drive",
    "leadline.fixtures.expected",
    "leadline.fixtures.history",
    "leadline.fixtures.integrity",
    "leadline.fixtures.layers",
    "leadline.fixtures.load",
    "leadline.fixtures.multitasking",
    "leadline.fixtures.power",
)

MARKERS = (
    "claim(name): the claim that this test settles; the firmware matrix gives its limit and its "
    "known issues by that name, and a drive whose class has no limit for it is left out; "
    "claim(name, limit=other) has the limit of that other name",
    "protocol(*names): collect this test only for drives of these protocols (sata, sas, scsi)",
    "must(*names, **values): collect this test only where the firmware matrix says so of the drive "
    "on its controller: must(ncq='none'), or must('max_queue_depth') where it says any",
    "writes: this test destroys data, and is collected only where both keys allow it; one that "
    "asks for a fixture that writes has the mark by itself",
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
        "--allow-flash",
        action="store_true",
        help="the second key for changing a drive's firmware: the first is `flash: allowed` on it",
    )
    group.addoption(
        "--keep-firmware",
        action="store_true",
        help="leave drives on the firmware that was tested last, not on that of the rig file",
    )
    group.addoption(
        "--drive-time",
        type=float,
        metavar="SECONDS",
        help="seconds of drive time that one claim may cost before it is inconclusive (as its "
        f"test says, else {DRIVE_TIME_S:g}), one of a curve {CURVE_BUDGETS} times that",
    )
    group.addoption(
        "--baseline",
        choices=[MEASURED, STORED],
        default=MEASURED,
        help="what a candidate is held against: the released firmware measured in this run "
        "(measured), or what an earlier run stored of it, while the rig's calibration is the same "
        "and fresh (stored)",
    )
    group.addoption(
        "--rounds",
        type=int,
        default=1,
        metavar="N",
        help="how often a drive goes from the released firmware to a candidate and back: each "
        "round takes two flashes, and what stations differ by counts 1/sqrt(N) (1)",
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
        default=RESULTS,
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
    if run is None or "visit" not in metafunc.fixturenames:
        return
    check_marks(metafunc.definition)
    visits = [visit for visit in run.route.visits if visit.after is None]
    ids = [visit.id for visit in visits]
    if "stay" not in metafunc.fixturenames:
        metafunc.parametrize("visit", visits, ids=ids, indirect=True, scope="session")
        return
    points: list[tuple[Visit, Stay | None]] = [(stay.visit, stay) for stay in run.route.stays]
    # With nothing to compare there is no station, and `selection.applies` leaves the tests out.
    points = points or [(visit, None) for visit in visits]
    ids = [(stay or visit).id for visit, stay in points]
    metafunc.parametrize(("visit", "stay"), points, ids=ids, indirect=True, scope="session")


def pytest_itemcollected(item: pytest.Item) -> None:
    """Here, for what `-m` leaves out is decided when all items have been collected."""
    imply_purposes(item)
    imply_writes(item, item.config.stash.get(RUN, None))


def pytest_report_header(config: pytest.Config) -> list[str]:
    """What the plan warns of: it is said before the run, and not to those alone who ask for it."""
    run = config.stash.get(RUN, None)
    if run is None:
        return []
    from leadline.inventory.plan_warnings import plan_warnings

    warnings = plan_warnings(list(run.rigs.values()), run.matrix, run.today)
    return [f"leadline: warning: {warning}" for warning in warnings]


def pytest_report_collectionfinish(config: pytest.Config, items: list[pytest.Item]) -> list[str]:
    run = config.stash.get(RUN, None)
    if run is None:
        return []
    if config.get_verbosity() < 0:
        return not_flashed(run)
    from leadline.report.itinerary import itinerary

    costs = described(items, run) if config.option.collectonly else []
    return [*not_flashed(run), *itinerary(items, run), *costs]


@pytest.hookimpl(trylast=True)
def pytest_collection_modifyitems(config: pytest.Config, items: list[pytest.Item]) -> None:
    run = config.stash.get(RUN, None)
    if run is None:
        return
    keep: list[pytest.Item] = []
    left_out: list[pytest.Item] = []
    for item in items:
        (keep if applies(item, run) else left_out).append(item)
    if left_out:
        config.hook.pytest_deselected(items=left_out)
    for item in keep:
        _excuse_known_issues(item, run)
    position = {visit.id: n for n, visit in enumerate(run.route.visits)}
    places = {item: _place(item, place, position) for place, item in enumerate(keep)}
    items[:] = sorted(keep, key=places.__getitem__)


def _place(item: pytest.Item, place: int, position: Mapping[str, int]) -> tuple[int, int, int]:
    """Where a test, collected as number `place`, stands among all.

    A drive is flashed as seldom as can be.  Within a visit the files' order holds, but it is held
    against others of its kind after its own tests, for they are on record then; its error
    counters are read when it has done everything else, and power is cut last: a drive that does
    not come back has then been asked everything.  The
    stations of regression claims are as near to the flash between them as can be, and the one
    before it in the opposite order, so that nothing but the flash lies between the two.
    """
    visit, stay = visit_of(item), stay_of(item)
    if visit is None:
        return -1, 0, place
    at = position[visit.id]
    if stay is None:
        last = (compares_units(item), reads_counters(item), cuts_power(item))
        return at, max(n * of for n, of in enumerate((True, *last), 1)), place
    return (at, 5, -place) if stay.ends_visit else (at, 0, place)


def _excuse_known_issues(item: pytest.Item, run: Run) -> None:
    """Those that the plan knows of; what depends on the rig's kernel comes at the test's call."""
    from leadline.excuses import excuse
    from leadline.inventory.globs import ANY

    subject = subject_of(item)
    if subject is None or run.no_excuses:
        return
    for issue in run.known_issues(subject):
        lasts = issue.excuses and not issue.expired(run.today) and issue.kernel == ANY
        if lasts and issue.claim == claim_of(item):
            excuse(item, issue)


@pytest.hookimpl(tryfirst=True)
def pytest_runtestloop(session: pytest.Session) -> None:
    """Wait for the word of `leadline hil`, whose virtual rigs boot while tests are collected.

    Test files that cannot be imported are wrong usage; pytest itself would say interrupted.
    """
    if hasattr(session.config, "workerinput"):
        return  # what it could not collect, the controlling process says
    broken = 0 if session.config.option.continue_on_collection_errors else session.testsfailed
    if broken and RUN in session.config.stash:
        raise pytest.UsageError(f"leadline: {broken} error(s) while tests were collected")
    gate = session.config.option.gate
    if gate is None or session.config.option.collectonly:
        return
    if os.read(gate, len(GATE_OPEN)) != GATE_OPEN:
        pytest.exit("leadline hil has ended before the rig was up", returncode=3)


@pytest.hookimpl(wrapper=True)
def pytest_runtest_setup(item: pytest.Item) -> Generator[None, Any, Any]:
    """What the kernel says meanwhile belongs to this test, whether its call comes or not."""
    if RUN not in item.config.stash or visit_of(item) is None:
        return (yield)
    from leadline.station import set_up

    with set_up(item):
        return (yield)


@pytest.hookimpl(wrapper=True)
def pytest_runtest_call(item: pytest.Item) -> Generator[None, Any, Any]:
    """Judge the kernel's events here: in teardown a drive's fault would look like the rig's."""
    if RUN not in item.config.stash or visit_of(item) is None:
        return (yield)
    from leadline.excuses import while_they_last
    from leadline.station import watched

    with watched(item), while_they_last(item):
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

    return SharedPathScheduling(config, log, {v.id: v.shared_path for v in run.route.visits})
