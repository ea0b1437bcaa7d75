"""The firmware matrix: limits, firmware, and that each mistake is named with its line."""

import re
from pathlib import Path

import pytest
import yaml

from leadline.errors import Misuse
from leadline.inventory import matrix as matrix_module
from leadline.inventory.fields import Entry, packaged
from leadline.inventory.matrix import LimitSpec, Matrix, load_matrix
from leadline.inventory.rig import load_rig

SHIPPED = packaged("firmware_matrix.yaml")
REFERENCE = Path(__file__).parents[1] / "docs" / "reference" / "firmware-matrix.md"

SMALL = """\
classes:
  ssd:
    ratio: {at_least: 3, source: sweeps}
    ready_s: {at_most: 10, source: libata}
models:
  - model: MODEL A
    class: ssd
    protocol: sata
    queue_depth: 32
    limits:
      ready_s: {at_most: 5, source: data sheet}
    firmware:
      - revision: 0007
        status: released
      - revision: 1e3
        status: candidate
        image: images/1e3.bin
        sha256: 0000000000000000000000000000000000000000000000000000000000000001
        known_issues:
          - claim: ratio
            summary: It serialises.
            link: https://tracker.example.org/1
            excuses: off
  - model: MODEL B
    class: hdd
    protocol: sas
    queue_depth: 64
    firmware:
      - revision: 0007
        status: withdrawn
"""


def load(folder: Path, text: str) -> Matrix:
    path = folder / "matrix.yaml"
    path.write_text(text)
    return load_matrix(path)


def refusal(folder: Path, text: str) -> list[str]:
    with pytest.raises(Misuse) as caught:
        load(folder, text)
    return str(caught.value).replace(f"{folder}/", "").splitlines()


def test_a_models_limits_are_its_classs_and_its_own(tmp_path: Path) -> None:
    matrix = load(tmp_path, SMALL)
    assert matrix.limits_for("MODEL A") == {
        "ratio": LimitSpec(at_least=3, source="sweeps"),
        "ready_s": LimitSpec(at_most=5, source="data sheet"),
    }
    assert matrix.limits_for("MODEL B") == {}
    with pytest.raises(Misuse, match="found no 'MODEL C', expected one of: MODEL A, MODEL B"):
        matrix.limits_for("MODEL C")


def test_firmware_is_looked_up_as_text(tmp_path: Path) -> None:
    matrix = load(tmp_path, SMALL)
    known = matrix.firmware("MODEL A", "1e3")
    assert known.image == tmp_path / "images" / "1e3.bin"
    assert [(issue.claim, issue.excuses) for issue in known.known_issues] == [("ratio", False)]
    assert matrix.firmware("MODEL A", "0007").status == "released"
    with pytest.raises(Misuse, match="firmware of MODEL A: found no '7', expected one of: 0007"):
        matrix.firmware("MODEL A", "7")


@pytest.mark.parametrize(
    ("old", "new", "message"),
    [
        ("  ssd:", "  flash:", 'matrix.yaml:2: classes.flash: found the key "flash", expected '
         "ssd or hdd"),
        ("    ratio:", "    Ratio 8/1:", "matrix.yaml:3: classes.ssd.Ratio 8/1: found the key "
         '"Ratio 8/1", expected a claim\'s name in lower-case letters, digits and _'),
        ("at_least: 3, ", "", "matrix.yaml:3: classes.ssd.ratio: found no limit, expected "
         "at_least, at_most or both"),
        ("at_least: 3", "at_least: 3, at_most: 2", "matrix.yaml:3: classes.ssd.ratio: found "
         "at_least above at_most, expected a range that a value can lie in"),
        (", source: sweeps", "", "matrix.yaml:3: classes.ssd.ratio.source: found nothing, "
         "expected where the limit comes from, in words"),
        ("at_least: 3", "at_least: nan", 'matrix.yaml:3: classes.ssd.ratio.at_least: found "nan", '
         "expected a number"),
        ("class: ssd", "class: tape", 'matrix.yaml:7: models[MODEL A].class: found "tape", '
         "expected ssd or hdd"),
        ("revision: 1e3", "revision: 0007", "matrix.yaml:15: models[MODEL A].firmware[0007]."
         'revision: found "0007", expected each revision of a model once; it is given already on '
         "line 13; another build that shows it has a name of its own, and this as shows"),
        ("MODEL B", "MODEL A", 'matrix.yaml:24: models[MODEL A].model: found "MODEL A", expected '
         "each model once; it is given already on line 6"),
        ("0001", "000g", "matrix.yaml:18: models[MODEL A].firmware[1e3].sha256: found "
         f'"{"0" * 63}g", expected 64 lower-case hex digits, as sha256sum prints them'),
        ("        sha256: " + "0" * 63 + "1\n", "", "matrix.yaml:15: models[MODEL A].firmware"
         "[1e3]: found an image without sha256, expected its hash too, from: sha256sum IMAGE"),
        ("candidate", "beta", 'matrix.yaml:16: models[MODEL A].firmware[1e3].status: found "beta", '
         "expected candidate, released or withdrawn"),
        ("candidate", "candidate\n        predecessor:", "matrix.yaml:17: models[MODEL A].firmware"
         '[1e3].predecessor: found nothing, expected a revision of this model: "0007", "1e3"'),
        ("excuses: off", "excuses: maybe", "matrix.yaml:23: models[MODEL A].firmware[1e3]."
         'known_issues[ratio].excuses: found "maybe", expected true (the claim may fail) or '
         "false (it is only noted)"),
    ],
)  # fmt: skip
def test_each_mistake_is_named(tmp_path: Path, old: str, new: str, message: str) -> None:
    assert old in SMALL
    assert message in refusal(tmp_path, SMALL.replace(old, new, 1))


def test_without_a_path_the_matrix_here_and_else_the_packaged_one(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    assert load_matrix().entry("LEADLINE VSSD") is not None
    (tmp_path / "firmware_matrix.yaml").write_text(SMALL)
    assert [entry.model for entry in load_matrix().models] == ["MODEL A", "MODEL B"]


def test_every_renamed_field_of_the_shipped_matrix_is_named_with_its_line(tmp_path: Path) -> None:
    text = SHIPPED.read_text()
    keys = _fields(yaml.compose(text, Loader=yaml.BaseLoader))
    assert len(keys) > 40
    for key in keys:
        start, end, line = key.start_mark.index, key.end_mark.index, key.start_mark.line + 1
        messages = refusal(tmp_path, f"{text[:start]}zz-{key.value}{text[end:]}")
        assert any(message.startswith(f"matrix.yaml:{line}: ") for message in messages), messages


def _fields(node: yaml.Node | None) -> list[yaml.Node]:
    """Every key of a matrix; claims' names too, which `zz-` makes names of no claim."""
    if isinstance(node, yaml.MappingNode):
        below = [field for _, value in node.value for field in _fields(value)]
        return [key for key, _ in node.value] + below
    if isinstance(node, yaml.SequenceNode):
        return [field for item in node.value for field in _fields(item)]
    return []


def test_the_shipped_matrix_holds_what_its_evidence_says() -> None:
    matrix = load_matrix(SHIPPED)
    ratio = matrix.limits_for("LEADLINE VSSD")["depth_8_over_depth_1"]
    assert (ratio.at_least, ratio.at_most) == (3.0, None)
    of_a_disk = matrix.limits_for("EXAMPLE SATA-DISK-4T")["depth_8_over_depth_1"]
    assert of_a_disk.at_least == 0.5, "the lowest that was recorded is 0.56"
    for model in ("LEADLINE VSSD", "EXAMPLE SATA-DISK-4T"):
        assert matrix.limits_for(model)["streams_ncq_on_over_off"].at_least == 0.95
    assert matrix.limits_for("LEADLINE VSSD")["threads_ncq_on_over_off"].at_least == 3.0
    few = matrix.limits_for("LEADLINE VSSD")["few_threads_ncq_on_over_off"].at_least
    assert few == 1.5, "the lowest that was recorded at depth 2 is 2.0"
    assert "threads_ncq_on_over_off" not in matrix.limits_by_class["hdd"], "some gain nothing"
    assert matrix.model("INTEL SSDSC2BX016T4").channels == 8, "the knee of the sweep is held to it"
    issue, *_ = matrix.firmware("LEADLINE VSSD", "1.1").known_issues
    assert (issue.claim, issue.excuses) == ("depth_8_over_depth_1", True)
    assert matrix.firmware("LEADLINE VSSD", "1.0").known_issues == ()


@pytest.mark.parametrize("name", ["rigs/example-bench.yaml", "rigs/virtual.yaml"])
def test_no_shipped_drive_is_failed_for_the_boot_of_its_host(name: str) -> None:
    rig, matrix = load_rig(packaged(name)), load_matrix(SHIPPED)
    hosts = [drive for drive in rig.drives if rig.outlets_of(drive) == rig.host_outlets()]
    assert hosts, "they have one that no outlet feeds alone"
    for drive in hosts:
        of_class = matrix.limits_by_class[matrix.model(drive.model).class_]["ready_s"]
        assert matrix.limits_for(drive.model)["ready_s"] != of_class


def test_the_reference_explains_every_field() -> None:
    entries = [each for each in vars(matrix_module).values() if isinstance(each, type)]
    names = {
        str(field.validation_alias or name)
        for entry in entries
        if issubclass(entry, Entry)
        for name, field in entry.model_fields.items()
        if (entry, name) != (Matrix, "path")
    }
    explained = re.findall(r"^\| `(\w+)` \|", REFERENCE.read_text(), re.MULTILINE)
    assert set(explained) == names
