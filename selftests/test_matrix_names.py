"""Names in a firmware matrix that nothing goes by, and excuses that excuse no more."""

from datetime import date
from pathlib import Path

import pytest

from leadline.errors import Misuse
from leadline.inventory.claim_names import suite_claims, unknown_claims
from leadline.inventory.coverage import coverage
from leadline.inventory.fields import packaged
from leadline.inventory.issues import expired_excuses
from leadline.inventory.matrix import load_matrix
from leadline.inventory.plan import survey
from leadline.inventory.plan_warnings import absent
from leadline.inventory.rig import load_rig
from leadline.inventory.suite_limits import SIDES
from leadline.inventory.unbound import unbound
from selftests.spoiled_matrix import (
    HASHES,
    NAME,
    RIG,
    assert_documented,
    in_words,
    limited,
    written,
)


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


OF_ITS_CLAIM = "          - claim: ratio\n"


@pytest.mark.parametrize(
    ("claim", "expected"),
    [
        (
            "depth_8_over_dpeth_1",
            'a claim of the suite, or one with a limit here, such as "depth_8_over_depth_1"',
        ),
        ("rato", 'a claim of the suite, or one with a limit here, such as "ratio"'),
        ("xyzzy", "a claim of the suite, or one with a limit here"),
        (
            "regression",
            'one of the claims that have this limit: "regression_depth_1", "regression_depth_8", '
            '"regression_whole_queue", "regression_streams", "regression_refill", '
            '"regression_large_reads", "regression_mix"',
        ),
    ],
)
def test_an_issue_of_a_claim_that_no_test_settles_is_a_warning(
    tmp_path: Path, claim: str, expected: str
) -> None:
    wrong = OF_ITS_CLAIM.replace("ratio", claim)
    matrix = load_matrix(written(tmp_path, OF_ITS_CLAIM, wrong))
    (message,) = (in_words(tmp_path, each) for each in unknown_claims(matrix))
    assert message == (
        f"{NAME}:28: models[MAKER SSD*].firmware[1.1].known_issues[{claim}].claim: found "
        f'"{claim}", expected {expected}; it excuses nothing: correct it, unless a test of your '
        "own settles that claim"
    )
    if claim in ("depth_8_over_dpeth_1", "regression"):
        assert_documented(message)


@pytest.mark.parametrize("claim", ["ratio", "no_dip", "regression_mix", "ncq_ladder_holds"])
def test_what_a_test_of_the_suite_settles_and_what_has_a_limit_is_known(
    tmp_path: Path, claim: str
) -> None:
    right = OF_ITS_CLAIM.replace("ratio", claim)
    assert list(unknown_claims(load_matrix(written(tmp_path, OF_ITS_CLAIM, right)))) == []


def test_the_shipped_matrices_name_claims_that_there_are() -> None:
    for name in ("firmware_matrix.yaml", "rigs/three-models/firmware_matrix.yaml"):
        assert list(unknown_claims(load_matrix(packaged(name)))) == []


def test_the_claims_of_the_suite_are_those_of_its_marks_and_of_its_names() -> None:
    claims = suite_claims()
    assert claims["no_collapse"] == "no_collapse"
    assert claims["random_mix_no_dip"] == "random_mix_depth_8_over_depth_1"
    assert claims["link_runs_at_full_speed"] == "link_runs_at_full_speed"
    assert {*claims.values()} > {*SIDES}, "each limit of the suite is that of a test"


@pytest.mark.parametrize(
    ("of", "found", "expected"),
    [
        ("class", "depth_8_over_depth1", '"depth_8_over_depth_1"'),
        ("model", "raedy_s", '"ready_s"'),
        ("firmware", "regression_mix", '"regression", which is the limit of that claim'),
        ("controller", "multi_tasking_gain", '"multitasking_gain"'),
        ("class", "depth_32_over_depth_8", ""),
        ("class", "write_mb_per_s", ""),
        ("class", "celsius", ""),
    ],
)
def test_a_limit_that_no_test_has_is_a_warning_where_another_is_meant(
    tmp_path: Path, of: str, found: str, expected: str
) -> None:
    matrix = load_matrix(limited(tmp_path, of, f"{{{found}: {{at_least: 1, source: x}}}}"))
    messages = [in_words(tmp_path, each) for each in unknown_claims(matrix)]
    if not expected:
        assert messages == []
        return
    (message,) = messages
    place, _, said = message.partition(": found ")
    assert place.startswith(f"{NAME}:")
    assert place.endswith(f".{found}")
    assert said == (
        f'a limit for "{found}", expected {expected}; no test of the suite has it: correct it, '
        "unless a test of your own does"
    )
    if of == "class":
        assert_documented(message)


@pytest.mark.parametrize(
    ("kernel", "meant"),
    [
        ("6.1", "6.1.*"),
        ("v6.12.3", "6.12.*"),
        ("linux-6.1*", "6.1.*"),
        ("5,10.*", "5.10.*"),
        ("lts", "6.1.*"),
        ("*6.1", ""),
        ("6.1.0-38-amd64", ""),
        ("6.?.*-amd64", ""),
        ("6*", ""),
    ],
)
@pytest.mark.parametrize("of", ["issue", "issue at the top", "limit"])
def test_a_kernel_that_no_machine_runs_is_refused(
    tmp_path: Path, of: str, kernel: str, meant: str
) -> None:
    top = f"known_issues: [{{claim: ratio, kernel: '{kernel}', summary: x, link: y}}]\nmodels:\n"
    path = written(
        tmp_path,
        *{
            "issue": (OF_A_FIRMWARE, f"            kernel: '{kernel}'\n"),
            "issue at the top": ("models:\n", top),
            "limit": (
                "source: a bug}\n",
                f"source: a bug}}\n        - {{kernel: '{kernel}', at_least: 2, source: a bug}}\n",
            ),
        }[of],
    )
    if not meant:
        load_matrix(path)
        return
    with pytest.raises(Misuse) as caught:
        load_matrix(path)
    (message,) = in_words(tmp_path, str(caught.value)).splitlines()
    assert message.partition(".kernel: ")[2] == (
        f'found "{kernel}", expected a kernel\'s release as uname -r prints it, or a glob that '
        f'fits one: "{meant}"; no kernel has it'
    )
    if (of, kernel) == ("issue", "6.1"):
        assert_documented(message)
