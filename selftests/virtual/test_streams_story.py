"""A drive like that of the study: NCQ is good for its threads, bad for its streams, and why."""

import re
from pathlib import Path

import pytest

from selftests.virtual.conftest import RIGS, MakeRig
from selftests.virtual.test_hil import hil, outcomes

pytestmark = pytest.mark.measures

HEALTHY = RIGS / "profiles" / "vssd-1.0.yaml"


@pytest.mark.long
def test_the_claim_on_streams_fails_and_says_that_it_is_the_device(
    make_rig: MakeRig, tmp_path: Path
) -> None:
    profile = tmp_path / "streams.yaml"
    profile.write_text(HEALTHY.read_text() + "faults:\n  interfering_streams: {factor: 20}\n")
    rig = make_rig("streams", (str(HEALTHY), str(profile)))
    words = ("-m", "acceptance", "-k", "test_streams and not few and (VSSD-1.0-4 or VSSD-1.0-8)")
    code, summary, said = hil(rig, tmp_path / "results", *words)
    assert code == 1, said
    found = {(row["claim"], row["outcome"]) for row in summary["outcomes"]}
    assert found == {("streams_ncq_on_over_off", "fail"), ("threads_ncq_on_over_off", "pass")}
    blamed = re.findall(
        r"where the time went: the (\w+) takes (\d+) times longer per command when queued", said
    )
    ((layer, times),) = set(blamed)
    assert layer == "device"
    assert 10 <= int(times) <= 25, "20 by its profile; the host's own time beside it takes some"


@pytest.mark.long
def test_healthy_drives_lose_nothing_by_the_queue_and_their_threads_gain(
    make_rig: MakeRig, tmp_path: Path
) -> None:
    words = ("-m", "acceptance", "-k", "test_streams and not few and (1.0-4 or 1.0-8)")
    code, summary, said = hil(make_rig("no-streams"), tmp_path, *words)
    assert code == 0, said
    claims = ("streams_ncq_on_over_off", "threads_ncq_on_over_off")
    wanted = {(drive, claim) for drive in ("ssd1 1.0", "scsi1 1.0") for claim in claims}
    assert outcomes(summary) == dict.fromkeys(wanted, "pass")
    assert "where the time went" not in said
