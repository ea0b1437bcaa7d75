"""A drive on its controller: what was found of the two, and held against what is expected."""

from dataclasses import replace

import pytest

from leadline.drive.bind import Drive
from leadline.drive.kernel_watch import KernelHistory
from leadline.drive.pair import Pair, judge
from leadline.drive.quirks import Quirk
from leadline.errors import Inconclusive
from selftests.drive_specimens import LINK, sata_drive, scsi_drive
from selftests.test_quirks import SET_UP, UP, history

BRIDGE = "ata1.00: applying bridge limits"
GEN_1_TO_3 = 0x010E  # IDENTIFY word 76: NCQ, 1.5, 3 and 6 Gb/s
AHCI = {
    "name": "ahci",
    "takes": "32",
    "caps": "c7348f1f",  # ISS is 3: 6 Gb/s
    "command line": "root=/dev/vda",
    "kernel": "6.1.0-38-amd64",
    "limit": "<unknown>",
}


def pair(drive: Drive | None = None, /, *lines: str, **texts: str) -> Pair:
    """On a chipset's AHCI controller, unless `texts` say otherwise."""
    said = history(*(lines or (UP, *SET_UP, BRIDGE)))
    return judge(drive or sata_drive(words={76: GEN_1_TO_3}), said, AHCI | texts)


def test_what_was_found_is_said_line_by_line() -> None:
    forced = {"command line": "libata.force=1:nolpm"}
    assert str(pair(**forced)) == (
        "controller: ahci at 0000:00:1f.2 (8086:2922), ahci to the SCSI layer\n"
        "takes at once: 32\n"
        "port: ata1.00\n"
        "link: now 6 Gb/s, drive 6 Gb/s, controller 6 Gb/s\n"
        "device queue depth: 32\n"
        "kernel on NCQ: NCQ (depth 32)\n"
        "quirks: bridge-limits (applying bridge limits)\n"
        "libata.force: nolpm"
    )


def test_a_scsi_drive_has_neither_port_nor_link_nor_quirks() -> None:
    texts = AHCI | {"name": "virtio_scsi", "takes": "128", "caps": "", "limit": ""}
    assert str(judge(scsi_drive(), history(), texts)) == (
        "controller: virtio-pci at 0000:00:04.0 (1af4:1004), virtio_scsi to the SCSI layer\n"
        "takes at once: 128\n"
        "device queue depth: 64"
    )


# The link.


@pytest.mark.parametrize(
    ("caps", "gbps"), [("c7148f1f", 1.5), ("c7248f1f", 3.0), ("c7348f1f", 6.0), ("", None)]
)
def test_the_speed_of_an_ahci_port_is_in_its_capabilities(caps: str, gbps: float | None) -> None:
    assert pair(caps=caps).controller_gbps == gbps


def test_a_link_is_at_full_speed_at_that_of_its_slower_end() -> None:
    assert pair().full_gbps(None) == 6.0
    assert pair(caps="c7248f1f").full_gbps(None) == 3.0
    assert pair(caps="").full_gbps(3.0) == 3.0, "the matrix tells what the controller does not"
    assert pair().full_gbps(3.0) == 6.0, "and not better than the controller itself"
    assert pair(caps="").full_gbps(None) == 6.0
    slow = sata_drive(words={76: 0x0106})
    assert pair(slow).full_gbps(None) == 3.0
    silent = sata_drive(words={76: 0x0100})
    assert pair(silent).full_gbps(6.0) is None


def test_a_port_that_is_limited_is_no_faster_than_that() -> None:
    limited = pair(limit="1.5 Gbps")
    assert (limited.port_gbps, limited.controller_gbps) == (1.5, 6.0)
    assert limited.full_gbps(None) == 6.0, "a limit is no excuse for the link"
    assert "limited to 1.5 Gb/s" in str(limited)
    assert pair(caps="", limit="").port_gbps is None


def test_the_links_speed_is_libatas_else_the_drives_own_word() -> None:
    drive = sata_drive(words={76: GEN_1_TO_3, 77: 0x0004}, link=replace(LINK, speed=""))
    assert pair(drive).link_gbps == 3.0
    assert pair(sata_drive(words={77: 0x0004})).link_gbps == 6.0


# Quirks against what is expected.


def test_quirks_that_are_expected_and_no_others() -> None:
    found = pair()
    assert found.missing(["bridge-limits"]) == ()
    assert found.unexpected(["bridge-limits"]) == ()
    (beyond,) = found.unexpected([])
    assert str(beyond) == "bridge-limits (applying bridge limits)"


def test_a_quirk_that_every_kernel_lets_see_is_missing_when_it_is_not_seen() -> None:
    assert pair(None, UP, *SET_UP).missing(["noncq", "bridge-limits"]) == ("noncq", "bridge-limits")


def test_libatas_quirks_are_not_missed_where_it_has_no_part() -> None:
    texts = AHCI | {"name": "virtio_scsi", "takes": "128", "caps": "", "limit": ""}
    assert judge(scsi_drive(), history(), texts).missing(["noncqtrim", "zeroaftertrim"]) == ()


def test_a_quirk_that_a_kernel_applies_without_a_word_may_be_there() -> None:
    words = r"zeroaftertrim cannot be told: it is 6\.1\.0-38-amd64, .* as Linux 6\.12 does"
    with pytest.raises(Inconclusive, match=words):
        pair().missing(["zeroaftertrim"])
    assert pair(kernel="6.12.9").missing(["zeroaftertrim"]) == ("zeroaftertrim",)


def wrapped() -> KernelHistory:
    return replace(history(UP, *SET_UP), complete=False)


@pytest.mark.parametrize(
    ("forced", "expected", "found"),
    [
        ("nolpm", [], ["nolpm"]),
        ("1:1.5G,nolpm", ["nolpm"], ["1.5G"]),
        ("1:1.5G", ["1.5Gbps"], []),
        ("2:nolpm", [], []),
    ],
)
def test_what_is_forced_is_seen_though_the_log_has_lost_what_it_said_of_it(
    forced: str, expected: list[str], found: list[str]
) -> None:
    drive = sata_drive(words={76: GEN_1_TO_3})
    shown = judge(drive, wrapped(), AHCI | {"command line": f"libata.force={forced}"})
    assert [quirk.name for quirk in shown.unexpected(expected)] == found
    said = replace(shown, quirks=(Quirk("1.5Gbps", "FORCE"), Quirk("nolpm", "FORCE")))
    assert [quirk.name for quirk in said.unexpected(["1.5Gbps", "nolpm"])] == [], "told once"


def test_a_log_without_its_beginning_shows_what_it_shows() -> None:
    trim = sata_drive(link=replace(LINK, trim="forced_unqueued"))
    shown = judge(trim, wrapped(), AHCI)
    assert not shown.whole_log
    assert [quirk.name for quirk in shown.unexpected([])] == ["noncqtrim"]
    assert shown.missing(["noncqtrim", "nolpm"]) == ("nolpm",), "for the reader to judge"
