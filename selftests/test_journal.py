"""Every changed setting is given back, by the run itself or by the next one.

Plain files stand for kernel attributes: to the journal a path is a path.
"""

import json
import os
import subprocess
from pathlib import Path

import pytest

from leadline.errors import RigTrouble
from leadline.host.connection import FileTrouble, Host
from leadline.host.journal import Journal, close_dead_entry, dead_entries, replay
from leadline.host.trouble import DeadlinePassed
from selftests.local_hosts import AWAIT_S, directory, host, next_host

__all__ = ["directory", "host", "next_host"]  # fixtures


@pytest.fixture
def depth(tmp_path: Path) -> Path:
    path = tmp_path / "queue_depth"
    path.write_text("32\n")
    return path


class TestOneRun:
    def test_the_first_old_value_is_given_back(
        self, host: Host, directory: str, depth: Path
    ) -> None:
        with Journal(host, "run", directory=directory) as journal:
            journal.change(str(depth), "8")
            journal.change(str(depth), "1")
            assert depth.read_text() == "1"
        assert depth.read_text() == "32"
        assert host.list_dir(directory) == []

    def test_the_record_is_there_before_the_write(
        self, host: Host, directory: str, tmp_path: Path
    ) -> None:
        """A write that is refused finds its record made."""
        readonly = Path("/proc/sys/kernel/osrelease")
        journal = Journal(host, "run", directory=directory)
        with pytest.raises(FileTrouble):
            journal.change(str(readonly), "x")
        (record,) = records(Path(directory) / "run.jsonl")
        assert record["path"] == str(readonly)
        assert record["old"] == readonly.read_text().strip()
        assert record["new"] == "x"
        assert record["boot_id"] == host.boot_id()
        journal.give_back()  # it reads as before: nothing is written, so nothing is refused

    def test_a_value_that_is_back_is_not_written(
        self, host: Host, directory: str, depth: Path
    ) -> None:
        with Journal(host, "run", directory=directory) as journal:
            journal.change(str(depth), "8")
            depth.write_text("32\n")
            before = depth.stat().st_mtime_ns
        assert depth.stat().st_mtime_ns == before

    def test_a_borrowed_setting_is_given_back(
        self, host: Host, directory: str, depth: Path
    ) -> None:
        with Journal(host, "run", directory=directory) as journal:
            assert journal.borrow(str(depth)) == "32"
            depth.write_text("4")  # by another program, such as fio's exec_prerun
        assert depth.read_text() == "32"

    def test_of_a_choice_the_chosen_value_is_restored(
        self, host: Host, directory: str, tmp_path: Path
    ) -> None:
        scheduler = tmp_path / "scheduler"
        scheduler.write_text("none [mq-deadline] kyber\n")
        with Journal(host, "run", directory=directory) as journal:
            journal.change(str(scheduler), "none")
        assert scheduler.read_text() == "mq-deadline"

    def test_a_link_that_points_elsewhere_later_does_not_mislead(
        self, host: Host, directory: str, depth: Path, tmp_path: Path
    ) -> None:
        """``/sys/block/sda`` may be another drive by then."""
        link, another = tmp_path / "sda", tmp_path / "another"
        link.symlink_to(depth)
        another.write_text("31")
        with Journal(host, "run", directory=directory) as journal:
            journal.change(str(link), "8")
            link.unlink()
            link.symlink_to(another)
        assert (depth.read_text(), another.read_text()) == ("32", "31")

    def test_a_file_that_is_gone_needs_nothing(
        self, host: Host, directory: str, depth: Path, tmp_path: Path
    ) -> None:
        other = tmp_path / "other"
        other.write_text("1")
        with Journal(host, "run", directory=directory) as journal:
            journal.change(str(other), "2")
            journal.change(str(depth), "8")
            depth.unlink()
        assert other.read_text() == "1"
        assert host.list_dir(directory) == []

    def test_one_that_cannot_be_restored_is_told_and_the_others_are(
        self, host: Host, directory: str, depth: Path, tmp_path: Path
    ) -> None:
        stubborn = tmp_path / "stubborn"
        stubborn.write_text("1")
        journal = Journal(host, "run", directory=directory)
        journal.change(str(depth), "8")
        journal.change(str(stubborn), "2")
        stubborn.unlink()
        stubborn.mkdir()
        with pytest.raises(RigTrouble, match=r"stubborn.*write '1' there by hand"):
            journal.give_back()
        assert depth.read_text() == "32"
        assert host.list_dir(directory) == ["run.jsonl"]

    def test_one_that_hangs_is_told_and_the_others_are_given_back(
        self,
        host: Host,
        directory: str,
        depth: Path,
        tmp_path: Path,
        monkeypatch: pytest.MonkeyPatch,
    ) -> None:
        """As the scheduler of a drive that answers no request."""
        hanging = tmp_path / "scheduler"
        hanging.write_text("mq-deadline")
        journal = Journal(host, "run", directory=directory)
        journal.change(str(depth), "8")
        journal.change(str(hanging), "none")
        write = host.write_value

        def write_value(path: str, value: str) -> None:
            if path == str(hanging):
                raise DeadlinePassed("rig: the write did not end within 30 s")
            write(path, value)

        monkeypatch.setattr(host, "write_value", write_value)
        with pytest.raises(RigTrouble, match=r"write 'mq-deadline' to .*scheduler by hand"):
            journal.give_back()
        assert depth.read_text() == "32"

    def test_nothing_changed_leaves_no_file(self, host: Host, directory: str) -> None:
        with Journal(host, "run", directory=directory):
            pass
        assert not Path(directory).exists()

    def test_a_directory_that_others_may_write_is_not_trusted(
        self, host: Host, directory: str, depth: Path
    ) -> None:
        """Root writes back what a journal says: it must be root's own."""
        Path(directory).mkdir(parents=True)
        Path(directory).chmod(0o777)
        with pytest.raises(FileTrouble, match="others may write"):
            Journal(host, "run", directory=directory).change(str(depth), "8")
        assert depth.read_text() == "32\n"

    def test_a_full_disk_is_told_before_anything_is_changed(
        self, host: Host, depth: Path, tmp_path: Path
    ) -> None:
        if os.geteuid() != 0:
            pytest.skip("needs root to mount a small file system")
        small = tmp_path / "small"
        small.mkdir()
        subprocess.run(["mount", "-t", "tmpfs", "-o", "size=64k", "none", small], check=True)
        try:
            (small / "filler").write_bytes(bytes(64 * 1024))
            journal = Journal(host, "run", directory=str(small / "journal"))
            with pytest.raises(FileTrouble, match=r"run\.jsonl: No space left.*make room"):
                journal.change(str(depth), "8")
            assert depth.read_text() == "32\n"
            (small / "filler").unlink()
            journal.change(str(depth), "8")  # a record may have been cut short before this one
            assert len(records(small / "journal" / "run.jsonl")) == 1
            journal.give_back()
        finally:
            subprocess.run(["umount", small], check=True)


def records(path: Path) -> list[dict[str, object]]:
    return [json.loads(line) for line in path.read_text().splitlines() if line]


class TestDeadRuns:
    def test_a_living_runs_journal_is_left_alone(
        self, host: Host, next_host: Host, directory: str, depth: Path
    ) -> None:
        with Journal(host, "run", directory=directory) as journal:
            journal.change(str(depth), "8")
            assert replay(next_host, directory=directory) == []
            assert depth.read_text() == "8"

    def test_a_dead_runs_settings_are_given_back(
        self, host: Host, next_host: Host, directory: str, depth: Path
    ) -> None:
        journal = Journal(host, "run", directory=directory)
        journal.change(str(depth), "8")
        host.close()
        (said,) = replay(next_host, directory=directory)
        assert said == f"localhost: {depth}: 8 -> 32, as before run run"
        assert depth.read_text() == "32"
        assert next_host.list_dir(directory) == []
        assert replay(next_host, directory=directory) == []

    def test_the_last_changed_is_restored_first(
        self, host: Host, next_host: Host, directory: str, tmp_path: Path
    ) -> None:
        paths = [tmp_path / name for name in ("a", "b", "c")]
        journal = Journal(host, "run", directory=directory)
        for path in paths:
            path.write_text("old")
            journal.change(str(path), "new")
        host.close()
        said = replay(next_host, directory=directory)
        assert [line.split(":")[1].strip() for line in said] == [str(p) for p in reversed(paths)]

    def test_after_a_reboot_they_are_void(
        self, host: Host, next_host: Host, directory: str, depth: Path
    ) -> None:
        Journal(host, "run", directory=directory).change(str(depth), "8")
        host.close()
        path = Path(directory) / "run.jsonl"
        path.write_text(path.read_text().replace(next_host.boot_id(), "another boot"))
        (said,) = replay(next_host, directory=directory)
        assert "it has booted since" in said
        assert depth.read_text() == "8"
        assert next_host.list_dir(directory) == []

    def test_only_the_named_run_is_mended(
        self, host: Host, next_host: Host, directory: str, depth: Path, tmp_path: Path
    ) -> None:
        other = tmp_path / "other"
        other.write_text("1")
        Journal(host, "a/b", directory=directory).change(str(depth), "8")
        Journal(host, "a", directory=directory).change(str(other), "2")
        host.close()
        assert len(replay(next_host, run_id="a", directory=directory)) == 1
        assert (depth.read_text(), other.read_text()) == ("8", "1")
        assert len(replay(next_host, run_id="a/b", directory=directory)) == 1

    def test_processes_of_one_run_have_journals_of_their_own(
        self, host: Host, next_host: Host, directory: str, depth: Path, tmp_path: Path
    ) -> None:
        other = tmp_path / "other"
        other.write_text("1")
        Journal(host, "run", directory=directory).change(str(depth), "8")
        Journal(host, "run", directory=directory).change(str(other), "2")
        assert host.list_dir(directory) == ["run.jsonl", "run~1.jsonl"]
        host.close()
        assert len(replay(next_host, run_id="run", directory=directory)) == 2

    def test_a_new_run_of_the_same_name_keeps_the_dead_ones_record(
        self, host: Host, next_host: Host, directory: str, depth: Path
    ) -> None:
        Journal(host, "run", directory=directory).change(str(depth), "8")
        host.close()
        with Journal(next_host, "run", directory=directory) as journal:
            journal.change(str(depth), "4")
        assert depth.read_text() == "8"
        replay(next_host, directory=directory)
        assert depth.read_text() == "32"

    def test_a_record_that_was_cut_short_is_ignored(
        self, host: Host, next_host: Host, directory: str, depth: Path
    ) -> None:
        Journal(host, "run", directory=directory).change(str(depth), "8")
        host.close()
        path = Path(directory) / "run.jsonl"
        path.write_text(path.read_text() + '\n{"path": "/etc/passwd", "ol')
        assert len(replay(next_host, directory=directory)) == 1
        assert depth.read_text() == "32"

    def test_what_cannot_be_restored_stays_on_record(
        self, host: Host, next_host: Host, directory: str, depth: Path
    ) -> None:
        Journal(host, "run", directory=directory).change(str(depth), "8")
        host.close()
        depth.unlink()
        depth.mkdir()
        with pytest.raises(RigTrouble, match="write '32' there by hand"):
            replay(next_host, directory=directory)
        assert next_host.list_dir(directory) == ["run.jsonl"]


class TestEntries:
    OUTLET = {"outlet": "host", "port": "/dev/ttyS0", "number": 1}  # noqa: RUF012 (not changed)

    def test_a_closed_entry_is_nobodys_business(self, host: Host, directory: str) -> None:
        with Journal(host, "run", directory=directory) as journal:
            journal.close_entry(journal.open_entry("outlet", self.OUTLET))
        assert dead_entries(host, "outlet", directory=directory) == []
        assert host.list_dir(directory) == []

    def test_a_dead_runs_open_entry_is_found_and_settled(
        self, host: Host, next_host: Host, directory: str
    ) -> None:
        journal = Journal(host, "run", directory=directory)
        journal.close_entry(journal.open_entry("outlet", {"outlet": "closed"}))
        journal.open_entry("outlet", self.OUTLET)
        journal.open_entry("profile", {"slot": "ssd1"})
        assert dead_entries(next_host, "outlet", directory=directory) == []  # it lives
        host.close()
        (dead,) = dead_entries(next_host, "outlet", directory=directory)
        assert (dead.data, dead.run) == (self.OUTLET, "run")
        close_dead_entry(next_host, dead)
        assert dead_entries(next_host, "outlet", directory=directory) == []
        (dead,) = dead_entries(next_host, "profile", directory=directory)
        close_dead_entry(next_host, dead)
        assert next_host.list_dir(directory) == []

    def test_a_reboot_does_not_settle_an_entry(
        self, host: Host, next_host: Host, directory: str, depth: Path
    ) -> None:
        journal = Journal(host, "run", directory=directory)
        journal.change(str(depth), "8")
        journal.open_entry("outlet", self.OUTLET)
        host.close()
        path = Path(directory) / "run.jsonl"
        path.write_text(path.read_text().replace(next_host.boot_id(), "another boot"))
        replay(next_host, directory=directory)
        assert len(dead_entries(next_host, "outlet", directory=directory)) == 1
        assert replay(next_host, directory=directory) == []

    def test_an_entry_that_is_open_at_the_end_stays_for_the_next_run(
        self, host: Host, next_host: Host, directory: str, depth: Path
    ) -> None:
        with Journal(host, "run", directory=directory) as journal:
            journal.change(str(depth), "8")
            journal.open_entry("outlet", self.OUTLET)
        assert depth.read_text() == "32"
        depth.write_text("7")
        host.close()
        assert replay(next_host, directory=directory) == []  # the setting was given back
        assert depth.read_text() == "7"
        assert len(dead_entries(next_host, "outlet", directory=directory)) == 1


class TestReconnecting:
    def test_the_journal_goes_on(
        self, host: Host, next_host: Host, directory: str, depth: Path
    ) -> None:
        with Journal(host, "run", directory=directory) as journal:
            journal.change(str(depth), "8")
            host.reconnect(AWAIT_S)
            assert replay(next_host, directory=directory) == []
            journal.change(str(depth), "4")
        assert depth.read_text() == "32"

    def test_after_a_reboot_old_settings_are_void_and_new_ones_are_not(
        self, host: Host, directory: str, depth: Path
    ) -> None:
        journal = Journal(host, "run", directory=directory)
        journal.change(str(depth), "8")
        entry = journal.open_entry("outlet", {"outlet": "host"})
        path = Path(directory) / "run.jsonl"
        path.write_text(path.read_text().replace(host.boot_id(), "the boot before"))
        depth.write_text("31")  # the default of the new boot
        host.reconnect(AWAIT_S)
        journal.change(str(depth), "2")
        journal.close_entry(entry)
        journal.give_back()
        assert depth.read_text() == "31"
        assert host.list_dir(directory) == []

    def test_another_run_may_have_mended_it_meanwhile(
        self, host: Host, next_host: Host, directory: str, depth: Path
    ) -> None:
        journal = Journal(host, "run", directory=directory)
        journal.change(str(depth), "8")
        host.close()
        replay(next_host, directory=directory)
        host.reconnect(AWAIT_S)
        journal.change(str(depth), "4")
        journal.give_back()
        assert depth.read_text() == "32"
