"""Two drives alike, and NCQ silently off on one of them: what found it, and what would not have."""

from pathlib import Path

import pytest

from selftests.virtual.conftest import MakeRig
from selftests.virtual.test_hil import hil
from selftests.virtual.two_drives import two_drives

pytestmark = pytest.mark.alone

NONCQ = "\nvirtual:\n  kernel_arguments: libata.force=2:noncq\n"


@pytest.mark.long
def test_ncq_off_on_one_of_two_twins_is_found_by_their_rates(
    make_rig: MakeRig, tmp_path: Path
) -> None:
    rig = two_drives(make_rig, "twins", tmp_path)
    rig.write_text(rig.read_text().replace("\nvirtual:\n", NONCQ))
    claims = "VSSD-1.0 and (as_fast_as_its_twins or ladder or IDENTIFY or advertises)"
    code, summary, said = hil(rig, tmp_path, "-m", "acceptance", "-k", claims)
    found = {(row["cell"].split("-")[-3], row["claim"]): row for row in summary["outcomes"]}
    assert code == 1, said
    assert found["ssd1", "as_fast_as_its_twins"]["outcome"] == "skipped", said
    assert "nothing is on record" in said
    assert found["ssd2", "drive_advertises_ncq"]["outcome"] == "pass", "it is none the wiser"
    assert found["ssd2", "as_fast_as_its_twins"]["outcome"] == "fail"
    assert "of VSSD0001, " in said
    assert "the slower one is this drive now: by " in said
    assert "so the slow one is this drive now, for it gains less by its queue than it must" in said
    assert "look first at the ladder of this drive now: kernel: BROKEN: " in said
    (verdict,) = summary["verdicts"]
    assert verdict["estimate"] < 0.3, "what a queue of 32 is worth to eight channels"
    assert found["ssd2", "ncq_ladder_holds"]["outcome"] == "fail"
    assert "FORCE" in said or "noncq" in said, "and the ladder says why"
