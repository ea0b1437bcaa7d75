"""Each kind of mistake in a firmware matrix, in the words in which the reference shows it."""

from pathlib import Path

import pytest

from leadline.errors import Misuse
from leadline.inventory.matrix import load_matrix
from leadline.inventory.plan import survey
from leadline.inventory.rig import load_rig
from selftests.spoiled_matrix import (
    HASHES,
    MATRIX,
    NAME,
    assert_documented,
    in_words,
    limited,
    written,
)

# What is wrong, what stands in the matrix instead of what, and what is said of it.
UNREADABLE = [
    (
        "globs that disagree",
        "model: OTHER*",
        'model: "*SSD?"',
        'firmware_matrix.yaml:32: models[*SSD?].model: found "*SSD?", which "MAKER SSDx" fits as '
        'it fits "MAKER SSD*" on line 12, with another class, expected globs that nothing fits '
        "both of, or entries that agree",
    ),
    (
        "kernels that disagree",
        "source: a bug}",
        "source: a bug}\n        - {kernel: 5.*, at_least: 1, source: a guess}",
        'firmware_matrix.yaml:8: classes.ssd.ratio.kernels[2].kernel: found "5.*", which "5.10." '
        'fits as it fits "5.10.*" on line 7, with another at_least, expected globs that nothing '
        "fits both of, or entries that agree",
    ),
    (
        "a cycle of predecessors",
        'revision: "1.0"\n',
        'revision: "1.0"\n        predecessor: "1.1"\n',
        "firmware_matrix.yaml:19: models[MAKER SSD*].firmware[1.0].predecessor: found firmware "
        'that comes after itself: "1.0" after "1.1" after "1.0", expected a predecessor that came '
        "before",
    ),
    (
        "an unknown predecessor",
        'predecessor: "1.0"',
        'predecessor: "0.9"',
        "firmware_matrix.yaml:23: models[MAKER SSD*].firmware[1.1].predecessor: found "
        '"0.9", expected a revision of this model: "1.0", "1.1"',
    ),
    (
        "nine characters",
        'revision: "1.0"\n',
        "revision: 123456789\n",
        "firmware_matrix.yaml:18: models[MAKER SSD*].firmware[123456789].revision: found "
        '"123456789" of 9 characters, expected at most 8 characters, for IDENTIFY DEVICE words '
        "23-26 have no room for more, and a longer name with shows",
    ),
    (
        "nine characters to show",
        'revision: "1.0"\n',
        'revision: "1.0"\n        shows: 123456789\n',
        "firmware_matrix.yaml:19: models[MAKER SSD*].firmware[1.0].shows: found "
        '"123456789" of 9 characters, expected at most 8 characters, for IDENTIFY DEVICE words '
        "23-26 have no room for more",
    ),
    (
        "five characters of SCSI",
        '"0007"',
        '"00007"',
        "firmware_matrix.yaml:38: models[OTHER*].firmware[00007].revision: found "
        '"00007" of 5 characters, expected at most 4 characters, for bytes 32-35 of the INQUIRY '
        "data have no room for more, and a longer name with shows",
    ),
    (
        "a limit without a source",
        "      source: sweeps\n",
        "",
        "firmware_matrix.yaml:3: classes.ssd.ratio.source: found nothing, expected where the limit "
        "comes from, in words",
    ),
    (
        "a source of blanks",
        "source: sweeps",
        'source: " "',
        'firmware_matrix.yaml:5: classes.ssd.ratio.source: found " ", expected where the limit '
        "comes from, in words",
    ),
    (
        "a ratio of 0",
        "    ratio:\n      at_least: 3",
        "    depth_8_over_depth_1:\n      at_least: 0",
        'firmware_matrix.yaml:4: classes.ssd.depth_8_over_depth_1.at_least: found "0", expected a '
        "number above 0",
    ),
    (
        "a loss in percent",
        "    ratio:\n      at_least: 3",
        "    regression:\n      at_most: 5",
        'firmware_matrix.yaml:4: classes.ssd.regression.at_most: found "5", expected a share, '
        "above 0 and below 1: 0.03 for 3 %",
    ),
    (
        "a side that nobody looks at",
        "    ratio:\n      at_least: 3",
        "    depth_8_over_depth_1:\n      at_most: 9\n      at_least: 3",
        'firmware_matrix.yaml:4: classes.ssd.depth_8_over_depth_1.at_most: found "9", expected '
        "at_least alone, for the test of depth_8_over_depth_1 asks for no other; a test that asks "
        "for at_most has a claim of its own",
    ),
    (
        "one revision twice",
        'revision: "1.1"',
        'revision: "1.0"',
        "firmware_matrix.yaml:22: models[MAKER SSD*].firmware[1.0].revision: found "
        '"1.0", expected each revision of a model once; it is given already on line 18; another '
        "build that shows it has a name of its own, and this as shows",
    ),
    (
        "two names that make one id",
        'revision: "1.1"',
        'revision: "1.0 b"\n        shows: "1.1"\n      - revision: 1.0_b\n'
        '        shows: "1.2"\n        status: released\n      - revision: "1.1"',
        "firmware_matrix.yaml:24: models[MAKER SSD*].firmware[1.0_b].revision: found "
        '"1.0_b", expected each revision of a model once; it is given already on line 22; another '
        "build that shows it has a name of its own, and this as shows",
    ),
    (
        "firmware that nothing tells apart",
        'revision: "1.1"',
        'revision: "1.0-again"\n        shows: "1.0"\n        status: released\n'
        '      - revision: "1.1"',
        "firmware_matrix.yaml:22: models[MAKER SSD*].firmware[1.0-again]: found firmware that "
        'shows "1.0", as that on line 18 does, expected an image and a sha256 of its own for each '
        "of them",
    ),
    (
        "an unknown controller",
        "[chipset]",
        "[chip]",
        'firmware_matrix.yaml:16: models[MAKER SSD*].controllers[1]: found "chip", expected one of '
        'the controllers: "chipset", "hba"',
    ),
    (
        "a controller twice",
        '"1000:0097", driver: mpt3sas',
        '"8086:A282", driver: ahci',
        'firmware_matrix.yaml:10: controllers[hba].pci_id: found "8086:A282", expected each PCI id '
        "once with one driver; it is given already on line 9",
    ),
    (
        "a controller that contradicts itself",
        "driver: ahci}",
        "driver: ahci, ncq: none, max_queue_depth: 32}",
        "firmware_matrix.yaml:9: controllers[chipset]: found ncq none with max_queue_depth 32, "
        "expected max_queue_depth 1, or ncq required",
    ),
    (
        "a day that is none",
        "2027-01-31",
        "2027-02-31",
        "firmware_matrix.yaml:31: models[MAKER SSD*].firmware[1.1].known_issues[ratio].expires: "
        'found "2027-02-31", expected a day of the calendar, as in 2027-01-31',
    ),
    (
        "an issue of another firmware",
        "            expires: 2027-01-31\n",
        '            firmware: "1.0"\n',
        "firmware_matrix.yaml:31: models[MAKER SSD*].firmware[1.1].known_issues[ratio].firmware: "
        'found "1.0" in a firmware\'s own list, expected no firmware here: known_issues at the top '
        "of the file are for several",
    ),
    (
        "an issue of nobody",
        "models:\n",
        "known_issues:\n  - {claim: ratio, model: MAKER HDD, summary: x, link: y}\nmodels:\n",
        'firmware_matrix.yaml:12: known_issues[MAKER HDD].model: found "MAKER HDD", expected a '
        'model of this matrix, or a glob that fits one: "MAKER SSD*", "OTHER*"; as it stands it '
        "excuses nothing",
    ),
    (
        "an issue whose glob fits nobody",
        "models:\n",
        "known_issues:\n  - {claim: ratio, model: MAKR*, summary: x, link: y}\nmodels:\n",
        'firmware_matrix.yaml:12: known_issues[MAKR*].model: found "MAKR*", expected a model of '
        'this matrix, or a glob that fits one: "MAKER SSD*", "OTHER*"; as it stands it excuses '
        "nothing",
    ),
    (
        "an issue of no firmware of its model",
        "models:\n",
        "known_issues:\n  - {claim: ratio, model: MAKER SSD/1, firmware: 0007, summary: x, "
        "link: y}\nmodels:\n",
        'firmware_matrix.yaml:12: known_issues[MAKER SSD/1].firmware: found "0007", expected a '
        'revision of "MAKER SSD/1", or a glob that fits one: "1.0", "1.1"; as it stands it '
        "excuses nothing",
    ),
    (
        "an image without its hash",
        f"        sha256: {HASHES['1.1']}\n",
        "",
        "firmware_matrix.yaml:22: models[MAKER SSD*].firmware[1.1]: found an image without sha256, "
        "expected its hash too, from: sha256sum IMAGE",
    ),
    (
        "a status of old",
        "status: candidate",
        "status: retired",
        'firmware_matrix.yaml:24: models[MAKER SSD*].firmware[1.1].status: found "retired", '
        "expected candidate, released or withdrawn",
    ),
]


def test_the_matrix_of_these_tests_is_right(tmp_path: Path) -> None:
    matrix = load_matrix(written(tmp_path))
    assert [visit.cell.firmware for visit in survey([load_rig(tmp_path / "rig.yaml")], matrix)[0]]
    assert matrix.where("models", 0, "firmware", 1).endswith(f"{NAME}:22")


@pytest.mark.parametrize(
    ("old", "new", "message"), [row[1:] for row in UNREADABLE], ids=[row[0] for row in UNREADABLE]
)
def test_each_mistake_is_named_and_documented(
    tmp_path: Path, old: str, new: str, message: str
) -> None:
    with pytest.raises(Misuse) as caught:
        load_matrix(written(tmp_path, old, new))
    assert message in in_words(tmp_path, str(caught.value)).splitlines()
    assert_documented(message)


@pytest.mark.parametrize(
    ("claim", "bound", "where"),
    [
        ("depth_32_over_depth_8", "at_most: -1", "at_most"),
        ("random_write_depth_8_over_depth_1", "at_least: -0.0", "at_least"),
        ("multitasking_gain", "at_least: 1", "at_least"),
        ("ready_s", "at_least: 3", "at_least"),
        ("ready_s", "{at_most: 3, source: x, kernels: [{kernel: 6.*, at_most: 0, source: x}]}",
         "kernels[1].at_most"),
    ],
)  # fmt: skip
@pytest.mark.parametrize("of", ["class", "model", "firmware", "controller"])
def test_limits_that_cannot_be_are_told_wherever_they_are(
    tmp_path: Path, claim: str, bound: str, where: str, of: str
) -> None:
    limit = f"{{{claim}: {bound if bound.startswith('{') else f'{{{bound}, source: x}}'}}}"
    with pytest.raises(Misuse) as caught:
        load_matrix(limited(tmp_path, of, limit))
    (message,) = in_words(tmp_path, str(caught.value)).splitlines()
    assert f".{claim}.{where}: found " in message


@pytest.mark.parametrize("bound", ["at_most: 0", "at_least: -5", "at_least: 2, at_most: 300"])
def test_a_claim_of_somebody_elses_has_the_limits_that_it_has(tmp_path: Path, bound: str) -> None:
    load_matrix(
        written(tmp_path, "  ssd:\n", f"  hdd: {{celsius: {{{bound}, source: x}}}}\n  ssd:\n")
    )


def test_a_cycle_is_told_once(tmp_path: Path) -> None:
    with pytest.raises(Misuse) as caught:
        load_matrix(
            written(tmp_path, 'revision: "1.0"\n', 'revision: "1.0"\n        predecessor: "1.1"\n')
        )
    assert str(caught.value).count("comes after itself") == 1


def test_what_leads_into_a_cycle_is_not_said_to_be_one_and_hides_none(tmp_path: Path) -> None:
    first = '"0.9"\n        status: released\n        predecessor: "1.1"\n      - revision: '
    path = written(tmp_path)
    path.write_text(
        MATRIX.replace('revision: "1.0"\n', f'revision: {first}"1.0"\n        predecessor: "1.1"\n')
    )
    with pytest.raises(Misuse) as caught:
        load_matrix(path)
    (message,) = str(caught.value).splitlines()
    assert 'firmware that comes after itself: "1.1" after "1.0" after "1.1"' in message
