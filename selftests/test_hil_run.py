"""`leadline hil` around its child: exit codes, the record and what is mended."""

import json
import shlex
import sqlite3
import sys
from collections.abc import Sequence
from pathlib import Path

import pytest

from leadline.commands import hil
from leadline.errors import RigTrouble
from leadline.host import journal
from leadline.host.connection import open_host
from leadline.inventory.rig import HostSpec
from leadline.power.outlets import ENTRY
from leadline.preflight import refuse_absent
from leadline.results.record import FILE_NAME
from leadline.virtual.pdus.pty import VirtualPdu
from selftests.hil_world import Vendor, vendor
from selftests.power_world import pdu_spec, quick
from selftests.vendor import MATRIX
from selftests.visit_world import RIG as RIG_TEXT

__all__ = ["quick", "vendor"]  # fixtures


@pytest.mark.parametrize(
    ("selected", "code"),
    [
        ("holds", 0),
        ("plain", 1),
        ("test_usage or plain", 2),
        ("test_rig or holds", 3),
        ("evidence", 4),
        ("defect", 70),
        ("crash", 70),
        ("without_a_drive", 1),
        ("without_a_drive or evidence or test_rig", 1),
        ("no_such_test", 2),
    ],
)
def test_the_exit_code_is_what_the_tests_came_to_and_so_on_record(
    vendor: Vendor, selected: str, code: int
) -> None:
    assert vendor.hil("-k", selected, "test_all.py") == code
    assert vendor.exit_code() == code
    (run,) = vendor.kept("runs")
    assert vendor.mended == ([] if code == 0 else [(["bench"], run["id"])])
    files = f"--rig {vendor.rig} --matrix {vendor.folder / 'matrix.yaml'}"
    chosen = shlex.quote(selected)
    assert run["command"] == f"leadline hil {files} -k {chosen} test_all.py", "to be run again"


FILLS_THE_DISK = """
import pytest

def pytest_configure(config):
    config.pluginmanager.register(Fills(config))

class Fills:
    def __init__(self, config):
        self.config = config
    @pytest.hookimpl(tryfirst=True)
    def pytest_runtest_logreport(self, report):
        reporter = self.config.pluginmanager.get_plugin("leadline-reporter")
        if reporter and "as_it_fills" in report.nodeid:  # SQLite's own limit: as of a full disk
            with reporter._record.engine.connect() as connection:
                connection.exec_driver_sql("PRAGMA max_page_count = 1")
"""
AS_IT_FILLS = """
from leadline.errors import DriveFault

def test_before(visit):
    pass
def test_as_it_fills(visit):
    raise DriveFault("the drive did it, at length: " + 40000 * ".")
def test_after(visit):
    pass
"""


@pytest.mark.parametrize("words", [(), ("-k", "fills"), ("-n", "2", "-k", "fills")])
def test_a_disk_that_fills_in_a_run_is_one_message_and_the_rigs_trouble(
    vendor: Vendor, capfd: pytest.CaptureFixture[str], words: Sequence[str]
) -> None:
    """A run that went on would keep nothing of what it finds; and to pytest it is a defect."""
    with (vendor.folder / "conftest.py").open("a") as conftest:
        conftest.write(FILLS_THE_DISK)
    (vendor.folder / "test_full.py").write_text(AS_IT_FILLS)
    assert vendor.hil("--tb=no", *words, "test_full.py") == 3
    out, err = capfd.readouterr()
    assert "INTERNALERROR" not in out + err
    assert "Traceback" not in out + err
    message = "the result could not be written (database or disk is full); free some space or name"
    assert (out + err).count(message) == 1
    assert "as_it_fills" in out.partition("Leadline, run")[2], "it stands in the table"
    assert "results could not be written" in out, "why the rest was not run"
    assert [row["claim"] for row in vendor.kept("outcomes")] == ([] if words else ["before"])
    assert len(vendor.mended) == 1, "what the run borrowed is given back"


@pytest.mark.parametrize("words", [("--run-id", "mine"), ("--run-id=mine",)])
def test_an_id_of_its_own_is_not_to_be_had(
    vendor: Vendor, capfd: pytest.CaptureFixture[str], words: Sequence[str]
) -> None:
    """The tests would be on record under it, and the exit code of a run without any be 0."""
    assert vendor.hil(*words, "-k", "test_rig", "test_all.py") == 2
    assert "--run-id: leadline hil gives each run its id; leave it out" in capfd.readouterr().err
    assert not (vendor.folder / "leadline-results").exists()


def test_an_option_that_pytest_does_not_know_is_usage(vendor: Vendor) -> None:
    assert vendor.hil("--no-such-option", "test_all.py") == 2


def test_a_file_of_tests_that_cannot_be_imported_is_usage(
    vendor: Vendor, capfd: pytest.CaptureFixture[str]
) -> None:
    """To pytest itself it is an interruption, as by Ctrl-C."""
    (vendor.folder / "test_bad.py").write_text("import no_such_module\n")
    assert vendor.hil("test_bad.py") == 2
    out, err = capfd.readouterr()
    assert "No module named 'no_such_module'" in out
    assert "leadline: 1 error(s) while tests were collected" in out + err


@pytest.mark.parametrize(
    ("words", "code"),
    [
        (("-x", "-k", "plain", "test_all.py"), 1),
        (("-k", "crash", "test_all.py"), 70),
        (("test_bad.py",), 2),
    ],
    ids=["first-failure", "crash", "not-importable"],
)
def test_the_exit_code_is_the_same_with_several_workers(
    vendor: Vendor, words: tuple[str, ...], code: int
) -> None:
    (vendor.folder / "test_bad.py").write_text("import no_such_module\n")
    assert vendor.hil("-n", "2", *words) == code
    assert vendor.exit_code() == code


def test_a_worker_that_dies_takes_one_test_with_it(vendor: Vendor) -> None:
    (vendor.folder / "test_one.py").write_text(
        "import os, pytest\n"
        "@pytest.mark.parametrize('size', ['4k'])\n"
        "def test_dies(visit, size): os._exit(9)\n"
        "def test_holds(visit): pass\n"
    )
    assert vendor.hil("-n", "2", "-k", "a-MODEL", "test_one.py") == 70
    outcomes = [(row["cell"], row["claim"], row["outcome"]) for row in vendor.kept("outcomes")]
    cell = "bench-a-MODEL-1.0"
    assert sorted(outcomes) == [(cell, "dies", "defect"), (cell, "holds", "pass")]


def test_what_was_mended_is_said_even_where_nobody_listens(
    vendor: Vendor, capfd: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    vendor.hil("-k", "plain and not b", "test_all.py")
    said = capfd.readouterr().err
    assert "leadline: a setting was given back\nleadline: and another\n" in said

    class Gone:
        def write(self, _: str) -> None:
            raise BrokenPipeError

        def flush(self) -> None:
            pass

    monkeypatch.setattr(sys, "stderr", Gone())
    assert vendor.hil("-k", "plain", "test_all.py") == 1


def test_json_is_all_of_stdout(vendor: Vendor, capfd: pytest.CaptureFixture[str]) -> None:
    (vendor.folder / "test_one.py").write_text(
        "from leadline.errors import DriveFault\n"
        "def test_drive(visit):\n    print('chatter'); raise DriveFault('it did')\n"
    )
    assert vendor.hil("--json", "-k", "a-MODEL", "test_one.py") == 1
    out, err = capfd.readouterr()
    said = json.loads(out)
    (run,) = vendor.kept("runs")
    assert (said["run"], said["exit_code"]) == (run["id"], 1)
    assert said["outcomes"] == [
        {"cell": "bench-a-MODEL-1.0", "claim": "drive", "outcome": "fail", "message": "it did"}
    ]
    assert said["verdicts"] == []
    assert said["results"] == str(vendor.folder / "leadline-results")
    assert "chatter" in err
    assert "Leadline, run" in err


VERDICT = """
from leadline.results.record import Record
from leadline.results.schema import VerdictRow
from leadline.running import RUN

def test_judged(visit, pytestconfig):
    run = pytestconfig.stash[RUN]
    row = VerdictRow(cell="c", claim="judged", statement="8 >= 3", outcome="PASS", reason="settled",
                     threshold=3.0, drive_seconds=8.0, details={"estimate": 7.2},
                     settling="s", basis={})
    Record(run.results, run.id).add(row)
"""


def test_json_has_the_whole_of_every_verdict(
    vendor: Vendor, capfd: pytest.CaptureFixture[str]
) -> None:
    (vendor.folder / "test_one.py").write_text(VERDICT)
    assert vendor.hil("--json", "-k", "a-MODEL", "test_one.py") == 0
    (verdict,) = json.loads(capfd.readouterr().out)["verdicts"]
    assert verdict == {"claim": "judged", "statement": "8 >= 3", "estimate": 7.2}


def test_without_a_path_the_suite_is_run(vendor: Vendor, capfd: pytest.CaptureFixture[str]) -> None:
    assert vendor.hil("--collect-only", "-q") == 0
    out = capfd.readouterr().out
    assert "test_depth_8_is_at_least_three_times_depth_1[bench-a-" in out
    assert "test_all.py" not in out


def test_why_no_test_was_selected(vendor: Vendor, capfd: pytest.CaptureFixture[str]) -> None:
    (vendor.folder / "test_one.py").write_text("def test_writes(visit, random_write): pass\n")
    assert vendor.hil("test_one.py") == 2
    said = capfd.readouterr().err
    assert "both keys: `writes: allowed` on the drive in the rig file, and --allow-writes" in said
    assert "-m acceptance" not in said
    assert vendor.hil("-k", "no_such_test") == 2
    assert "no test was selected (without -m, only the quick ones" in capfd.readouterr().err


def test_results_go_where_they_are_wanted(vendor: Vendor) -> None:
    assert vendor.hil("--results", "there", "-k", "holds", "test_all.py") == 0
    assert not (vendor.folder / "leadline-results").exists()
    with sqlite3.connect(vendor.folder / "there" / FILE_NAME) as connection:
        assert connection.execute("select count(*) from outcomes").fetchone() == (2,)


def test_the_vendors_own_settings_hold_wherever_the_rig_file_is(
    vendor: Vendor, tmp_path_factory: pytest.TempPathFactory
) -> None:
    """pytest looks for its configuration beside every path that it is given."""
    elsewhere = tmp_path_factory.mktemp("rigs")
    (elsewhere / "pytest.ini").write_text("[pytest]\naddopts = --no-such-option\n")
    for name in ("bench.yaml", "matrix.yaml"):
        (vendor.folder / name).rename(elsewhere / name)
    (vendor.folder / "tests").mkdir()
    (vendor.folder / "test_all.py").rename(vendor.folder / "tests" / "test_all.py")
    (vendor.folder / "pytest.ini").write_text("[pytest]\naddopts = -k holds\n")
    files = {"rig": elsewhere / "bench.yaml", "matrix": elsewhere / "matrix.yaml"}
    assert vendor.hil("tests", **files) == 0
    assert [row["claim"] for row in vendor.kept("outcomes")] == ["holds", "holds"]


def test_a_rig_in_trouble_before_any_test_is_on_record_as_that(
    vendor: Vendor, monkeypatch: pytest.MonkeyPatch
) -> None:
    def refuse(*_: object) -> None:
        raise RigTrouble("rig bench: not there")

    monkeypatch.setattr(hil, "refuse_absent", refuse)
    assert vendor.hil("test_all.py") == 3
    assert vendor.exit_code() == 3


def test_a_host_that_a_dead_run_left_without_power_has_it_again_before_it_is_asked(
    vendor: Vendor, monkeypatch: pytest.MonkeyPatch, capfd: pytest.CaptureFixture[str]
) -> None:
    folder = vendor.folder
    monkeypatch.setattr(hil, "refuse_absent", refuse_absent)
    monkeypatch.setattr(journal, "default_directory", lambda _: str(folder / "journal"))
    pdu = pdu_spec(folder)
    with open_host(HostSpec(reach="local")) as dying:
        record = {"outlets": [{"pdu": pdu.model_dump(), "outlet": 1}], "rescan": None}
        journal.Journal(dying, "dead").open_entry(ENTRY, record)
    text = RIG_TEXT.replace("reach: local", "reach: ssh, address: localhost.invalid")
    strip = f"pdus: [{{name: p, family: baytech-rpc3, port: {pdu.port}, outlets: 4}}]\n"
    vendor.rig.write_text(text + strip)
    with VirtualPdu(4, lambda *_: None, Path(pdu.port), on=[2]) as unit:
        assert vendor.hil("test_all.py") == 3
        assert unit.contacts[1]
    said = capfd.readouterr().err
    assert "is on again, after run dead" in said
    assert said.index("is on again") < said.index("rig bench: ")
    (run,) = vendor.kept("runs")
    log = folder / "leadline-results" / "serial" / run["id"] / "p.log"
    assert r"> on 1\r" in log.read_text()
    assert vendor.hil("test_all.py") == 3, "and without its PDU nothing else is said of outlets"


def test_files_that_contradict_each_other_start_nothing(vendor: Vendor) -> None:
    assert vendor.hil("test_all.py", matrix=MATRIX) == 2
    assert not (vendor.folder / "leadline-results").exists()


COMPARES = """
import pytest

@pytest.mark.claim("regression_streams", limit="depth_8_over_depth_1")
def test_compares(visit, stay):
    if not stay.judges:
        pytest.skip("recorded")
    assert False, "slower"
"""


@pytest.mark.parametrize("words", [("--baseline", "stored"), ("--baseline=stored",)])
def test_what_the_candidate_loses_is_in_the_json(
    vendor: Vendor, capfd: pytest.CaptureFixture[str], words: Sequence[str]
) -> None:
    (vendor.folder / "test_compares.py").write_text(COMPARES)
    vendor.rig.write_text(RIG_TEXT.replace('firmware: "1.0"', 'firmware: "1.1"', 1))
    assert vendor.hil("--json", *words, "test_compares.py") == 1
    (lost,) = json.loads(capfd.readouterr().out)["lost"]
    assert (lost["cell"], lost["against"]) == ("bench-a-MODEL-1.1", "1.0")
    assert (lost["claim"], lost["outcome"]) == ("regression_streams", "fail")
    assert "slower" in lost["message"]
