"""Images and drives that contradict the matrix, in the words in which the reference shows it."""

import hashlib
from pathlib import Path

import pytest

from leadline.errors import Misuse
from leadline.inventory.matrix import load_matrix
from leadline.inventory.plan import survey
from leadline.inventory.rig import load_rig
from selftests.spoiled_matrix import HASHES, NAME, RIG, assert_documented, in_words, written


def planning(folder: Path) -> str:
    with pytest.raises(Misuse) as caught:
        survey([load_rig(folder / "rig.yaml")], load_matrix(folder / NAME))
    return in_words(folder, str(caught.value))


IMAGE = "firmware_matrix.yaml:25: models[MAKER SSD*].firmware[1.1].image: "


def test_an_image_that_is_missing(tmp_path: Path) -> None:
    written(tmp_path)
    (tmp_path / "1.1.bin").unlink()
    message = planning(tmp_path)
    assert message == (
        f"{IMAGE}found 1.1.bin, which cannot be read (No such file or directory), expected the "
        "firmware's image; bring it back, or correct the path"
    )
    assert_documented(message)


def test_an_image_that_is_empty(tmp_path: Path) -> None:
    written(tmp_path)
    (tmp_path / "1.1.bin").write_bytes(b"")
    message = planning(tmp_path)
    assert message == (
        f"{IMAGE}found an empty file, 1.1.bin, expected the firmware's image; copy it again"
    )
    assert_documented(message)


def test_an_image_of_another_hash(tmp_path: Path) -> None:
    written(tmp_path)
    (tmp_path / "1.1.bin").write_bytes(b"other")
    found = hashlib.sha256(b"other").hexdigest()
    message = planning(tmp_path)
    assert message == (
        f"{IMAGE}found sha256 {found[:4]}... of 1.1.bin, expected {HASHES['1.1'][:4]}...; bring "
        "back the image, or correct sha256 if this one is meant"
    )
    assert_documented(message)


TWO_BUILDS = """revision: "1.0-b"
        shows: "1.0"
        status: candidate
        image: 1.1.bin
        sha256: {hash}
      - revision: "1.1"
"""


def test_a_drive_of_which_it_is_not_known_which_build_it_has(tmp_path: Path) -> None:
    both = TWO_BUILDS.format(hash=HASHES["1.1"])
    written(tmp_path, 'revision: "1.1"\n', both)
    message = planning(tmp_path)
    assert message == (
        'rig.yaml:8: drives[a].firmware: found "1.0", which 2 firmware of MAKER SSD* in '
        "firmware_matrix.yaml:12 show, expected firmware_sha256 beside it, with that of the image "
        f"that is on the drive: {HASHES['1.0'][:4]}... (1.0), {HASHES['1.1'][:4]}... (1.0-b)"
    )
    assert_documented(message)


def test_a_drive_with_an_image_that_the_matrix_does_not_know(tmp_path: Path) -> None:
    written(tmp_path)
    none = "0" * 64
    rig = RIG.replace('firmware: "1.0"', f'firmware: "1.0"\n    firmware_sha256: {none}')
    (tmp_path / "rig.yaml").write_text(rig)
    message = planning(tmp_path)
    assert message == (
        "rig.yaml:9: drives[a].firmware_sha256: found 0000..., expected that of an image that "
        f'shows "1.0" in firmware_matrix.yaml:12: {HASHES["1.0"][:4]}... (1.0)'
    )
    assert_documented(message)


def test_a_drive_with_an_image_where_the_matrix_has_none_to_compare(tmp_path: Path) -> None:
    image = f"        image: 1.0.bin\n        sha256: {HASHES['1.0']}\n"
    written(tmp_path, image, "")
    rig = RIG.replace('firmware: "1.0"', f'firmware: "1.0"\n    firmware_sha256: {"0" * 64}')
    (tmp_path / "rig.yaml").write_text(rig)
    assert planning(tmp_path) == (
        'rig.yaml:9: drives[a].firmware_sha256: found 0000..., expected a sha256 of firmware "1.0" '
        "in firmware_matrix.yaml:12, too, which has none; or none here"
    )
