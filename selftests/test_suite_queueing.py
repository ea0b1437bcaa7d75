"""The suite's tests of queueing: where a pair must not queue, and what they take for NCQ on."""

import inspect
from collections.abc import Callable
from types import SimpleNamespace
from typing import cast

import pytest

from leadline.drive.bind import Identity
from leadline.expected import Expected, Limit
from leadline.inventory.matrix import load_matrix
from leadline.inventory.rig import DriveSpec
from leadline.load.workload import random_mix, random_write, sequential_read
from leadline.quantities import Load
from leadline.statements import NoCollapse, NoDip, Ratio
from leadline.suite import test_identity, test_layers, test_queue_depth, test_streams
from selftests.test_claims import Ruling, ratio
from selftests.vendor import MATRIX, run, vendor

__all__ = ["vendor"]  # a fixture

NEEDS_A_QUEUE = (
    "filled_as_fast_as_before",
    "test_queue_depth.py",
    "test_streams.py",
    "test_multitasking.py",
    "test_scaling.py",
    "test_drives_together.py",
    "test_layers.py",
    "test_agreement.py",
    "at_depth_8_are_as_fast_as_released",
    "whole_queue_is_as_fast",
    "busy_server_is_as_fast",
)
AHCI = "    driver: ahci\n    description: Intel ICH9"
MUST_NOT = """\
    driver: ahci
    must_not_queue: [{model: LEADLINE VSSD, firmware: "*", source: a page}]
    description: Intel ICH9"""
WORDS = ("--collect-only", "-q", "-m", "soak", "--allow-writes", "--pyargs", "leadline.suite")


def test_they_are_left_out(vendor: pytest.Pytester) -> None:
    text = MATRIX.read_text().replace("image: rigs/", f"image: {MATRIX.parent}/rigs/")
    assert AHCI in text
    (vendor.path / "m.yaml").write_text(text.replace(AHCI, MUST_NOT))
    usual = [line for line in run(vendor, *WORDS).stdout.lines if "ssd1" in line]
    barred = [
        line for line in run(vendor, *WORDS, "--matrix=m.yaml").stdout.lines if "ssd1" in line
    ]
    for name in set(NEEDS_A_QUEUE) - {"test_multitasking.py"}:
        assert any(name in line for line in usual), name
    assert [line for name in NEEDS_A_QUEUE for line in barred if name in line] == []
    assert any("busy_server_meets_no_dip" in line for line in usual), "under both keys"
    assert any("kept_from_it" in line for line in barred)
    assert any("one_at_a_time_are_as_fast_as_released" in line for line in barred)


SPEC = {"slot": "a", "serial": "S", "controller": "c", "firmware": "G2010150"}


@pytest.mark.parametrize(
    ("protocol", "said", "holds"),
    [("sata", "ACME DISK", True), ("sas", "V ACME DISK", True), ("sata", "V ACME DISK", False)],
)
def test_a_drive_is_itself_by_what_its_firmware_shows_and_perhaps_without_its_vendor(
    protocol: str, said: str, holds: bool
) -> None:
    spec = DriveSpec.model_validate({**SPEC, "model": "ACME DISK", "protocol": protocol})
    drive = SimpleNamespace(identity=Identity(said, "S", None, "G2010150", 512))
    rebuilt = SimpleNamespace(revision="G2010150-rebuilt", shows="G2010150")
    matches = cast(Callable[..., None], test_identity.test_identity_matches_rig_file)
    if holds:
        matches(drive, spec, rebuilt)
        return
    with pytest.raises(AssertionError):
        matches(drive, spec, rebuilt)


@pytest.mark.parametrize("left", [1, 8, 32])
@pytest.mark.parametrize(
    "claim",
    ["streams_are_not_slower", "threads_that_read_at_random_are_faster", "few_threads_are_faster"],
)
def test_ncq_on_is_the_whole_queue_whatever_depth_the_kernel_has_left(
    claim: str, left: int
) -> None:
    """With NCQ off both sides are at depth 1, where streams are not slower than themselves."""
    limit, judge = Limit(0.95, "a_claim", "a study"), Ruling()
    names = "streams", "threads", "few_threads"
    expected = SimpleNamespace(**{f"{each}_ncq_on_over_off": limit for each in names})
    load = Load(sequential_read(1 << 30), judge, full_depth=32, kernel_depth=left)
    states = cast(Callable[..., None], getattr(test_streams, f"test_{claim}_with_ncq"))
    states(load, expected, 4)
    said = ratio(judge.claims[0])
    assert [side.device_depth for side in said.quantities] == [32, 1]
    assert [side.threads for side in said.quantities] == [4, 4]


@pytest.mark.parametrize(("full", "deepest"), [(32, 32), (128, 128), (254, 128)])
@pytest.mark.parametrize("claim", ["meets_no_dip", "keeps_its_best_rate"])
def test_a_busy_server_is_swept_from_1_to_the_deepest_with_128_offered(
    claim: str, full: int, deepest: int
) -> None:
    judge = Ruling()
    states = cast(Callable[..., None], getattr(test_queue_depth, f"test_a_busy_server_{claim}"))
    states(Load(random_mix(), judge, full_depth=full))
    (said,) = (each.statement for each in judge.claims)
    assert isinstance(said, NoDip | NoCollapse)
    depths = [point.device_depth for point in said.curve.points]
    assert (depths[:32], depths[-1]) == (list(range(1, 33)), deepest)
    assert {point.offered_depth for point in said.curve.points} == {128}


def test_reads_and_writes_are_swept_with_little_waiting_in_the_host_too() -> None:
    """The depths at which the host's queue is empty but for a few are the drive's own figures."""
    judge, limit = Ruling(), Limit(2.0, "a_claim", "a sweep")
    load = Load(random_mix(), judge, full_depth=32)
    expected = SimpleNamespace(random_mix_depth_8_over_depth_1=limit)
    cast(Callable[..., None], test_queue_depth.test_reads_and_writes_need_the_queue)(load, expected)
    for name in ("meet_no_dip", "keep_their_best_rate"):
        getattr(test_queue_depth, f"test_reads_and_writes_{name}")(load)
    two, *curves = (each.statement for each in judge.claims)
    assert isinstance(two, Ratio)
    assert [side.offered_depth for side in two.quantities] == [24, 5]
    for said in curves:
        assert isinstance(said, NoDip | NoCollapse)
        offered = {point.device_depth: point.offered_depth for point in said.curve.points}
        assert (len(offered), offered[1], offered[19], offered[32]) == (32, 5, 51, 64)


@pytest.mark.parametrize(
    ("on_the_drive", "above"),
    [
        ("a_busy_server_meets_no_dip", "a_busy_server_meets_no_dip_above_its_layers"),
        ("a_busy_server_keeps_its_best_rate", "a_busy_server_keeps_its_best_rate_above_its_layers"),
        (
            "switching_ncq_off_costs_a_busy_server_what_it_should",
            "switching_ncq_off_costs_a_server_above_its_layers",
        ),
    ],
)
def test_what_is_claimed_of_the_mix_on_the_drive_is_claimed_above_its_layers(
    on_the_drive: str, above: str
) -> None:
    limit = Limit(0.5, "a_claim", "a sweep")
    judge, expected = Ruling(), SimpleNamespace(random_mix_ncq_off_over_on=limit)
    load = Load(random_mix(), judge, full_depth=32)
    for test, more in (
        (getattr(test_queue_depth, f"test_{on_the_drive}"), {"random_mix": load}),
        (getattr(test_layers, f"test_{above}"), {"random_mix_on": lambda _: load, "layers": "l"}),
    ):
        wanted = inspect.signature(test).parameters
        test(**more, **({"expected": expected} if "expected" in wanted else {}))
    of_drive, of_layers = (str(each) for each in judge.claims)
    assert of_drive == of_layers
    assert "offered=128" in of_drive


def test_the_curve_of_random_writes_is_held_to_no_limit_of_a_class() -> None:
    judge = Ruling()
    test = test_queue_depth.test_the_deepest_queue_keeps_half_of_the_best_rate_of_random_writes
    cast(Callable[..., None], test)(Load(random_write(), judge, full_depth=32))
    (said,) = (each.statement for each in judge.claims)
    assert isinstance(said, NoCollapse)
    assert (len(said.curve.points), said.within, said.source) == (32, 0.5, "")


def test_random_writes_are_asked_of_whatever_has_a_limit_for_them() -> None:
    """The shipped matrix has one, of disks: a limit that no test asks for holds nobody to it."""
    claim = "random_write_depth_8_over_depth_1"
    limits = load_matrix(MATRIX).limits_by_class["hdd"]
    judge = Ruling()
    states = cast(Callable[..., None], test_queue_depth.test_a_queue_does_not_spoil_random_writes)
    states(Load(random_write(), judge, full_depth=32), Expected("DISK", {claim: limits[claim]}))
    said = ratio(judge.claims[0])
    assert [side.device_depth for side in said.quantities] == [8, 1]
    assert (said.threshold, said.source) == (0.5, limits[claim].source)
