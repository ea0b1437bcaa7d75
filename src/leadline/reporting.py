"""What a run says while it goes on and when it ends: outcomes, live line, summary, record.

A pytest plugin that `leadline.plugin` loads.  Facts travel from the process that
drives the rig to the one that prints in the reports' user properties, so that
JUnit XML has them too and xdist carries them.
"""

import time
from collections.abc import Callable, Generator, Sequence
from typing import Any

import pytest

from leadline.brought_home import is_way_home
from leadline.errors import RigTrouble, message_of
from leadline.failed_stations import answers, take_note, uncompared_after
from leadline.inventory.stations import Route
from leadline.outcomes import NOT_KEPT_CODE, Ended, ended_by, exit_code
from leadline.report.itinerary import itinerary_of
from leadline.report.losses import losses, told
from leadline.report.summary import SummaryRow, summary_table
from leadline.results.record import Record
from leadline.results.schema import OutcomeRow
from leadline.running import (
    CHANGES,
    RECORDED,
    RUN,
    VERDICTS,
    Run,
    cell_of,
    claim_of,
    named_in,
    stay_of,
    visit_of,
)
from leadline.selection import not_flashed

PREFIX = "leadline."
NOT_COMPARED = "not_compared"
_SAID = pytest.StashKey[dict[str, str]]()
# Exceptions whose message says everything: their traceback would only hide it.
_PLAIN = {Ended.ERROR, Ended.USAGE}
_LETTERS = {
    Ended.FAIL: ("failed", "F", "FAILED"),
    Ended.ERROR: ("error", "E", "ERROR"),
    Ended.USAGE: ("error", "U", "USAGE"),
    Ended.DEFECT: ("error", "D", "DEFECT"),
    Ended.INCONCLUSIVE: ("inconclusive", "I", "INCONCLUSIVE"),
    Ended.RECORDED: ("recorded", "r", "RECORDED"),
}


@pytest.hookimpl(wrapper=True, tryfirst=True)
def pytest_runtest_makereport(
    item: pytest.Item, call: pytest.CallInfo[None]
) -> Generator[None, pytest.TestReport, pytest.TestReport]:
    """Give the report its outcome by the exception, and the verdicts as properties.

    Of tests without a drive those that fail count, too.  Raises KeyboardInterrupt where a Ctrl-C
    is hidden by what went wrong in giving things back after it: the run ends all the same.
    """
    if call.excinfo is not None and _hides_an_interrupt(call.excinfo.value):
        raise KeyboardInterrupt from call.excinfo.value
    report = yield
    visit = visit_of(item)
    if visit is None and not report.failed:
        return report
    ended = _ended(item, report, call)
    if call.when == "call" or ended is not Ended.PASS:
        found = _found(item, report, call, ended)
        if ended is Ended.PASS and hasattr(report, "wasxfail"):
            found.append((f"{PREFIX}not_needed", report.wasxfail))
        report.user_properties.extend(found)
        item.user_properties.extend(found)  # JUnit XML takes them from the teardown's report
    if report.failed:
        # JUnit and the terminal tell a failure from an error by the phase alone.
        drives_fault = ended in (Ended.FAIL, Ended.INCONCLUSIVE)
        if drives_fault and report.when == "setup":
            report.when = "call"
        elif not drives_fault and report.when == "call":
            report.when = "setup"
        if ended in _PLAIN and call.excinfo is not None and not item.config.option.fulltrace:
            message = message_of(call.excinfo.value)
            report.longrepr = _said_once(item, f"{call.excinfo.typename}: {message}")
    return report


def _hides_an_interrupt(error: BaseException) -> bool:
    context = error.__context__
    while context is not None and not isinstance(context, KeyboardInterrupt):
        context = context.__context__
    return context is not None


def _said_once(item: pytest.Item, message: str) -> str:
    """The message, or who had it first: a rig that is lost has one thing to say, not thirty."""
    first = item.config.stash.setdefault(_SAID, {}).setdefault(message, item.name)
    return message if first == item.name else f"the same as for {first}"


def _ended(item: pytest.Item, report: pytest.TestReport, call: pytest.CallInfo[None]) -> Ended:
    if hasattr(report, "wasxfail"):
        return Ended.EXCUSED if report.skipped else Ended.PASS
    if call.excinfo is None:  # a test that was to fail (xfail, strict) and passes raises nothing
        return Ended.FAIL if report.failed else Ended.PASS
    ended = ended_by(call.excinfo.value)
    if ended is Ended.SKIPPED and item.stash.get(RECORDED, False):
        return Ended.RECORDED
    if ended is Ended.DEFECT and visit_of(item) is None:
        return Ended.FAIL  # of somebody's own test, in which nothing of Leadline need be
    return ended


def _message(report: pytest.TestReport, call: pytest.CallInfo[None]) -> str:
    if call.excinfo is None:
        return report.longreprtext if report.failed else ""
    return message_of(call.excinfo.value)


def _found(
    item: pytest.Item, report: pytest.TestReport, call: pytest.CallInfo[None], ended: Ended
) -> list[tuple[str, object]]:
    """The properties of a report; at a regression station those of the firmware whose fault it is,
    and where that is not the candidate's and is the last one, what the candidate's claim ends as.
    """
    message = _message(report, call)
    if visit_of(item) is None:
        return _properties(item, "", ended, message)
    if call.when != "teardown":
        take_note(item, ended, message)
        other = answers(item, ended, call.excinfo.value if call.excinfo else None)
        if other is not None:
            stay = stay_of(item)
            facts = {"cell": other.id, "claim": claim_of(item), "outcome": ended.value}
            facts["message"] = message
            if stay is not None and stay.judges:
                facts[NOT_COMPARED] = uncompared_after(item, message)
                facts["candidate"] = cell_of(item)
            return [(f"{PREFIX}{key}", value) for key, value in facts.items()]
    return _properties(item, cell_of(item), ended, message)


def _properties(
    item: pytest.Item, cell: str, ended: Ended, message: str
) -> list[tuple[str, object]]:
    found: dict[str, object] = {
        "cell": cell,
        "claim": claim_of(item),
        "outcome": ended.value,
        "message": message,
    }
    if changes := item.stash.get(CHANGES, []):
        found["changes"] = "\n".join(changes)
    verdicts: list[dict[str, Any]] = item.stash.setdefault(VERDICTS, [])
    for n, verdict in enumerate(verdicts):
        suffix = "" if n == 0 else f".{n + 1}"
        found.update({f"{key}{suffix}": value for key, value in verdict.items()})
    return [(f"{PREFIX}{key}", value) for key, value in found.items()]


def facts_of(report: pytest.TestReport | pytest.CollectReport) -> dict[str, Any]:
    """The facts that a report carries, keyed without the prefix; none that of a collection."""
    properties = report.user_properties if isinstance(report, pytest.TestReport) else ()
    return {key.removeprefix(PREFIX): value for key, value in properties if key.startswith(PREFIX)}


def _of_the_candidate(facts: dict[str, Any]) -> dict[str, Any]:
    """Of a last station at which the released firmware failed: the claim that it leaves open."""
    return {
        "cell": facts["candidate"],
        "claim": facts["claim"],
        "outcome": Ended.INCONCLUSIVE.value,
        "message": facts[NOT_COMPARED],
    }


def _of_a_dead_worker(report: pytest.TestReport, route: Route) -> dict[str, Any]:
    """The facts of a test whose worker has died, which xdist reports in its place."""
    if str(report.when) != "???":
        return {}
    name = report.nodeid.partition("[")[0].rpartition("::")[2]
    cells = {visit.id: visit.cell.id for visit in route.visits}
    cells |= {stay.id: stay.candidate.cell.id for stay in route.stays}
    return {
        "cell": cells.get(named_in(report.nodeid, cells), ""),
        "claim": name.removeprefix("test_"),
        "outcome": Ended.DEFECT.value,
        "message": report.longreprtext,
    }


@pytest.hookimpl(tryfirst=True)
def pytest_report_teststatus(
    report: pytest.TestReport | pytest.CollectReport,
) -> tuple[str, str, str] | None:
    outcome = facts_of(report).get("outcome")
    recorded = report.skipped and outcome == Ended.RECORDED
    if outcome is None or not (report.failed or recorded):
        return None
    return _LETTERS.get(Ended(outcome))


def _home_row(row: OutcomeRow) -> SummaryRow:
    """The line of the table for a drive's way home."""
    facts = {"cell": row.cell, "claim": "brought home"}
    return SummaryRow.from_facts(
        row.node, {**facts, "outcome": row.outcome, "message": row.message}
    )


class Reporter:
    """The controlling process's view of a run: it records outcomes and prints the summary."""

    def __init__(self, config: pytest.Config, record: Record, run: Run) -> None:
        self._config = config
        self._record = record
        self._run = run
        self._announced = False
        self._rows: dict[tuple[str, str], SummaryRow] = {}
        self._broken: set[str] = set()
        self._unkept = ""  # why results could not be written; the first time, if ever
        self._session: pytest.Session | None = None
        self._homes: list[OutcomeRow] = []
        self._started = time.monotonic()

    def pytest_sessionstart(self, session: pytest.Session) -> None:
        self._session = session

    def pytest_collectreport(self, report: pytest.CollectReport) -> None:
        if report.failed:
            self._broken.add(report.nodeid)

    @pytest.hookimpl(optionalhook=True)
    def pytest_xdist_node_collection_finished(self, ids: Sequence[str]) -> None:
        """Say what the run is going to do, once: nothing is collected in this process.

        What workers could not collect is wrong usage; xdist would say interrupted.
        """
        if self._broken and not self._config.option.continue_on_collection_errors:
            raise pytest.UsageError(
                f"leadline: {len(self._broken)} error(s) while tests were collected"
            )
        terminal = self._config.pluginmanager.get_plugin("terminalreporter")
        if self._announced or terminal is None:
            return
        self._announced = True
        lines = not_flashed(self._run)
        if self._config.get_verbosity() >= 0:
            lines += itinerary_of(ids, self._run)
        terminal.ensure_newline()
        for line in lines:
            terminal.write_line(line)

    def pytest_runtest_logreport(self, report: pytest.TestReport) -> None:
        facts = facts_of(report) or _of_a_dead_worker(report, self._run.route)
        if "outcome" not in facts or (report.when == "teardown" and not report.failed):
            return
        self._take(report.nodeid, facts, report.duration)
        if NOT_COMPARED in facts:
            self._take(report.nodeid, _of_the_candidate(facts), 0.0)

    def _take(self, node: str, facts: dict[str, Any], seconds: float) -> None:
        self._show(SummaryRow.from_facts(node, facts))
        row = OutcomeRow(
            cell=facts["cell"] or None,
            claim=facts["claim"],
            node=node,
            outcome=facts["outcome"],
            message=facts["message"],
            seconds=seconds,
        )
        self._keep(lambda: self._record.add(row))

    def _keep(self, write: Callable[[], None]) -> None:
        """Write to the results; where they cannot be written (a full disk), the run stops.

        To pytest an error in a hook is a defect, and it would say so at length.
        """
        try:
            write()
        except RigTrouble as trouble:
            self._unkept = self._unkept or message_of(trouble)
            with_workers = self._config.pluginmanager.get_plugin("dsession")
            for stops in filter(None, (self._session, with_workers)):
                stops.shouldstop = "results could not be written"

    def _take_homes(self) -> None:
        self._homes = [row for row in self._record.outcomes() if is_way_home(row)]

    def _show(self, row: SummaryRow) -> None:
        """Have the row in the table, unless the test ended worse before, as the exit code says."""
        place = row.node, row.cell
        before = self._rows.get(place)
        had = [] if before is None else [before.outcome]
        if before is None or exit_code([*had, row.outcome]) != exit_code(had):
            self._rows[place] = row

    def pytest_terminal_summary(self, terminalreporter: pytest.TerminalReporter) -> None:
        for row in self._rows.values():
            wanted = row.outcome is Ended.INCONCLUSIVE or (
                self._config.option.explain and row.explanation
            )
            if wanted:
                terminalreporter.write_sep("_", f"{row.cell}: {row.claim}")
                terminalreporter.write_line(row.explanation or row.message)
        homes = [_home_row(each) for each in self._homes]
        if rows := [*self._rows.values(), *homes]:
            terminalreporter.write_sep("=", f"Leadline, run {self._record.run_id}")
            seconds = time.monotonic() - self._started
            width = terminalreporter._tw.fullwidth
            lost = losses(rows, self._run.route)
            for line in told(lost):
                terminalreporter.write_line(line, red=True)
            terminalreporter.write(summary_table(rows, seconds, width))
            for row in homes:
                if row.message:
                    terminalreporter.write_line(f"brought home: {row.message}", red=True)
            terminalreporter.write_line(f"results: {self._record.directory}")
        if self._unkept:
            terminalreporter.write_line(f"leadline: {self._unkept}", red=True)

    @pytest.hookimpl(trylast=True)
    def pytest_sessionfinish(self, session: pytest.Session, exitstatus: int) -> None:
        """After pytest's own, which brings drives home where a run was stopped."""
        below_hil = self._config.option.gate is not None  # which writes the code that counts
        self._keep(self._take_homes)
        if exitstatus == pytest.ExitCode.OK and any(_home_row(row).message for row in self._homes):
            session.exitstatus = exitstatus = pytest.ExitCode.TESTS_FAILED
        if not below_hil:
            self._keep(lambda: self._record.end(int(exitstatus)))
        self._record.close()
        if self._unkept:
            session.exitstatus = NOT_KEPT_CODE if below_hil else exitstatus or 1


def pytest_configure(config: pytest.Config) -> None:
    run = config.stash.get(RUN, None)
    if run is None or hasattr(config, "workerinput"):
        return
    record = Record(run.results, run.id)
    record.start(run.command, run.version)
    config.pluginmanager.register(Reporter(config, record, run), "leadline-reporter")
