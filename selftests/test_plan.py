"""The plan: made of files alone, stable, readable, and refused when files contradict each other."""

import argparse
import hashlib
import json
import os
import subprocess
import sys
from collections.abc import Sequence
from pathlib import Path

import pytest

from leadline.cli import main
from leadline.commands import plan as command
from leadline.drive_time import CLAIM_S
from leadline.errors import Misuse
from leadline.inventory.fields import packaged
from leadline.inventory.matrix import load_matrix
from leadline.inventory.plan import (
    Cell,
    Gap,
    Visit,
    plan,
    survey,
    visits_from_json,
    visits_to_json,
)
from leadline.inventory.rig import Rig, load_rig
from leadline.inventory.shared import shared_paths

RIG = """\
rig: bench-a
host: {{reach: local}}
controllers:
  - {{name: onboard, pci_id: "8086:a282", driver: ahci}}
  - {{name: hba, driver: mpt3sas}}
pdus:
  - {{name: pdu, family: baytech-rpc3, port: /dev/ttyS0}}
outlets:
  - {{name: a, pdu: pdu, outlet: 1, feeds: [slot1]}}
  - {{name: b, pdu: pdu, outlet: 2, feeds: [slot2]}}
drives:
  - slot: slot1
    model: MAKER SSD/1
    serial: S1
    wwn: 0x5000c50000000001
    firmware: {firmware}
    controller: onboard
    protocol: {protocol}
{flash}
  - {{slot: slot2, model: {model}, serial: S2, firmware: 01, controller: hba, protocol: sas}}
"""
FLASH = '    flash: {command: [f, "{image}"], runs_on: here, activates: power-cycle}'
IMAGES = {"1.0": b"one", "1.1": b"two"}

MATRIX = """\
classes:
  ssd: {{claim_a: {{at_least: 3, source: x}}}}
controllers:
  - {{name: chipset, pci_id: "8086:A282", driver: ahci}}
models:
  - model: MAKER SSD/1
    class: ssd
    protocol: sata
    queue_depth: 32
    firmware:
      - {{revision: 2.0, status: candidate}}
      - {{revision: 1.1, status: candidate, image: 1.1.bin, sha256: {hashes[1.1]}}}
      - {{revision: 1.0, status: released, image: 1.0.bin, sha256: {hashes[1.0]}}}
      - {{revision: 0.9, status: withdrawn, image: 1.0.bin, sha256: {hashes[1.0]}}}
"""


class Bench:
    """A rig file and a matrix in a folder, as a test changes them."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        for name, data in IMAGES.items():
            (folder / f"{name}.bin").write_bytes(data)

    def rig(
        self,
        *,
        firmware: str = "1.0",
        model: str = "UNKNOWN",
        protocol: str = "sata",
        flash: str = FLASH,
        name: str = "bench-a",
    ) -> Rig:
        text = RIG.format(firmware=firmware, model=model, flash=flash, protocol=protocol)
        path = self.folder / f"{name}.yaml"
        path.write_text(text.replace("bench-a", name))
        return load_rig(path)

    def survey(
        self, *rigs: Rig, old: str = "", new: str = ""
    ) -> tuple[tuple[Visit, ...], tuple[Gap, ...]]:
        hashes = {name: hashlib.sha256(data).hexdigest() for name, data in IMAGES.items()}
        path = self.folder / "matrix.yaml"
        path.write_text(MATRIX.format(hashes=hashes).replace(old, new))
        return survey(rigs, load_matrix(path))

    def refusal(self, *rigs: Rig, old: str = "", new: str = "") -> list[str]:
        with pytest.raises(Misuse) as caught:
            self.survey(*rigs, old=old, new=new)
        return str(caught.value).replace(f"{self.folder}/", "").splitlines()


@pytest.fixture
def bench(tmp_path: Path) -> Bench:
    return Bench(tmp_path)


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


def test_a_candidate_is_held_against_its_predecessor_or_what_is_released(bench: Bench) -> None:
    def against(*rigs: Rig, old: str = "", new: str = "") -> dict[str, str | None]:
        visits, _ = bench.survey(*rigs, old=old, new=new)
        return {visit.cell.firmware: visit.against for visit in visits}

    rig = bench.rig()
    assert against(rig) == {"1.0": None, "1.1": "1.0"}
    named = {"old": "revision: 1.1, status: candidate", "new": "revision: 1.1, predecessor: 2.0"}
    assert against(rig, old=named["old"], new=f"{named['new']}, status: candidate")["1.1"] == "2.0"
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


def run(*arguments: str) -> int:
    parser = argparse.ArgumentParser()
    command.register(parser.add_subparsers())
    namespace = parser.parse_args(["plan", *arguments])
    code: int = namespace.func(namespace)
    return code


def test_the_command_shows_what_runs_and_what_is_missing(
    bench: Bench, capsys: pytest.CaptureFixture[str]
) -> None:
    bench.survey(bench.rig())
    files = ["--rig", str(bench.folder / "bench-a.yaml"), "--matrix", f"{bench.folder}/matrix.yaml"]
    assert run(*files) == 0
    shown = capsys.readouterr().out
    assert "bench-a-slot1-MAKER_SSD_1-1.1: candidate, to be flashed, controller chipset" in shown
    assert "    and then 1.0 is flashed again, which it came with\n" in shown
    assert "    bench-a-slot1-MAKER_SSD_1-2.0: no image in the matrix" in shown
    assert shown.count("    held against 1.0") == 1
    assert "of 3 cells of the matrix, 2 are served\n" in shown
    assert "2 flashes, about 4 min of drive time (130 s for each limit), 4 min" in shown
    assert shown.endswith("2 to run on 1 drive, 3 missing\n")
    assert run(*files, "--json") == 0
    report = json.loads(capsys.readouterr().out)
    assert [visit["id"].rpartition("-")[2] for visit in report["visits"]] == ["1.0", "1.1"]
    assert [visit["against"] for visit in report["visits"]] == [None, "1.0"]
    assert report["visits"][0]["limits"]["claim_a"]["at_least"] == 3
    assert [gap["slot"] for gap in report["missing"]] == ["slot1", "slot1", "slot2"]
    assert [gap["lacks"] for gap in report["missing"]] == ["image", "status", "model"]
    assert report["cells"] == {"wanted": 3, "served": 2, "missing": 1}
    assert [(step["does"], step["firmware"]) for step in report["order"]] == [
        ("test", "1.0"),
        ("flash", "1.1"),
        ("test", "1.1"),
        ("flash", "1.0"),
    ]
    assert (report["flashes"], report["drive_time_s"]) == (2, 2 * CLAIM_S)
    assert report["unserved"] == [
        {
            "model": "MAKER SSD/1",
            "controller": "chipset",
            "firmware": ["2.0"],
            "lacks": "image",
            "reason": "no image in the matrix",
        }
    ]


ISSUES = """, known_issues: [
      {claim: claim_a, summary: It is slow., link: LINK-1},
      {claim: claim_b, summary: It is loud., link: LINK-2, excuses: false}]"""


def test_the_command_tells_known_issues_limits_and_images(
    bench: Bench, capsys: pytest.CaptureFixture[str]
) -> None:
    rig = bench.rig()
    bench.survey(rig)
    path = bench.folder / "matrix.yaml"
    text = path.read_text().replace("at_least: 3,", "at_least: 3, at_most: 9,")
    path.write_text(
        text.replace(
            "status: candidate, image: 1.1.bin", f"status: candidate{ISSUES}, image: 1.1.bin"
        )
    )
    files = ["--rig", str(rig.path), "--matrix", str(path)]
    assert run(*files) == 0
    released, candidate = capsys.readouterr().out.split("bench-a-slot1-MAKER_SSD_1-1.1: ")
    assert "bench-a-slot1-MAKER_SSD_1-1.0: released, on the drive, controller chipset" in released
    assert "    claim_a at least 3 and at most 9" in released
    assert "issue" not in released
    assert "    known issue: claim_a: It is slow. (LINK-1)" in candidate
    assert "    noted, not excused: claim_b: It is loud. (LINK-2)" in candidate
    assert run(*files, "--json") == 0
    first, second = json.loads(capsys.readouterr().out)["visits"]
    assert (first["status"], second["status"]) == ("released", "candidate")
    assert (first["installed"], second["installed"]) == (True, False)
    assert second["image"] == str(bench.folder / "1.1.bin")
    assert [issue["link"] for issue in second["known_issues"]] == ["LINK-1", "LINK-2"]


def test_the_command_counts_drives_of_several_rigs(
    bench: Bench, capsys: pytest.CaptureFixture[str]
) -> None:
    first = bench.rig()
    bench.survey(first)
    text = first.path.read_text().replace("bench-a", "bench-b").replace("ttyS0", "ttyS1")
    other = bench.folder / "bench-b.yaml"
    other.write_text(text.replace("serial: S", "serial: T").replace("0001", "0002"))
    rigs = ["--rig", str(first.path), "--rig", str(other)]
    assert run(*rigs, "--matrix", f"{bench.folder}/matrix.yaml") == 0
    assert capsys.readouterr().out.endswith("4 to run on 2 drives, 6 missing\n")


def test_the_command_with_nothing_to_run(bench: Bench, capsys: pytest.CaptureFixture[str]) -> None:
    rig = bench.rig()
    bench.survey(rig, old="MAKER SSD/1", new="OTHER")
    files = ["--rig", str(rig.path), "--matrix", f"{bench.folder}/matrix.yaml", "--json"]
    assert run(*files) == 2
    captured = capsys.readouterr()
    assert json.loads(captured.out)["visits"] == []
    assert captured.err.startswith("leadline plan: nothing to run")


def test_the_shipped_files_make_the_plan_of_a_first_run(
    capsys: pytest.CaptureFixture[str],
) -> None:
    matrix = load_matrix(packaged("firmware_matrix.yaml"))
    visits = plan([load_rig(packaged("rigs/virtual.yaml"))], matrix)
    assert [visit.id for visit in visits] == [
        "virtual-ssd1-LEADLINE_VSSD-1.0",
        "virtual-ssd1-LEADLINE_VSSD-1.1",
        "virtual-scsi1-LEADLINE_VSCSI-1.0",
    ]
    assert {visit.shared_path for visit in visits} == {"virtual/ssd1"}
    example = plan([load_rig(packaged("rigs/example-bench.yaml"))], matrix)
    assert example[0].id == "bench-a-slot1-INTEL_SSDSC2BX016T4-G2010150"
    assert run("--matrix", str(matrix.path)) == 0
    assert "virtual-ssd1-LEADLINE_VSSD-1.1" in capsys.readouterr().out


def test_the_shipped_images_have_the_hashes_of_the_shipped_matrix() -> None:
    matrix = load_matrix(packaged("firmware_matrix.yaml"))
    images = [each for model in matrix.models for each in model.firmware if each.image]
    assert len(images) == 3
    for firmware in images:
        assert firmware.image is not None
        found = hashlib.sha256(firmware.image.read_bytes()).hexdigest()
        assert found == firmware.sha256, f"{firmware.image} changed: put {found} into the matrix"


def test_output_whose_reader_has_gone_is_no_success() -> None:
    """As in `leadline judge DIR | head -1`: who fails behind it must not pass for good."""
    reading, writing = os.pipe()
    os.close(reading)
    words = [sys.executable, "-m", "leadline.cli", "plan"]
    done = subprocess.run(words, stdout=writing, stderr=subprocess.PIPE, check=False, timeout=60)
    os.close(writing)
    assert (done.returncode, done.stderr) == (141, b"")


def test_an_error_that_nobody_foresaw_is_a_defect_and_no_failed_claim(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    def show(_: argparse.Namespace) -> int:
        raise ZeroDivisionError("a bug")

    monkeypatch.setattr(command, "show", show)
    assert main(["plan"]) == 70
    said = capsys.readouterr().err
    assert "ZeroDivisionError: a bug" in said
    assert said.endswith("leadline: this is a defect of Leadline's own; please report it\n")
