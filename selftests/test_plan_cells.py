"""Which cells a plan has: builds of one revision, ways back, what is wanted, and what it costs."""

import argparse
import hashlib
from dataclasses import dataclass, field
from itertools import pairwise
from pathlib import Path

import pytest

from leadline.commands.plan import show
from leadline.drive_time import CLAIM_S
from leadline.errors import Misuse
from leadline.inventory.coverage import Coverage, Unserved, carries, coverage
from leadline.inventory.effort import Step, effort, order
from leadline.inventory.matrix import Matrix, load_matrix
from leadline.inventory.plan import Gap, Visit, survey
from leadline.inventory.rig import Rig, load_rig
from leadline.inventory.stations import route_of

HEAD = """\
classes:
  ssd:
    claim_a: {at_least: 3, source: x}
    claim_b: {at_least: 3, source: x}
controllers:
  - {name: chipset, pci_id: "8086:0001", driver: ahci}
  - {name: hba, pci_id: "8086:0002", driver: mpt3sas}
  - {name: absent, pci_id: "8086:0003", driver: ahci}
models:
"""
MODEL = """\
  - model: {name}
    class: ssd
    protocol: sata
    queue_depth: 32
    firmware:
"""
FLASH = 'flash: {command: [f, "{image}"], runs_on: here, activates: at-once}, '
RIG = """\
rig: bench
host: {reach: local}
controllers:
  - {name: one, pci_id: "8086:0001", driver: ahci}
  - {name: two, pci_id: "8086:0002", driver: mpt3sas}
pdus: [{name: p, family: baytech-rpc3, port: /dev/ttyS0}]
outlets: [OUTLETS]
drives:
"""


@dataclass
class Files:
    """A matrix and a rig file, as a test fills them."""

    folder: Path
    models: list[str] = field(default_factory=list)
    drives: list[str] = field(default_factory=list)
    outlets: str = "{name: o, pdu: p, outlet: 1, feeds: [none]}"

    def model(self, name: str, *firmware: str) -> None:
        """One entry; each firmware as ``1.0`` or ``1.0 status: withdrawn, downgrade: refused``."""
        entry = MODEL.format(name=name)
        for words in firmware:
            revision, _, rest = words.partition(" ")
            image = self.folder / f"{revision}.bin"
            image.write_text(f"{name} {revision}")
            digest = hashlib.sha256(image.read_bytes()).hexdigest()
            rest = rest if "status" in rest else f"status: candidate, {rest}".removesuffix(", ")
            picture = "" if "no image" in rest else f", image: {image.name}, sha256: {digest}"
            rest = rest.replace(", no image", "")
            entry += f'      - {{revision: "{revision}", {rest}{picture}}}\n'
        self.models.append(entry)

    def drive(self, slot: str, model: str, firmware: str, on: str = "one", more: str = "") -> None:
        self.drives.append(
            f'  - {{slot: {slot}, model: {model}, serial: {slot}, firmware: "{firmware}", '
            f"{FLASH}{more}controller: {on}, protocol: sata}}\n"
        )

    def read(self) -> tuple[Rig, Matrix]:
        (self.folder / "matrix.yaml").write_text(HEAD + "".join(self.models))
        outlets = self.outlets.replace("none", self.drives[0].split()[2].strip(","))
        rig = RIG.replace("OUTLETS", outlets) + "".join(self.drives)
        (self.folder / "rig.yaml").write_text(rig)
        return load_rig(self.folder / "rig.yaml"), load_matrix(self.folder / "matrix.yaml")

    def survey(self) -> tuple[tuple[Visit, ...], tuple[Gap, ...]]:
        rig, matrix = self.read()
        return survey([rig], matrix)

    def coverage(self) -> Coverage:
        rig, matrix = self.read()
        return coverage([rig], matrix, *survey([rig], matrix))


@pytest.fixture
def files(tmp_path: Path) -> Files:
    return Files(tmp_path)


def revisions(entries: tuple[Visit, ...] | tuple[Gap, ...]) -> list[str]:
    return [entry.cell.firmware for entry in entries]


# Builds that show one revision.


def test_two_builds_of_one_revision_are_two_cells_with_readable_ids(files: Files) -> None:
    files.model("M", "1.0", "1.0-again shows: '1.0'")
    files.drive("a", "M", "1.0")
    _, matrix = files.read()
    again = matrix.firmware("M", "1.0-again")
    files.drives.clear()
    files.drive("a", "M", "1.0", more=f"firmware_sha256: {again.sha256}, ")
    visits, _ = files.survey()
    assert [visit.id for visit in visits] == ["bench-a-M-1.0-again", "bench-a-M-1.0"]
    assert [visit.installed for visit in visits] == [True, False]
    assert again.shows == "1.0"
    assert matrix.firmware("M", "1.0").sha256 != again.sha256


def test_which_of_two_builds_is_on_the_drive_is_not_guessed(files: Files) -> None:
    files.model("M", "1.0", "1.0-again shows: '1.0'")
    files.drive("a", "M", "1.0")
    with pytest.raises(
        Misuse, match=r"which 2 firmware of M .* expected firmware_sha256 beside it"
    ):
        files.survey()


def test_ids_of_two_rigs_cannot_be_one(files: Files, tmp_path: Path) -> None:
    files.model("M", "1.0")
    files.drive("b-c", "M", "1.0")
    first, matrix = files.read()
    text = first.path.read_text().replace("rig: bench", "rig: bench-b").replace("b-c", "c")
    other = tmp_path / "other.yaml"
    other.write_text(text.replace("ttyS0", "ttyS1"))
    with pytest.raises(Misuse, match='found rig and slot "bench-b-c", expected each rig and slot'):
        survey([first, load_rig(other)], matrix)


# Ways there and back.


def test_firmware_that_refuses_a_downgrade_is_not_put_where_it_could_not_go_back(
    files: Files,
) -> None:
    files.model("M", "1.0", "1.1 predecessor: '1.0', downgrade: refused", "1.2 predecessor: '1.1'")
    files.drive("a", "M", "1.0")
    visits, gaps = files.survey()
    assert revisions(visits) == ["1.0", "1.2"]
    assert [(gap.cell.firmware, gap.lacks, gap.reason) for gap in gaps] == [
        ("1.1", "downgrade", "it refuses older firmware, so 1.0 could not be put back")
    ]


def test_one_that_refuses_is_tested_where_what_was_on_the_drive_comes_after_it(
    files: Files,
) -> None:
    files.model("M", "1.1 predecessor: '1.0', downgrade: refused", "1.0", "1.2 predecessor: '1.1'")
    files.drive("a", "M", "1.2")
    visits, gaps = files.survey()
    assert revisions(visits) == ["1.2", "1.0", "1.1"], "for from 1.1 there is no way to 1.0"
    assert gaps == ()


def test_a_drive_whose_own_firmware_refuses_takes_newer_only(files: Files) -> None:
    files.model("M", "1.0", "1.1 predecessor: '1.0', downgrade: refused", "1.2 predecessor: '1.1'")
    files.drive("a", "M", "1.1")
    visits, gaps = files.survey()
    assert revisions(visits) == ["1.1", "1.2"]
    assert [gap.reason for gap in gaps] == ["1.1, which is on the drive, refuses older firmware"]


def test_of_two_that_refuse_the_second_must_come_after_the_first(files: Files) -> None:
    # 3 comes after 2 and 2b, which are branches: neither takes the other.
    files.model(
        "M",
        "2 downgrade: refused",
        "2b downgrade: refused, status: candidate",
        "3 predecessor: '2'",
    )
    files.models[0] = files.models[0].replace('"2b", ', '"2b", predecessor: "2", ')
    files.drive("a", "M", "3")
    visits, gaps = files.survey()
    assert revisions(visits) == ["3", "2"]
    assert [gap.cell.firmware for gap in gaps] == ["2b"], "3 does not come after it"


REFUSING_CANDIDATE = (
    "1.0 status: released",
    "1.1 predecessor: '1.0', downgrade: refused",
    "1.2 predecessor: '1.1', status: released",
)
REFUSING_RELEASED = (
    "1.0 status: released, downgrade: refused",
    "1.1 predecessor: '1.0'",
    "0.9 status: released",
    "1.2 predecessor: '1.1', status: released",
)
REFUSING_AND_ON_THE_DRIVE = (
    "1.1 downgrade: refused, status: released",
    "1.2 predecessor: '1.1'",
)
AGAINST_WHAT_COMES_AFTER_IT = (
    "1.1 downgrade: refused",
    "1.2 predecessor: '1.1', status: released",
)


@pytest.mark.parametrize(
    ("firmware", "home", "way"),
    [
        (REFUSING_CANDIDATE, "1.2", ["1.2", "1.0", "1.1"]),
        (REFUSING_RELEASED, "1.2", ["1.2", "1.1", "0.9", "1.0"]),
        (REFUSING_AND_ON_THE_DRIVE, "1.1", ["1.1", "1.2", "1.1"]),
        (AGAINST_WHAT_COMES_AFTER_IT, "1.2", ["1.2", "1.1", "1.2"]),
    ],
)
def test_candidates_are_compared_only_where_each_firmware_on_the_way_takes_the_next(
    files: Files, firmware: tuple[str, ...], home: str, way: list[str]
) -> None:
    files.model("M", *firmware)
    files.drive("a", "M", home)
    _, matrix = files.read()
    visits, gaps = files.survey()
    assert gaps == ()
    made = revisions(route_of(visits).visits)
    assert made == way
    entry = matrix.model("M")
    for one, next_ in pairwise([*made, home]):
        assert entry.takes(entry.by_revision[one], entry.by_revision[next_])


def test_a_candidate_that_is_not_compared_is_held_against_what_is_stored(
    files: Files, capsys: pytest.CaptureFixture[str]
) -> None:
    files.model("M", *REFUSING_CANDIDATE)
    files.drive("a", "M", "1.2")
    visits, _ = files.survey()
    stays = route_of(visits, stored_baseline=True).stays
    assert [stay.released.firmware for stay in stays] == ["1.0", "1.0"]
    rig, matrix = files.read()
    show(argparse.Namespace(rig=[rig.path], matrix=matrix.path, why=None, json=False))
    alone = "    held against 1.0, by what is stored alone: downgrades are refused\n"
    assert alone in capsys.readouterr().out


def test_what_waits_for_a_power_cycle_needs_an_outlet(files: Files) -> None:
    files.model("M", "1.0", "1.1 activation: power-cycle")
    files.drive("a", "M", "1.0")
    files.drive("b", "M", "1.0")
    visits, gaps = files.survey()
    assert [visit.id for visit in visits] == ["bench-a-M-1.0", "bench-a-M-1.1", "bench-b-M-1.0"]
    assert [(gap.cell.id, gap.lacks) for gap in gaps] == [("bench-b-M-1.1", "outlet")]


@pytest.mark.parametrize("by", ["the matrix", "the rig file"])
def test_a_power_cycle_of_the_machine_that_leadline_runs_on_activates_nothing(
    files: Files, by: str
) -> None:
    """It would be refused, and the image would be in the drive by then."""
    files.model("M", "1.0", "1.1 activation: power-cycle" if by == "the matrix" else "1.1")
    files.drive("a", "M", "1.0")
    if by == "the rig file":
        files.drives[0] = files.drives[0].replace("at-once", "power-cycle")
    files.outlets = "{name: o, pdu: p, outlet: 1, feeds: host}"
    visits, gaps = files.survey()
    assert revisions(visits) == ["1.0"]
    assert [(gap.lacks, gap.reason) for gap in gaps] == [
        ("outlet", "it waits for a power cycle, which would be that of this machine")
    ]


# Globs.


def test_a_name_goes_before_a_glob(files: Files) -> None:
    files.model("MAKER*", "9")
    files.model("MAKER A", "1.0")
    files.drive("a", "MAKER A", "1.0")
    _, matrix = files.read()
    entries = [matrix.entry(name) for name in ("MAKER A", "MAKER B", "MADE")]
    assert [entry and entry.model for entry in entries] == ["MAKER A", "MAKER*", None]


def test_globs_that_agree_may_overlap(files: Files) -> None:
    files.model("MAKER*", "9")
    files.models.append(files.models[0].replace("MAKER*", '"*SSD"'))
    files.drive("a", "MAKER SSD", "9")
    visits, _ = files.survey()
    assert revisions(visits) == ["9"]


# What is wanted, and what it costs.


def test_a_cell_that_no_drive_serves_says_what_it_lacks(files: Files) -> None:
    files.model("M", "1.0", "1.1", "0.9 status: withdrawn", "1.2 status: candidate, no image")
    files.model("N", "5", "6")
    files.drive("a", "M", "1.0", on="one")
    covered = files.coverage()
    assert (covered.wanted, covered.served) == (3 * 3 + 2 * 3, 2)
    assert covered.absent == ("absent",)
    assert set(covered.unserved) == {
        Unserved("M", "chipset", ("1.2",), "image", "no image in the matrix"),
        Unserved(
            "M", "hba", ("1.0", "1.1", "1.2"), "drive",
            "no drive of this model hangs on it; there are some on chipset",
        ),
        Unserved("M", "absent", ("1.0", "1.1", "1.2"), "rig", "no rig has the controller absent"),
        Unserved("N", "chipset", ("5", "6"), "drive", "no rig has a drive of this model"),
        Unserved("N", "hba", ("5", "6"), "drive", "no rig has a drive of this model"),
        Unserved("N", "absent", ("5", "6"), "rig", "no rig has the controller absent"),
    }  # fmt: skip


def test_a_model_is_wanted_on_the_controllers_that_it_names(files: Files) -> None:
    files.model("M", "1.0")
    files.models[0] = files.models[0].replace(
        "queue_depth: 32\n", "queue_depth: 32\n    controllers: [hba]\n"
    )
    files.drive("a", "M", "1.0", on="one")
    covered = files.coverage()
    assert (covered.wanted, covered.served) == (1, 0), "it is tested, and not on what was meant"


def test_without_controllers_in_the_matrix_any_will_do(files: Files) -> None:
    files.model("M", "1.0", "1.1")
    files.drive("a", "M", "1.0")
    rig, _ = files.read()
    head = HEAD[: HEAD.index("controllers:")] + "models:\n"
    (files.folder / "matrix.yaml").write_text(head + files.models[0])
    matrix = load_matrix(files.folder / "matrix.yaml")
    covered = coverage([rig], matrix, *survey([rig], matrix))
    assert (covered.wanted, covered.served, covered.unserved) == (2, 2, ())


@pytest.mark.parametrize(
    ("driver", "protocols"),
    [("ahci", "sata"), ("ata_piix", "sata"), ("mpt3sas", "sata sas scsi"), ("virtio-pci", "scsi")],
)
def test_what_a_driver_can_have(driver: str, protocols: str) -> None:
    wanted = protocols.split()
    assert [each for each in ("sata", "sas", "scsi") if carries(driver, each)] == wanted


def test_flashes_are_counted_with_the_way_back_and_drive_time_by_shared_path(
    files: Files,
) -> None:
    files.model("M", "1.0", "1.1", "1.2")
    files.drive("a", "M", "1.0", on="one")
    files.drive("b", "M", "1.2", on="one")
    files.model("N", "7")
    files.drive("c", "N", "7", on="two")
    rig, matrix = files.read()
    visits, _ = survey([rig], matrix)
    cost = effort(visits, matrix)
    assert cost.flashes == 3 + 3
    assert cost.drive_time_s == 7 * 2 * CLAIM_S, "seven visits with two claims each"
    assert cost.longest_path_s == 6 * 2 * CLAIM_S, "a and b share a controller"
    assert effort([], matrix).flashes == 0


def test_the_order_of_work_ends_with_what_the_drive_came_with(files: Files) -> None:
    files.model("M", "1.0", "1.1", "1.2")
    files.drive("a", "M", "1.1")
    files.drive("b", "M", "1.0", more="writes: allowed, ")
    files.drives[1] = files.drives[1].replace(FLASH, "")
    visits, _ = files.survey()
    assert list(order(visits)) == [
        Step("bench", "a", "test", "1.1"),
        Step("bench", "a", "flash", "1.0"),
        Step("bench", "a", "test", "1.0"),
        Step("bench", "a", "flash", "1.2"),
        Step("bench", "a", "test", "1.2"),
        Step("bench", "a", "flash", "1.1"),
        Step("bench", "b", "test", "1.0"),
    ]


def test_what_is_said_of_a_plan(files: Files, capsys: pytest.CaptureFixture[str]) -> None:
    files.model("M", "1.0", "1.0-again shows: '1.0'", "1.2 status: candidate, no image")
    files.model("N", "7")
    digest = hashlib.sha256(b"M 1.0").hexdigest()
    files.drive("a", "M", "1.0", more=f"firmware_sha256: {digest}, ")
    files.drive("b", "N", "7", on="one")
    rig, matrix = files.read()
    options = argparse.Namespace(rig=[rig.path], matrix=matrix.path, why=None, json=False)
    assert show(options) == 0
    limits = ["    claim_a at least 3", "    claim_b at least 3"]
    assert capsys.readouterr().out.replace(f"{files.folder}/", "").splitlines() == [
        "bench-a-M-1.0: candidate, on the drive, controller chipset",
        *limits,
        "bench-a-M-1.0-again: candidate, to be flashed, controller chipset",
        "    its drive says 1.0",
        *limits,
        "    and then 1.0 is flashed again, which it came with",
        "bench-b-N-7: candidate, on the drive, controller chipset",
        *limits,
        "",
        "missing:",
        "    bench-a-M-1.2: no image in the matrix",
        "",
        "not attached:",
        "    matrix.yaml:8: controllers[absent]: found no rig that has it (8086:0003, ahci), and 4 "
        "cell(s) wait for it; add a rig file that does, or name for each model the controllers "
        "that it is to be tested on",
        "    M with 1.0, 1.0-again, 1.2 on hba: no drive of this model hangs on it; there are some "
        "on chipset",
        "    N with 7 on hba: no drive of this model hangs on it; there are some on chipset",
        "",
        "of 12 cells of the matrix, 3 are served",
        "2 flashes, about 13 min of drive time (130 s for each limit), 13 min of it on the "
        "busiest path",
        "3 to run on 2 drives, 1 missing",
    ]
