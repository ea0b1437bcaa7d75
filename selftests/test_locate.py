"""The locate light of a drive's slot: found by sysfs, lit by sg_ses, put out by the next run.

The enclosure is a folder, its sg_ses a program that knows the slots by their numbers.
"""

from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

import pytest

from leadline.drive import locate
from leadline.drive.bind import Drive
from leadline.drive.locate import Slot, light, put_out, slot_of
from leadline.host.connection import Host, open_host
from leadline.host.journal import Journal
from leadline.inventory.rig import HostSpec
from selftests.power_world import drive

ID = "0x500304801f0ad0bf"
SLOT = Slot(ID, "Slot 07")
SG_SES = """\
#!/bin/sh
# sg_ses --dev-slot-num=N --set=locate /dev/sgN, as its manual page has it.
echo "$*" >> "$0.said"
case $1 in -V) echo "version: 2.44"; exit 0 ;; esac
[ -e "$0.broken" ] && {{ echo "request sense: device not ready" >&2; exit 2; }}
number=${{1#--dev-slot-num=}}
case $2 in --set=locate) value=1 ;; --clear=locate) value=0 ;; *) exit 1 ;; esac
[ "$3" = /dev/sg25 ] || exit 15
for slot in {enclosures}/6:0:24:0/Slot*; do
    [ "$(cat "$slot/number")" = "$number" ] && echo "$value" > "$slot/locate"
done
exit 0
"""


@dataclass
class Shelf:
    """An enclosure with two slots; the drive is in number 7, which the kernel calls Slot 07."""

    folder: Path
    drive: Drive

    def slot(self, name: str = "Slot 07") -> Path:
        return self.folder / "enclosure/6:0:24:0" / name

    @property
    def lit(self) -> list[str]:
        slots = sorted(self.folder.glob("enclosure/6:0:24:0/Slot*/locate"))
        return [path.parent.name for path in slots if path.read_text() == "1\n"]

    @property
    def said(self) -> list[str]:
        path = self.folder / "sg_ses.said"
        return path.read_text().splitlines() if path.exists() else []

    @property
    def journals(self) -> str:
        return str(self.folder / "journal")

    def break_sg_ses(self) -> None:
        (self.folder / "sg_ses.broken").touch()


@pytest.fixture
def shelf(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Shelf:
    made = Shelf(tmp_path, drive(name=f"../..{tmp_path}/block"))
    for number in (6, 7):
        slot = made.slot(f"Slot 0{number}")
        slot.mkdir(parents=True)
        for name, text in (("slot", number), ("number", number), ("locate", 0)):
            (slot / name).write_text(f"{text}\n")
    enclosure = made.slot().parent
    (enclosure / "id").write_text(f"{ID}\n")
    (enclosure / "device/scsi_generic/sg25").mkdir(parents=True)
    device = tmp_path / "block/device"
    device.mkdir(parents=True)
    (device / "enclosure_device:Slot 07").symlink_to(made.slot())
    program = tmp_path / "sg_ses"
    program.write_text(SG_SES.format(enclosures=tmp_path / "enclosure"))
    program.chmod(0o755)
    monkeypatch.setattr(locate, "ENCLOSURES", str(tmp_path / "enclosure"))
    monkeypatch.setenv("PATH", f"{tmp_path}:/usr/bin:/bin")
    return made


@pytest.fixture
def host(shelf: Shelf) -> Iterator[Host]:
    """This machine, which finds that sg_ses first."""
    with open_host(HostSpec(reach="local")) as opened:
        yield opened


def lit_by_a_run_that_ended(shelf: Shelf) -> None:
    with (
        open_host(HostSpec(reach="local")) as dying,
        Journal(dying, "earlier", directory=shelf.journals) as journal,
    ):
        assert light(dying, journal, SLOT)


def test_a_drive_is_found_in_its_slot(shelf: Shelf, host: Host) -> None:
    assert slot_of(host, shelf.drive) == SLOT
    assert str(SLOT) == f"Slot 07 of enclosure {ID}"


def test_without_an_enclosure_there_is_nothing_to_say(shelf: Shelf, host: Host) -> None:
    (shelf.folder / "block/device/enclosure_device:Slot 07").unlink()
    assert slot_of(host, shelf.drive) is None
    assert slot_of(host, drive(name="none-such")) is None


def test_an_enclosure_without_an_identifier_is_not_found_again(shelf: Shelf, host: Host) -> None:
    (shelf.slot().parent / "id").unlink()
    assert slot_of(host, shelf.drive) is None


def test_a_name_that_an_enclosure_made_up_reaches_no_terminal() -> None:
    assert "\x1b" not in str(Slot("0x5\x1b[2J", "Slot\x1b[31m 07"))


def test_the_light_stays_lit_after_the_run_and_the_next_one_puts_it_out(
    shelf: Shelf, host: Host
) -> None:
    lit_by_a_run_that_ended(shelf)
    assert shelf.lit == ["Slot 07"]
    assert shelf.said[-1] == "--dev-slot-num=7 --set=locate /dev/sg25"
    (sentence,) = put_out(host, directory=shelf.journals)
    assert shelf.lit == []
    assert shelf.said[-1] == "--dev-slot-num=7 --clear=locate /dev/sg25"
    assert sentence == f"localhost: the locate light of {SLOT} is out again, after run earlier"
    assert put_out(host, directory=shelf.journals) == []
    assert list(Path(shelf.journals).iterdir()) == []


def test_a_light_of_a_run_that_lives_is_let_be(shelf: Shelf, host: Host) -> None:
    with (
        open_host(HostSpec(reach="local")) as other,
        Journal(other, "lives", directory=shelf.journals) as journal,
    ):
        assert light(other, journal, SLOT)
        assert put_out(host, directory=shelf.journals) == []
        assert shelf.lit == ["Slot 07"]


def test_a_light_that_somebody_else_has_lit_stays_theirs(shelf: Shelf, host: Host) -> None:
    (shelf.slot() / "locate").write_text("1\n")
    lit_by_a_run_that_ended(shelf)
    assert put_out(host, directory=shelf.journals) == []
    assert shelf.lit == ["Slot 07"]


def test_nobody_is_sent_to_another_slot(shelf: Shelf, host: Host) -> None:
    """The number is of no use where the enclosure counts its slots in two ways."""
    (shelf.slot("Slot 06") / "number").write_text("7\n")
    (shelf.slot("Slot 07") / "number").write_text("8\n")
    with Journal(host, "r", directory=shelf.journals) as journal:
        assert not light(host, journal, SLOT)
    assert shelf.lit == []
    assert list(Path(shelf.journals).iterdir()) == []


@pytest.mark.parametrize("fault", ["fails", "no enclosure"])
def test_a_light_that_is_not_to_be_had_is_no_trouble(shelf: Shelf, host: Host, fault: str) -> None:
    if fault == "fails":
        shelf.break_sg_ses()
    else:
        (shelf.slot().parent / "id").write_text("0x5\n")
    with Journal(host, "r", directory=shelf.journals) as journal:
        assert not light(host, journal, SLOT)
    assert shelf.lit == []


def test_without_sg_ses_there_is_no_light_and_nothing_on_record(
    shelf: Shelf, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("PATH", "/nowhere")
    with (
        open_host(HostSpec(reach="local")) as host,
        Journal(host, "r", directory=shelf.journals) as journal,
    ):
        assert not light(host, journal, SLOT)
    assert not Path(shelf.journals).exists()


def test_a_light_that_cannot_be_put_out_is_said_and_tried_again(shelf: Shelf, host: Host) -> None:
    lit_by_a_run_that_ended(shelf)
    shelf.break_sg_ses()
    (sentence,) = put_out(host, directory=shelf.journals)
    assert "Slot 07" in sentence
    assert "cannot be put out" in sentence
    assert "device not ready" in sentence
    (shelf.folder / "sg_ses.broken").unlink()
    assert len(put_out(host, directory=shelf.journals)) == 1
    assert shelf.lit == []


def test_a_light_that_stays_lit_is_not_said_to_be_out(shelf: Shelf, host: Host) -> None:
    lit_by_a_run_that_ended(shelf)
    (shelf.slot() / "number").write_text("8\n")
    (sentence,) = put_out(host, directory=shelf.journals)
    assert "cannot be put out: it is still lit (`sg_ses --join /dev/sg25`" in sentence


def test_an_enclosure_that_is_gone_ends_the_record(shelf: Shelf, host: Host) -> None:
    lit_by_a_run_that_ended(shelf)
    (shelf.slot().parent / "id").write_text("0x5\n")
    (sentence,) = put_out(host, directory=shelf.journals)
    assert "is gone with its enclosure" in sentence
    assert put_out(host, directory=shelf.journals) == []
