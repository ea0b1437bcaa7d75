"""Two drives alike, and NCQ silently off on one of them: what found it, and what would not have."""

from pathlib import Path

import pytest

from selftests.virtual.conftest import RIGS, MakeRig
from selftests.virtual.test_hil import hil

pytestmark = pytest.mark.alone

SECOND = """
  - slot: ssd2
    model: LEADLINE VSSD
    serial: VSSD0002
    firmware: "1.0"
    controller: ahci
    protocol: sata
    writes: allowed
    off_s: 1
    ready_s: 60

virtual:
  kernel_arguments: libata.force=2:noncq
"""


def test_ncq_off_on_one_of_two_twins_is_found_by_their_rates(
    make_rig: MakeRig, tmp_path: Path
) -> None:
    twin = tmp_path / "twin.yaml"
    healthy = (RIGS / "profiles/vssd-1.0.yaml").read_text()
    twin.write_text(
        healthy.replace("VSSD0001", "VSSD0002").replace("wwn: 0x5000c5000000a001\n", "")
    )
    rig = make_rig(
        "twins",
        ("\nvirtual:\n", SECOND),
        (
            "    - slot: scsi1\n      bus",
            f"    - slot: ssd2\n      bus: ahci\n      profile: {twin}\n"
            "    - slot: scsi1\n      bus",
        ),
    )
    claims = "VSSD-1.0 and (as_fast_as_its_twins or ladder or IDENTIFY or advertises)"
    code, summary, said = hil(rig, tmp_path, "-m", "acceptance", "-k", claims)
    found = {(row["cell"].split("-")[-3], row["claim"]): row for row in summary["outcomes"]}
    assert code == 1, said
    assert found["ssd1", "as_fast_as_its_twins"]["outcome"] == "skipped"
    assert "nothing is on record" in said
    assert found["ssd2", "drive_advertises_ncq"]["outcome"] == "pass", "it is none the wiser"
    assert found["ssd2", "as_fast_as_its_twins"]["outcome"] == "fail"
    assert "of VSSD0001, " in said
    (verdict,) = summary["verdicts"]
    assert verdict["estimate"] < 0.3, "what a queue of 32 is worth to eight channels"
    assert found["ssd2", "ncq_ladder_holds"]["outcome"] == "fail"
    assert "FORCE" in said or "noncq" in said, "and the ladder says why"
