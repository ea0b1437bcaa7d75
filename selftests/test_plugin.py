"""pytest's side, in a vendor's own repository: selection, order, outcomes, excuses, sharing.

What becomes of outcomes is in `test_plugin_reports`, the order of tests in `test_plugin_order`;
real rigs are in `selftests/virtual`.
"""

import json
import os
import select
import signal
import subprocess
import sys

import pytest

from selftests.vendor import MATRIX, RIG, run, vendor

__all__ = ["vendor"]  # a fixture


def test_inert_unless_a_rig_is_named(vendor: pytest.Pytester) -> None:
    vendor.makepyfile("def test_plain(): pass")
    result = vendor.runpytest_subprocess()
    result.assert_outcomes(passed=1)
    assert "eadline, run" not in result.stdout.str()
    assert not (vendor.path / "leadline-results").exists()


def test_inert_where_a_parameter_happens_to_be_called_visit(vendor: pytest.Pytester) -> None:
    """As in another project's tests, on a machine that has Leadline installed."""
    vendor.makepyfile(
        "import pytest\n"
        "@pytest.mark.parametrize('visit', ['to a museum', 'to the sea'])\n"
        "def test_of_another_kind(visit): pass"
    )
    vendor.runpytest_subprocess().assert_outcomes(passed=2)


def test_help_needs_no_rig_file(vendor: pytest.Pytester) -> None:
    result = vendor.runpytest_subprocess("--rig", "not-there.yaml", "--help")
    assert result.ret == 0
    assert "--allow-writes" in result.stdout.str()


PARENT = """
import signal, subprocess, sys
signal.signal(signal.SIGINT, signal.default_int_handler)  # it is ignored in the background
child = subprocess.Popen([sys.executable, "-m", "pytest", *sys.argv[1:]])
print(child.pid, flush=True)
child.wait()
"""
STILL_RUNNING = """
import time
from pathlib import Path
def test_long(visit):
    Path("begun").touch()
    time.sleep(100)
"""


def test_a_run_of_leadline_hil_ends_with_it(vendor: pytest.Pytester) -> None:
    """However `leadline hil` was killed, pytest stops as by Ctrl-C, and gives back."""
    vendor.makepyfile(STILL_RUNNING)
    options = ["--rig", str(RIG), "--matrix", str(MATRIX), "--run-id", "r", "-k", "scsi1", "-q"]
    with subprocess.Popen(
        [sys.executable, "-c", PARENT, *options], cwd=vendor.path, stdout=subprocess.PIPE
    ) as parent:
        assert parent.stdout
        child = int(parent.stdout.readline())
        ending = os.pidfd_open(child)
        while not (vendor.path / "begun").exists():
            assert not select.select([ending], [], [], 0.1)[0], "pytest has ended by itself"
        parent.send_signal(signal.SIGKILL)
        ended = bool(select.select([ending], [], [], 30)[0])
        if not ended:
            os.kill(child, signal.SIGKILL)
        os.close(ending)
        assert ended
        assert b"KeyboardInterrupt" in parent.stdout.read()


def test_loading_the_plugin_loads_nothing_heavy() -> None:
    code = (
        "import sys, json, leadline.plugin; print(json.dumps([m for m in"
        " ('sqlalchemy', 'pydantic', 'scipy', 'numpy', 'rich', 'serial') if m in sys.modules]))"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, check=True)
    assert json.loads(done.stdout) == []


def test_options_stand_under_one_heading(vendor: pytest.Pytester) -> None:
    text = vendor.runpytest_subprocess("--help").stdout.str()
    heading = text.index("Leadline: tests of physical drives on rigs")
    for option in ("--rig", "--matrix", "--allow-writes", "--drive-time", "--no-excuses"):
        assert text.index(option, heading) < heading + 2000


def test_a_wrong_rig_file_is_a_usage_error(vendor: pytest.Pytester) -> None:
    vendor.makefile(".yaml", bad="rig: bad\nhost: {reach: radio}\n")
    result = vendor.runpytest_subprocess("--rig", "bad.yaml")
    assert result.ret == pytest.ExitCode.USAGE_ERROR
    result.stderr.fnmatch_lines(['*bad.yaml:2: host.reach: found "radio", expected *'])


def test_results_that_cannot_be_written_are_told_in_a_line(vendor: pytest.Pytester) -> None:
    vendor.makepyfile("def test_plain(): pass")
    result = run(vendor, "--results", "conftest.py/below")
    assert result.ret == pytest.ExitCode.USAGE_ERROR
    result.stderr.fnmatch_lines(["ERROR: leadline: *cannot be made*name another with --results"])
    assert "Traceback" not in result.stderr.str()


def test_a_claim_without_a_limit_for_the_class_is_not_collected(vendor: pytest.Pytester) -> None:
    vendor.makepyfile(
        "import pytest\n"
        "@pytest.mark.claim('depth_8_over_depth_1')\ndef test_has(visit): pass\n"
        "@pytest.mark.claim('no_such_limit')\ndef test_has_not(visit): pass\n"
        "@pytest.mark.protocol('sas')\ndef test_sas(visit): pass\n"
        "@pytest.mark.protocol('sata', 'sas')\ndef test_sata(visit): pass\n"
        "@pytest.mark.claim('no_such_limit')\n@pytest.mark.no_limit\n"
        "def test_needs_none(visit): pass\n"
    )
    result = run(vendor, "--collect-only", "-q")
    text = result.stdout.str()
    assert "test_has[virtual-ssd1" in text
    assert "test_has_not" not in text
    assert "test_sas" not in text
    assert text.count("test_sata[virtual-ssd1") == 2
    assert "test_sata[virtual-scsi1" not in text
    assert text.count("test_needs_none") == 3
    result.stdout.fnmatch_lines(["8/15 tests collected (7 deselected)*"])


FAILS = """
import pytest
from leadline.claims import ClaimFailed

@pytest.mark.claim('depth_8_over_depth_1')
def test_known(visit):
    raise ClaimFailed("slow", None)
@pytest.mark.claim('depth_8_over_depth_1')
def test_not_excused(visit):
    raise ValueError("not a claim")
@pytest.mark.no_limit
@pytest.mark.claim('another_claim')
def test_another(visit):
    raise ClaimFailed("slow", None)
"""


def test_a_known_issue_excuses_its_claim_on_its_firmware_only(vendor: pytest.Pytester) -> None:
    vendor.makepyfile(FAILS)
    result = run(vendor, "-k", "ssd1")
    assert "FAIL, known issue" in result.stdout.str()
    result.assert_outcomes(xfailed=1, failed=3, errors=2, deselected=3)


def test_an_issue_that_is_only_noted_excuses_nothing(vendor: pytest.Pytester) -> None:
    link = "link: docs/explanation/virtual-rig.md\n"
    noted = MATRIX.read_text().replace(link, f"{link}            excuses: false\n")
    noted = noted.replace("image: rigs/", f"image: {MATRIX.parent}/rigs/")
    (vendor.path / "noted.yaml").write_text(noted)
    vendor.makepyfile(FAILS)
    result = run(vendor, "-k", "ssd1 and known", "--matrix", "noted.yaml")
    result.assert_outcomes(failed=2, deselected=7)


def test_no_excuses(vendor: pytest.Pytester) -> None:
    vendor.makepyfile(FAILS)
    result = run(vendor, "-k", "ssd1", "--no-excuses")
    result.assert_outcomes(failed=4, errors=2, deselected=3)


def test_two_workers_never_share_a_path(vendor: pytest.Pytester) -> None:
    vendor.makepyfile(
        "import pytest\n"
        "@pytest.mark.parametrize('n', range(8))\n"
        "def test_one(visit, n, worker_id): print(f'ran on {worker_id}')"
    )
    text = run(vendor, "-n", "2", "-rP").stdout.str()
    workers = {line for line in text.splitlines() if line.startswith("ran on ")}
    assert text.count("ran on") == 24
    assert len(workers) == 1
