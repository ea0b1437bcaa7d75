"""What a run says that it is going to do, before it does anything."""

import re

import pytest

from selftests.vendor import MATRIX, RIG, run, vendor

__all__ = ["vendor"]  # a fixture

TESTS = """
import pytest

def test_alone(visit): pass

@pytest.mark.no_limit
def test_compares(released): pass
"""
HEAD, WARNING = "leadline: ", "leadline: warning: "


def is_head(line: str) -> bool:
    return line.startswith(HEAD) and not line.startswith(WARNING)


def itinerary(vendor: pytest.Pytester, *words: str) -> list[str]:
    """The lines that say it."""
    vendor.makepyfile(TESTS)
    lines = run(vendor, "--collect-only", *words).stdout.lines
    places = [n for n, line in enumerate(lines) if is_head(line) and " to " in line]
    if not places:
        return []
    first = places[0] + 1
    after = next(n for n, line in enumerate(lines[first:], first) if not line.startswith("  "))
    return [lines[places[0]], *lines[first:after]]


def test_each_visit_is_said_with_what_is_done_and_why(vendor: pytest.Pytester) -> None:
    assert itinerary(vendor) == [
        "leadline: 4 visits to 2 drives, 2 flashes:",
        "  virtual-ssd1-LEADLINE_VSSD-1.0: released, on the drive; 2 tests",
        "  virtual-ssd1-LEADLINE_VSSD-1.1: candidate, held against 1.0, flashed; 3 tests",
        "  virtual-ssd1-LEADLINE_VSSD-1.0-visit3: again, after 1.1, flashed; 1 test",
        "  virtual-scsi1-LEADLINE_VSCSI-1.0: released, on the drive; 1 test",
    ]


def test_it_is_said_once_with_several_workers_too(vendor: pytest.Pytester) -> None:
    vendor.makepyfile("def test_a(visit): pass\ndef test_b(visit): pass\ndef test_c(): pass")
    lines = run(vendor, "-n", "2").stdout.lines
    heads = [n for n, line in enumerate(lines) if is_head(line)]
    assert len(heads) == 1, lines
    assert lines[heads[0] : heads[0] + 4] == [
        "leadline: 3 visits to 2 drives, 2 flashes:",
        "  virtual-ssd1-LEADLINE_VSSD-1.0: released, on the drive; 2 tests",
        "  virtual-ssd1-LEADLINE_VSSD-1.1: candidate, held against 1.0, flashed; 2 tests",
        "  virtual-scsi1-LEADLINE_VSCSI-1.0: released, on the drive; 2 tests",
    ]


@pytest.mark.parametrize("words", [(), ("-n", "2")])
def test_what_the_plan_warns_of_is_said_once_before_the_run(
    vendor: pytest.Pytester, words: tuple[str, ...]
) -> None:
    vendor.makepyfile("def test_a(visit): pass")
    issue = "- claim: depth_8_over_depth_1\n"
    text = MATRIX.read_text().replace("image: rigs/", f"image: {MATRIX.parent}/rigs/")
    expired = vendor.path / "expired.yaml"
    expired.write_text(text.replace(issue, f"{issue}            expires: 2001-02-03\n", 1))
    lines = run(vendor, f"--matrix={expired}", *words).stdout.lines
    (at,) = (n for n, line in enumerate(lines) if "excuses nothing any more" in line)
    assert lines[at].startswith(f"{WARNING}{expired}:"), lines[at]
    assert at < next(n for n, line in enumerate(lines) if line.startswith(f"{HEAD}3 visits"))
    assert not any("found no rig" in line for line in lines), "that is of other benches"


def test_what_is_left_out_for_want_of_a_key_is_said_with_several_workers_too(
    vendor: pytest.Pytester,
) -> None:
    vendor.makepyfile("def test_a(visit): pass")
    real = vendor.path / "real.yaml"
    real.write_text(RIG.read_text().partition("\nvirtual:")[0])
    words = (f"--rig={real}", f"--matrix={MATRIX}", "-p", "no:cacheprovider", "-n", "2")
    text = vendor.runpytest_subprocess(*words).stdout.str()
    assert text.count("leadline: left out, for want of --allow-flash: ssd1 1.1") == 1


def test_the_way_home_is_a_flash_and_may_be_left_out(vendor: pytest.Pytester) -> None:
    chosen = ("-k", "alone and VSSD")
    assert itinerary(vendor, *chosen)[0] == "leadline: 2 visits to 1 drive, 2 flashes:"
    assert itinerary(vendor, *chosen, "--keep-firmware")[0] == (
        "leadline: 2 visits to 1 drive, 1 flash:"
    )


def test_a_drive_that_only_one_firmware_is_tested_of_is_flashed_with_it(
    vendor: pytest.Pytester,
) -> None:
    assert itinerary(vendor, "-k", "alone and VSSD-1.1")[1:] == [
        "  virtual-ssd1-LEADLINE_VSSD-1.1: candidate, held against 1.0, flashed; 1 test"
    ]


def test_a_candidate_that_nothing_is_compared_with_is_not_said_to_be(
    vendor: pytest.Pytester,
) -> None:
    """The drive came with it, and the released firmware has no image to put on it."""
    vendor.makepyfile(TESTS)
    rig, matrix = vendor.path / "real.yaml", vendor.path / "matrix.yaml"
    text = RIG.read_text().partition("\nvirtual:")[0]
    rig.write_text(text.replace('firmware: "1.0"', 'firmware: "1.1"', 1))
    released = MATRIX.read_text().replace("image: rigs/", f"image: {MATRIX.parent}/rigs/")
    without = re.sub(r"(status: released\n) +image: .*\n +sha256: .*\n", r"\1", released, count=1)
    assert without != released
    matrix.write_text(without)
    words = (f"--rig={rig}", f"--matrix={matrix}", "-p", "no:cacheprovider", "--collect-only")
    lines = vendor.runpytest_subprocess(*words, "-k", "VSSD").stdout.lines
    assert "  virtual-ssd1-LEADLINE_VSSD-1.1: candidate, on the drive; 1 test" in lines


@pytest.mark.parametrize("words", [("-k", "nothing_of_the_kind"), ("-q",)])
def test_nothing_is_said_of_nothing_nor_when_quiet(
    vendor: pytest.Pytester, words: tuple[str, ...]
) -> None:
    assert itinerary(vendor, *words) == []
