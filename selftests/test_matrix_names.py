"""Names in a firmware matrix that nothing goes by, and excuses that excuse no more."""

from datetime import date
from pathlib import Path

import pytest

from leadline.commands.plan import absent
from leadline.errors import Misuse
from leadline.inventory.coverage import coverage
from leadline.inventory.issues import expired_excuses
from leadline.inventory.matrix import load_matrix
from leadline.inventory.plan import survey
from leadline.inventory.rig import load_rig
from leadline.inventory.unbound import unbound
from selftests.spoiled_matrix import HASHES, RIG, assert_documented, in_words, written


def test_an_expired_excuse_is_a_warning_until_the_last_day_is_over(tmp_path: Path) -> None:
    matrix = load_matrix(written(tmp_path))
    assert list(expired_excuses(matrix, date(2027, 1, 31))) == []
    (message,) = (in_words(tmp_path, each) for each in expired_excuses(matrix, date(2027, 2, 1)))
    assert message == (
        "firmware_matrix.yaml:31: models[MAKER SSD*].firmware[1.1].known_issues[ratio].expires: "
        "found 2027-01-31, which has passed, so that it excuses nothing any more; expected no "
        "entry once it is mended, or a later day and why: https://tracker.example.org/1"
    )
    assert_documented(message)


def test_one_that_is_only_noted_does_not_expire(tmp_path: Path) -> None:
    matrix = load_matrix(written(tmp_path, "expires:", "excuses: false\n            expires:"))
    assert list(expired_excuses(matrix, date(2028, 1, 1))) == []


def with_issue(folder: Path, issue: str) -> Path:
    """The matrix with one more known issue, of several models or firmware."""
    top = f"known_issues:\n  - {{claim: ratio, {issue}, summary: x, link: y}}\nmodels:\n"
    return written(folder, "models:\n", top)


@pytest.mark.parametrize(
    "issue",
    ["model: OTHER/2, firmware: 0007", "model: '*', firmware: 1.?", "firmware: '0007'"],
)
def test_an_issue_that_some_cell_can_have_is_none_of_these(tmp_path: Path, issue: str) -> None:
    (found,) = load_matrix(with_issue(tmp_path, issue)).known_issues
    assert found.claim == "ratio"


@pytest.mark.parametrize(
    ("issue", "said"),
    [
        ("firmware: 2.*", 'found "2.*", expected a revision of this matrix, or a glob that fits '
         'one: "1.0", "1.1", "0007"; '),
        ("model: '*', firmware: 0008", 'found "0008", expected a revision of this matrix, '),
        ("model: OTHER*, firmware: 1.*", 'found "1.*", expected a revision of "OTHER*", '),
    ],
)  # fmt: skip
def test_an_issue_of_a_firmware_that_no_model_of_it_has(
    tmp_path: Path, issue: str, said: str
) -> None:
    with pytest.raises(Misuse) as caught:
        load_matrix(with_issue(tmp_path, issue))
    (message,) = str(caught.value).splitlines()
    assert f".firmware: {said}" in message


def warned(folder: Path, old: str, new: str, rig: str = RIG) -> list[str]:
    """What is said of names that nothing goes by."""
    matrix = load_matrix(written(folder, old, new))
    (folder / "rig.yaml").write_text(rig)
    found = unbound(matrix, [load_rig(folder / "rig.yaml")])
    return [in_words(folder, each) for each in found]


OF_A_FIRMWARE = "            expires: 2027-01-31\n"


def test_an_issue_of_a_controller_that_neither_file_has_is_a_warning(tmp_path: Path) -> None:
    (message,) = warned(tmp_path, OF_A_FIRMWARE, "            controller: chipest\n")
    assert message == (
        "firmware_matrix.yaml:31: models[MAKER SSD*].firmware[1.1].known_issues[ratio].controller: "
        'found "chipest", expected a controller of this matrix or of these rigs, or a glob that '
        'fits one: "chipset", "hba"; here it excuses nothing: correct it, or plan with the rig '
        "whose own name for a controller it is"
    )
    assert_documented(message)


def test_an_issue_of_a_rigs_own_name_for_its_controller_is_right(tmp_path: Path) -> None:
    """The rig's controller has no PCI id there, so that cells have it by that name."""
    own = RIG.replace('pci_id: "8086:A282", ', "")
    assert own != RIG
    onboard = "            controller: onb*\n"
    assert warned(tmp_path, OF_A_FIRMWARE, onboard, own) == []
    (message,) = warned(tmp_path, OF_A_FIRMWARE, onboard)
    assert 'found "onb*"' in message, "the matrix has a name for that one"


def test_a_pair_that_must_not_queue_of_no_model_or_firmware_is_a_warning(tmp_path: Path) -> None:
    pairs = "[{model: MAKR*, source: x}, {model: MAKER SSD/1, firmware: 2.?, source: x},"
    pairs += " {model: MAKER*, firmware: 1.?, source: x}]"
    ends = 'pci_id: "8086:a282", driver: ahci}'
    messages = warned(tmp_path, ends, f"{ends[:-1]}, must_not_queue: {pairs}}}")
    assert messages == [
        'firmware_matrix.yaml:9: controllers[chipset].must_not_queue[MAKR*].model: found "MAKR*", '
        'expected a model of this matrix, or a glob that fits one: "MAKER SSD*", "OTHER*"; as it '
        "stands no drive is kept from queueing by it: correct it, unless it is of drives to come",
        "firmware_matrix.yaml:9: controllers[chipset].must_not_queue[MAKER SSD/1].firmware: found "
        '"2.?", expected what "MAKER SSD/1" shows, or a glob that fits it: "1.0", "1.1"; as it '
        "stands no drive is kept from queueing by it: correct it, unless it is of drives to come",
    ]
    for message in messages:
        assert_documented(message)


def test_a_controller_that_no_rig_has_is_a_gap(tmp_path: Path) -> None:
    matrix = load_matrix(written(tmp_path))
    rigs = [load_rig(tmp_path / "rig.yaml")]
    visits, gaps = survey(rigs, matrix)
    covered = coverage(rigs, matrix, visits, gaps)
    (message,) = (in_words(tmp_path, each) for each in absent(matrix, covered))
    assert message == (
        "firmware_matrix.yaml:10: controllers[hba]: found no rig that has it (1000:0097, mpt3sas), "
        "and 1 cell(s) wait for it; add a rig file that does, or name for each model the "
        "controllers that it is to be tested on"
    )
    assert_documented(message)


def test_a_controller_whose_cells_lack_something_else_is_not_said_to_be_absent(
    tmp_path: Path,
) -> None:
    image = f"        image: 1.1.bin\n        sha256: {HASHES['1.1']}\n"
    matrix = load_matrix(written(tmp_path, image, ""))
    rigs = [load_rig(tmp_path / "rig.yaml")]
    covered = coverage(rigs, matrix, *survey(rigs, matrix))
    assert [(each.controller, each.lacks) for each in covered.unserved] == [
        ("chipset", "image"),
        ("hba", "rig"),
    ]
    assert len(list(absent(matrix, covered))) == 1
