"""The plan: made of files alone, stable, readable, and refused when files contradict each other."""

import hashlib
from collections.abc import Sequence

import pytest

from leadline.errors import Misuse
from leadline.inventory.fields import packaged
from leadline.inventory.matrix import load_matrix
from leadline.inventory.plan import Cell, Gap, Visit, plan, visits_from_json, visits_to_json
from leadline.inventory.rig import Rig, load_rig
from leadline.inventory.shared import shared_paths
from selftests.plan_bench import IMAGES, Bench, bench

__all__ = ["bench"]  # a fixture


def ids(entries: Sequence[Visit | Gap]) -> list[str]:
    return [entry.cell.id.removeprefix("bench-a-slot1-MAKER_SSD_1-") for entry in entries]


def test_ids_are_readable() -> None:
    cell = Cell("bench-a", "slot1", "INTEL SSDSC2BX016T4", "G2010150", "onboard")
    assert cell.id == "bench-a-slot1-INTEL_SSDSC2BX016T4-G2010150"
    assert Cell("r", "s", "A  B/[C]", "1.0+2", "c").id == "r-s-A_B_C_-1.0+2"


def test_the_installed_firmware_comes_first_and_what_is_left_out_says_why(bench: Bench) -> None:
    visits, gaps = bench.survey(bench.rig())
    assert ids(visits) == ["1.0", "1.1"]
    assert [(visit.n, visit.installed) for visit in visits] == [(1, True), (2, False)]
    assert visits[0].cell.controller == "chipset"
    assert {gap.cell.id: gap.reason for gap in gaps} == {
        "bench-a-slot1-MAKER_SSD_1-2.0": "no image in the matrix",
        "bench-a-slot1-MAKER_SSD_1-0.9": "its status is withdrawn",
        "bench-a-slot2-UNKNOWN-01": f'{bench.folder}/matrix.yaml has no model "UNKNOWN"',
    }


def test_a_candidate_is_held_against_what_is_released(bench: Bench) -> None:
    def against(*rigs: Rig, old: str = "", new: str = "") -> dict[str, str | None]:
        visits, _ = bench.survey(*rigs, old=old, new=new)
        return {visit.cell.firmware: visit.against for visit in visits}

    rig = bench.rig()
    assert against(rig) == {"1.0": None, "1.1": "1.0"}
    named = {"old": "revision: 1.1, status: candidate", "new": "revision: 1.1, predecessor: 2.0"}
    assert (
        against(rig, old=named["old"], new=f"{named['new']}, status: candidate")["1.1"] == "1.0"
    ), "2.0 is a candidate itself"
    assert against(bench.rig(firmware="0.9"))["1.1"] == "1.0", "what it has is retired"
    assert against(rig, old="1.0, status: released", new="1.0, status: candidate") == {
        "1.0": None,
        "1.1": None,
    }


def test_nothing_is_flashed_that_could_not_be_undone(bench: Bench) -> None:
    visits, gaps = bench.survey(bench.rig(firmware="2.0"))
    assert ids(visits) == ["2.0"]
    assert "no image of 2.0, so it could not be put back" in [gap.reason for gap in gaps]


def test_without_flash_only_the_installed_firmware_is_tested(bench: Bench) -> None:
    visits, gaps = bench.survey(bench.rig(flash=""))
    assert ids(visits) == ["1.0"]
    assert "not on the drive, and no flash in the rig file" in [gap.reason for gap in gaps]


def test_withdrawn_firmware_is_tested_where_it_is(bench: Bench) -> None:
    assert ids(bench.survey(bench.rig(firmware="0.9"))[0]) == ["0.9", "1.1", "1.0"]


CHIPSET = 'name: chipset, pci_id: "8086:A282", driver: ahci'
OTHER = 'name: onboard, pci_id: "8086:0001", driver: ahci'


@pytest.mark.parametrize(
    ("kinds", "message"),
    [
        (
            OTHER,
            'bench-a.yaml:4: controllers[onboard].name: found "onboard", which is 8086:0001 with '
            "driver ahci in matrix.yaml:4, expected another name, for that one's limits and known "
            "issues are not this one's",
        ),
        (
            'name: hba, pci_id: "1000:0097", driver: megaraid_sas',
            'bench-a.yaml:5: controllers[hba].name: found "hba", which is 1000:0097 with driver '
            "megaraid_sas in matrix.yaml:4, expected another name, for that one's limits and known "
            "issues are not this one's",
        ),
    ],
)
def test_a_controller_does_not_go_by_the_name_of_another_kind(
    bench: Bench, kinds: str, message: str
) -> None:
    assert bench.refusal(bench.rig(), old=CHIPSET, new=kinds) == [message]


@pytest.mark.parametrize(
    ("kinds", "name"),
    [
        (f"{OTHER}}}\n  - {{{CHIPSET}", "chipset"),
        ('name: hba, pci_id: "1000:0097", driver: mpt3sas', "onboard"),
    ],
)
def test_a_controller_is_of_the_kind_that_its_pci_id_says(
    bench: Bench, kinds: str, name: str
) -> None:
    """Without one, of the kind with its name and driver."""
    visits, _ = bench.survey(bench.rig(), old=CHIPSET, new=kinds)
    assert visits[0].cell.controller == name


def test_unknown_firmware_names_both_files(bench: Bench) -> None:
    assert bench.refusal(bench.rig(firmware="0.7", protocol="scsi")) == [
        'bench-a.yaml:16: drives[slot1].firmware: found "0.7", expected a firmware of MAKER SSD/1 '
        'in matrix.yaml:6: "2.0", "1.1", "1.0", "0.9"; add it there if it is right',
        'bench-a.yaml:18: drives[slot1].protocol: found "scsi", expected "sata" as of MAKER SSD/1 '
        "in matrix.yaml:6",
    ]


def test_an_image_that_is_not_the_one_meant_is_refused_with_both_hashes(bench: Bench) -> None:
    rig = bench.rig()
    (bench.folder / "1.1.bin").write_bytes(b"other")
    found, meant = (hashlib.sha256(data).hexdigest() for data in (b"other", b"two"))
    assert bench.refusal(rig) == [
        f"matrix.yaml:12: models[MAKER SSD/1].firmware[1.1].image: found sha256 {found} of "
        f"1.1.bin, expected {meant}; bring back the image, or correct sha256 if this one is meant"
    ]
    (bench.folder / "1.0.bin").unlink()
    assert bench.refusal(rig)[1] == (
        "matrix.yaml:13: models[MAKER SSD/1].firmware[1.0].image: found 1.0.bin, which cannot be "
        "read (No such file or directory), expected the firmware's image; bring it back, or "
        "correct the path"
    )


def test_an_image_that_nothing_needs_is_not_opened(bench: Bench) -> None:
    for name in IMAGES:
        (bench.folder / f"{name}.bin").unlink()
    assert ids(bench.survey(bench.rig(flash=""))[0]) == ["1.0"]


def test_two_rig_files_cannot_claim_one_thing(bench: Bench) -> None:
    first = bench.rig()
    second = bench.rig(name="bench-b")
    fields = [line.split(": ", 1)[1] for line in bench.refusal(first, second)]
    assert fields == [
        'found serial number "S1", expected each serial number once; it is given already in '
        "bench-a.yaml:14",
        'found serial number "S2", expected each serial number once; it is given already in '
        "bench-a.yaml:20",
        'found WWN "0x5000c50000000001", expected each WWN once; it is given already in '
        "bench-a.yaml:15",
        'found outlet "1 at /dev/ttyS0", expected each outlet once; it is given already in '
        "bench-a.yaml:9",
        'found outlet "2 at /dev/ttyS0", expected each outlet once; it is given already in '
        "bench-a.yaml:10",
    ]
    assert 'found rig name "bench-a"' in bench.refusal(first, first)[0]


def test_a_plan_survives_the_way_to_another_process(bench: Bench) -> None:
    visits, _ = bench.survey(bench.rig())
    assert visits_from_json(visits_to_json(visits)) == visits
    assert len({*visits}) == 2


def test_a_plan_with_nothing_to_run_is_refused(bench: Bench) -> None:
    rig = bench.rig()
    bench.survey(rig, old="MAKER SSD/1", new="OTHER")
    with pytest.raises(Misuse, match=r"nothing to run with .*matrix\.yaml:") as caught:
        plan([rig], load_matrix(bench.folder / "matrix.yaml"))
    assert "bench-a-slot1-MAKER_SSD_1-1.0: " in str(caught.value)


def test_plans_do_not_depend_on_anything_but_the_files(bench: Bench) -> None:
    first, second = bench.survey(bench.rig()), bench.survey(bench.rig())
    assert first == second


def with_outlets(bench: Bench, feeds: Sequence[str], controllers: str = "onboard hba") -> Rig:
    rig = bench.rig()
    text = rig.path.read_text()
    head, tail = text[: text.index("outlets:")], text[text.index("drives:") :]
    outlets = "".join(
        f"  - {{name: o{n}, pdu: pdu, outlet: {n}, feeds: {fed}}}\n"
        for n, fed in enumerate(feeds, 1)
    )
    tail = tail.replace("controller: hba", f"controller: {controllers.split()[1]}")
    rig.path.write_text(f"{head}{'outlets:' if outlets else ''}\n{outlets}{tail}")
    return load_rig(rig.path)


@pytest.mark.parametrize(
    ("feeds", "controllers", "together"),
    [
        (["[slot1]", "[slot2]"], "onboard hba", False),
        (["[slot1]", "[slot2]"], "onboard onboard", True),
        (["[slot1, slot2]"], "onboard hba", True),
        (["host"], "onboard hba", True),
        (["host", "[slot2]"], "onboard hba", True),
        (["host", "[slot1]", "[slot2]"], "onboard hba", False),
    ],
)
def test_drives_that_disturb_each_other_share_a_path(
    bench: Bench, feeds: list[str], controllers: str, together: bool
) -> None:
    paths = shared_paths(with_outlets(bench, feeds, controllers))
    second = "slot1" if together else "slot2"
    assert paths == {"slot1": "bench-a/slot1", "slot2": f"bench-a/{second}"}


def test_the_shipped_images_have_the_hashes_of_the_shipped_matrix() -> None:
    matrix = load_matrix(packaged("firmware_matrix.yaml"))
    images = [each for model in matrix.models for each in model.firmware if each.image]
    assert len(images) == 3
    for firmware in images:
        assert firmware.image is not None
        found = hashlib.sha256(firmware.image.read_bytes()).hexdigest()
        assert found == firmware.sha256, f"{firmware.image} changed: put {found} into the matrix"
