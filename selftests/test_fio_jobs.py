"""The job file of a batch, and the turns that its jobs take."""

import configparser
import re
from collections.abc import Sequence
from dataclasses import replace

import pytest
from hypothesis import given
from hypothesis import strategies as st

from leadline.errors import Misuse
from leadline.load.aim import Aim, drive_alone
from leadline.load.jobs import hugepages_needed, job_text, pipe_names
from leadline.load.slices import SliceSetting
from leadline.load.workload import Workload, random_read, sequential_read

DEPTH_PATH = "/sys/block/sda/device/queue_depth"
PAIR = (SliceSetting(1, 5), SliceSetting(8, 16))


def parsed(
    settings: Sequence[SliceSetting] = PAIR,
    workload: Workload | None = None,
    *,
    node: str = "/dev/sda",
    aim: Aim | None = None,
    fio_version: tuple[int, ...] = (3, 33),
) -> configparser.ConfigParser:
    text = job_text(
        aim or drive_alone(node, DEPTH_PATH),
        workload or random_read(),
        settings,
        seeds=range(100, 100 + len(settings)),
        fio_version=fio_version,
    )
    parser = configparser.ConfigParser(delimiters="=", interpolation=None, default_section="global")
    parser.read_string(text)
    return parser


def test_each_slice_is_a_job_of_its_own_with_its_depth_time_and_seed() -> None:
    jobs = parsed()
    assert jobs.sections() == ["s00.0", "s01.0"]
    first, second = jobs["s00.0"], jobs["s01.0"]
    assert (first["iodepth"], first["runtime"], first["randseed"]) == ("5", "500ms", "100")
    assert (second["iodepth"], second["runtime"], second["randseed"]) == ("16", "500ms", "101")
    assert second["write_lat_log"] == "s01.0"


@pytest.mark.parametrize(
    ("option", "value"),
    [
        ("filename", "/dev/sda"),
        ("rw", "randread"),
        ("bs", "4096"),
        ("direct", "1"),
        ("ioengine", "libaio"),
        ("thread", "1"),
        ("time_based", "1"),
        ("norandommap", "1"),
        ("randrepeat", "0"),
        ("allow_mounted_write", "0"),
        ("allow_file_create", "0"),
        ("log_avg_msec", "0"),
        ("per_job_logs", "1"),
        ("log_unix_epoch", "1"),
    ],
)
def test_what_every_slice_rests_on(option: str, value: str) -> None:
    assert parsed()["s00.0"][option] == value


def test_completions_of_a_ramp_are_not_counted_so_there_is_none() -> None:
    assert "ramp_time" not in parsed()["s00.0"]


def test_reads_do_not_refill_buffers_and_writes_do() -> None:
    assert "refill_buffers" not in parsed()["s00.0"]
    assert parsed(workload=Workload("w", rw="randwrite"))["s00.0"]["refill_buffers"] == "1"


def test_mix_and_span() -> None:
    mix = Workload("mix", rw="randrw", read_percent=70, span=(1 << 20, 1 << 24))
    job = parsed(workload=mix)["s00.0"]
    assert (job["rwmixread"], job["offset"], job["size"]) == ("70", "1048576", "16777216")
    assert "size" not in parsed()["s00.0"]


def test_colons_of_a_by_path_name_do_not_split_it() -> None:
    node = "/dev/disk/by-path/pci-0000:00:1f.2-ata-1"
    assert parsed(node=node)["s00.0"]["filename"] == node.replace(":", r"\:")


def test_the_log_has_room_so_that_fio_need_not_drain_the_queue_to_make_more() -> None:
    assert parsed()["s00.0"]["log_entries"] == "250000"
    assert parsed([SliceSetting(1, 5, seconds=60)])["s00.0"]["log_entries"] == str(1 << 20)
    assert "log_entries" not in parsed(fio_version=(3, 28))["s00.0"]


def test_the_first_slice_gathers_the_others_and_each_awaits_the_one_before() -> None:
    jobs = parsed([*PAIR, SliceSetting(None, 1)])
    assert [jobs[name]["exec_prerun"] for name in jobs.sections()] == [
        f"set -- gather 2 depth {DEPTH_PATH} 1 && . ./turn.sh",
        f"set -- tell asleep await s00.0.postrun.txt depth {DEPTH_PATH} 8 && . ./turn.sh",
        "set -- tell asleep await s01.0.postrun.txt && . ./turn.sh",
    ]
    assert jobs["s00.0"]["exec_postrun"] == "echo done"
    assert "exec_postrun" not in jobs["s02.0"]


@pytest.mark.parametrize("counts", [(1,), (3,), (1, 1), (2, 3, 1), (1, 4, 2)])
def test_every_pipe_is_told_once_and_awaited_once(counts: tuple[int, ...]) -> None:
    settings = [SliceSetting(8, 12, jobs=jobs) for jobs in counts]
    jobs = parsed(settings)
    told: list[str] = []
    awaited: list[str] = []
    gathered = 0
    for name in jobs.sections():
        words = jobs[name]["exec_prerun"]
        told += re.findall(r"tell (\S+)", words)
        awaited += re.findall(r"await (\S+)", words)
        gathered += sum(int(count) for count in re.findall(r"gather (\d+)", words))
        if "exec_postrun" in jobs[name]:
            told.append(f"{name}.postrun.txt")
    assert gathered == told.count("asleep") == sum(counts) - 1
    told = [pipe for pipe in told if pipe != "asleep"]
    assert sorted(told) == sorted(awaited)
    assert sorted({*told, "asleep"}) == sorted(pipe_names(settings))


def test_jobs_of_one_slice_share_the_offered_depth() -> None:
    jobs = parsed([SliceSetting(8, 16, jobs=2)])
    assert [jobs[name]["iodepth"] for name in jobs.sections()] == ["8", "8"]


SEQUENTIAL = sequential_read((8 << 30) + 512)


def zones(settings: Sequence[SliceSetting]) -> list[tuple[int, int]]:
    """First byte and end of what each job reads."""
    jobs = parsed(settings, SEQUENTIAL)
    places = [(int(jobs[name]["offset"]), int(jobs[name]["size"])) for name in jobs.sections()]
    return [(offset, offset + size) for offset, size in places]


@given(st.integers(1, 64))
def test_each_stream_reads_in_a_zone_of_its_own(streams: int) -> None:
    read = zones([SliceSetting(32, streams, jobs=streams)])
    zone = (8 << 30) // streams
    for number, (begin, end) in enumerate(read):
        assert number * zone - streams * 131072 <= begin < end <= (number + 1) * zone
        assert end - begin >= zone // 2 - 131072
        assert begin % 131072 == end % 131072 == 0


def test_streams_of_two_slices_begin_at_different_places() -> None:
    read = zones([SliceSetting(32, 4, jobs=4), SliceSetting(1, 4, jobs=4)])
    assert len({begin for begin, _ in read}) == 8


def test_streams_need_a_span_that_has_room_for_them() -> None:
    for span in (None, (0, 3 << 17)):
        with pytest.raises(Misuse, match=r"room for 4 stream\(s\) of 131072 bytes"):
            parsed([SliceSetting(8, 4, jobs=4)], replace(SEQUENTIAL, span=span))


def test_random_threads_share_the_whole_span() -> None:
    jobs = parsed([SliceSetting(32, 8, jobs=8)], random_read((1 << 20, 1 << 24)))
    assert {jobs[name]["offset"] for name in jobs.sections()} == {"1048576"}
    assert {jobs[name]["iodepth"] for name in jobs.sections()} == {"1"}


@pytest.mark.parametrize(
    "node", ["/dev/sda; reboot", "/dev/$(id)", "sda", "/dev/sd a", "/dev/sda\nrw=write", ""]
)
def test_a_path_that_a_shell_would_read_otherwise_is_refused(node: str) -> None:
    with pytest.raises(Misuse, match="device"):
        parsed(node=node)
    with pytest.raises(Misuse, match="queue depth attribute"):
        job_text(drive_alone("/dev/sda", node), random_read(), PAIR, seeds=(1, 2))


def test_a_batch_that_cannot_be_is_refused() -> None:
    with pytest.raises(Misuse, match="at least one slice"):
        job_text(drive_alone("/dev/sda", None), random_read(), [], seeds=[])
    with pytest.raises(Misuse, match="1 seeds for 2 slices"):
        job_text(drive_alone("/dev/sda", DEPTH_PATH), random_read(), PAIR, seeds=[1])
    with pytest.raises(Misuse, match="no depth_path"):
        job_text(drive_alone("/dev/sda", None), random_read(), PAIR, seeds=[1, 2])


TWO = Aim(
    {1: ("/dev/sda",), 2: ("/dev/sda", "/dev/sdb")}, (DEPTH_PATH, DEPTH_PATH.replace("sda", "sdb"))
)


def test_the_jobs_of_a_slice_over_several_drives_take_them_in_turn() -> None:
    jobs = parsed([SliceSetting(8, 64, jobs=4, drives=2), SliceSetting(8, 16)], aim=TWO)
    opened = [jobs[name]["filename"] for name in jobs.sections()]
    assert opened == ["/dev/sda", "/dev/sdb", "/dev/sda", "/dev/sdb", "/dev/sda"]


def test_every_drive_of_an_aim_has_its_depth_set_whichever_a_slice_is_over() -> None:
    jobs = parsed([SliceSetting(8, 32, jobs=2, drives=2), SliceSetting(1, 5)], aim=TWO)
    for name, depth in (("s00.0", 8), ("s01.0", 1)):
        words = [f"depth {path} {depth}" for path in TWO.depth_paths]
        assert " ".join(words) in jobs[name]["exec_prerun"]


def test_streams_of_an_array_have_zones_of_all_of_it_and_those_of_one_drive_of_that_drive() -> None:
    """Else they would share the beginning of each drive, where a disk is fastest."""
    drive, array = Aim({1: ("/dev/sda",)}), {1: ("/dev/sda",), 2: ("/dev/md127",)}
    striped = Aim(array, (DEPTH_PATH,), striped=True)
    size = 1 << 30
    settings = [SliceSetting(8, 32, jobs=4, drives=2), SliceSetting(8, 32, jobs=2)]
    jobs = parsed(settings, sequential_read(size), aim=striped)
    zones = [int(jobs[f"s00.{job}"]["offset"]) // (size // 2) for job in range(4)]
    assert zones == [0, 1, 2, 3]
    assert [int(jobs[f"s01.{job}"]["offset"]) // (size // 2) for job in range(2)] == [0, 1]
    assert drive.spread(sequential_read(size), settings[0]) == sequential_read(size)


def test_a_slice_over_drives_that_are_not_there_or_shared_unequally_is_refused() -> None:
    with pytest.raises(Misuse, match="over 3 drives: expected one over 1, 2"):
        parsed([SliceSetting(8, 48, jobs=3, drives=3)], aim=TWO)
    with pytest.raises(Misuse, match="3 jobs over 2 drives"):
        parsed([SliceSetting(8, 48, jobs=3, drives=2)], aim=TWO)


HUGE = SliceSetting(None, 8, block_bytes=1 << 20, huge_page_bytes=2 << 20)


def test_a_slice_may_have_a_size_of_its_own_and_hugepages_for_its_data() -> None:
    jobs = parsed((SliceSetting(8, 16), HUGE))
    assert jobs["s00.0"]["bs"] == "4096"
    assert "iomem" not in jobs["s00.0"]
    assert jobs["s01.0"]["bs"] == str(1 << 20)
    assert (jobs["s01.0"]["iomem"], jobs["s01.0"]["hugepage-size"]) == ("shmhuge", str(2 << 20))


def test_hugepages_are_enough_for_all_the_jobs_of_a_batch_as_fio_counts_them() -> None:
    """fio 3.33 took 6 pages of 2 MiB for 8 requests of 1 MiB."""
    assert hugepages_needed(random_read(), [HUGE]) == 6
    two_jobs = replace(HUGE, offered_depth=16, jobs=2)
    assert hugepages_needed(random_read(), [HUGE, two_jobs, *PAIR]) == 18
    assert hugepages_needed(random_read(), [replace(HUGE, block_bytes=None)]) == 3
    assert hugepages_needed(random_read(), PAIR) == 0


def test_a_size_that_no_drive_can_be_asked_for_is_refused() -> None:
    with pytest.raises(Misuse, match="a multiple of 512"):
        SliceSetting(None, 8, block_bytes=1000)
