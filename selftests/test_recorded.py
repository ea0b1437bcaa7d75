"""One recorded file: what is read of it, in every form in which fio has left one."""

import copy
import json
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from leadline.load.recorded_document import Unusable, read_output
from leadline.load.recorded_job import recorded_run
from leadline.sweep.claims import judge
from leadline.sweep.evidence import as_run
from leadline.sweep.screening import suspects
from leadline.sweep.yardstick import Yardstick, guess_class
from selftests.recorded_files import changed, fio2, fio3, read, run_of, text_of

REAL = Path(__file__).parents[2] / "shared" / "realdata" / "fio_json"


def refusal(text: str) -> str:
    with pytest.raises(Unusable) as caught:
        read(text)
    return str(caught.value)


def test_fio_2_and_fio_3_say_the_same_of_the_same_run() -> None:
    new, old = run_of(fio3(5000, 8)), run_of(fio2(5000, 8))
    assert (new.fio_version, old.fio_version) == ("fio-3.33", "fio-2.18")
    for run in (new, old):
        assert run.voids == ()
        assert (run.asked.rw, run.asked.engine, run.asked.block_bytes) == (
            "randread",
            "libaio",
            4096,
        )
        assert run.asked.depth == run.offered_depth == 8
        assert run.figures.rate == pytest.approx(5000)
        assert run.figures.seconds == 60
        assert run.figures.latency is not None
        assert run.figures.latency.mean == pytest.approx(8 / 5000, abs=3e-6)
        assert run.figures.latency.median == pytest.approx(0.9 * 8 / 5000, rel=0.01)
        assert run.little_ratio == pytest.approx(1, abs=0.002)
        assert run.figures.samples is not None
        assert run.figures.samples.count == 120
        assert run.figures.samples.spread == pytest.approx(0.02)
        assert run.figures.samples.moving == pytest.approx(1)
        assert run.figures.cpu == pytest.approx(0.4)


def test_depth_may_stand_among_the_global_options_and_a_jobs_own_wins() -> None:
    document = fio3(5000, 8, iodepth="")
    assert run_of(document).asked.depth == 1  # fio's default
    document["global options"] = {"iodepth": "8"}
    assert run_of(document).asked.depth == 8
    document["jobs"][0]["job options"]["iodepth"] = "4"
    assert run_of(document).asked.depth == 4


@pytest.mark.parametrize("engine", ["psync", "sync", "pvsync2", ""])
def test_a_synchronous_engine_runs_at_depth_1_and_it_is_said(engine: str) -> None:
    run = run_of(fio3(5000, 8, in_flight=1, ioengine=engine))
    assert (run.asked.depth, run.offered_depth) == (8, 1)
    assert run.voids == ()
    said = f"{engine or 'psync'} is synchronous: it ran at depth 1, whatever iodepth 8 says"
    assert run.notes == (said,)
    assert run_of(fio3(5000, 1, ioengine="psync")).notes == ()


def test_jobs_multiply_the_depth_whether_fio_reports_them_as_one_or_each() -> None:
    grouped = run_of(fio3(5000, 2, in_flight=8, numjobs="4"))
    assert (grouped.jobs, grouped.offered_depth, grouped.voids) == (4, 8, ())
    one = fio3(1250, 2, numjobs="4", group_reporting="")
    each = run_of({**one, "jobs": one["jobs"] * 4})
    assert (each.jobs, each.offered_depth, each.voids) == (4, 8, ())
    assert each.figures.rate == pytest.approx(5000)
    # fio mixes the samples of several jobs: they tell no noise.
    assert grouped.figures.samples is each.figures.samples is None


def test_notes_and_signals_around_the_document_are_no_part_of_it() -> None:
    around = "note: both iodepth >= 1 and synchronous\n{ not json\n" + text_of(fio3(5000, 8))
    run = read(around + "fio: terminating on signal 2\nfio: pid=0, err=0\n")
    assert run.figures.rate == pytest.approx(5000)
    assert run.notes == ("the run was ended by signal 2",)
    assert read("\nfio: terminating on signal 15\n" + text_of(fio3(5000, 8))).notes == (
        "the run was ended by signal 15",
    )


def status(rate: float, seconds: float) -> dict[str, Any]:
    """The document that --status-interval prints after some seconds."""
    document = fio3(rate, 8, seconds=seconds)
    return {**document, "timestamp": 1_700_000_000 + int(seconds)}


def test_of_the_documents_of_a_status_interval_the_last_counts() -> None:
    texts = [text_of(status(rate, s)) for rate, s in ((9000, 10), (7000, 20), (5000, 30))]
    run = read("".join(texts))
    assert run.figures.rate == pytest.approx(5000)
    assert run.figures.seconds == 30
    assert "truncated" in refusal("".join(texts)[:-200])
    assert "after 2 whole ones" in refusal("".join(texts)[:-200])


def test_several_runs_in_one_file_are_not_mistaken_for_one() -> None:
    again = [{**status(5000, 60), "timestamp": 1_700_000_000 + 61 * n} for n in range(3)]
    assert "holds 3 runs, one after the other" in refusal("".join(map(text_of, again)))
    other = text_of(fio3(5000, 8)) + text_of(fio3(9000, 16))
    assert "holds 2 runs of different settings" in refusal(other)


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("", "it is empty"),
        (" \n\n", "it is empty"),
        ("fio: failed to load engine\n", "begins with 'fio: failed to load engine'"),
        ("\x1b[31merror\n", "begins with '[31merror'"),
        ("[1, 2]", "not fio's JSON"),
        ('{"smartctl": {}}', 'no list "jobs"'),
        ('{"fio version": "fio-3.33", "jobs": 7}', 'no list "jobs"'),
        ('{"fio version": "fio-3.33", "jobs": []}', "no jobs: fio ran nothing"),
        ('{"fio version": "fio-3.33", "client_stats": []}', "fio --client"),
        ('{"fio version": "fio-3.33", "jobs": [' + "[" * 100_000, "nested too deeply"),
        ('{"fio version": "fio-3.33", "jobs": [{"error": -nan}]}', "damaged: line 1, column 48"),
        ('{"fio version": "fio-3.33", "jobs": [{}]}', "neither job options nor global options"),
    ],
)
def test_a_file_that_is_not_fios_results_says_what_it_is(text: str, said: str) -> None:
    assert said in refusal(text)


@pytest.mark.parametrize("share", [0.1, 0.3, 0.5, 0.7, 0.9, 0.99])
def test_a_truncated_file_is_called_truncated_wherever_it_ends(share: float) -> None:
    text = text_of(fio3(5000, 8))
    cut = text[: int(share * len(text))]
    assert "it is truncated" in refusal(cut)
    assert f"line {cut.rstrip().count(chr(10)) + 1}," in refusal(cut)


@pytest.mark.parametrize(
    ("fields", "said"),
    [
        ({"error": 5}, "fio ended with error 5 (Input/output error)"),
        ({"error": -5}, "error 5"),
        ({"first_error": 61, "total_err": 3}, "3 requests failed"),
        ({"total_err": 1}, "1 requests failed"),
        ({"read": {"total_ios": 0}}, "zero requests"),
        ({"read": {"total_ios": 10, "runtime": 0}}, "requests and no runtime"),
        ({"read": {"total_ios": "many"}}, "total_ios is 'many', expected a number"),
        ({"read": {"total_ios": 10**400}}, "expected a number"),
        ({"error": True}, "expected a number"),
        ({"read": {"total_ios": -5}}, "its total_ios is '-5', expected a number from 0"),
    ],
)
def test_a_run_that_failed_or_did_nothing_is_refused(fields: dict[str, Any], said: str) -> None:
    assert said in refusal(text_of(changed(fio3(5000, 8), **fields)))


def test_what_fio_said_of_a_run_without_requests_is_passed_on() -> None:
    idle = text_of(changed(fio3(5000, 8), read={}))
    said = refusal("fio: file creation disallowed\n" + idle)
    assert said == (
        "it has zero requests, and fio reports no error; fio said: fio: file creation disallowed"
    )


@pytest.mark.parametrize(
    ("options", "said"),
    [
        ({"iodepth": "many"}, "iodepth is 'many', expected a number from 1"),
        ({"iodepth": "0"}, "expected a number from 1"),
        ({"numjobs": "-3"}, "numjobs is '-3'"),
        ({"bs": "big"}, "bs is 'big', expected a size such as 4k"),
        ({"filename": "/dev/sda:/dev/sdb"}, "one job runs on 2 devices or files"),
        ({"ioengine": "null"}, "ioengine is null"),
    ],
)
def test_options_that_no_claim_can_be_made_of_are_refused(
    options: dict[str, str], said: str
) -> None:
    assert said in refusal(text_of(fio3(5000, 8, asked=options)))


@pytest.mark.parametrize(
    ("options", "said"),
    [
        ({"filename": "/dev/sdy"}, "mix devices: /dev/sdx, /dev/sdy"),
        ({"rw": "randwrite"}, "mix kinds of load (rw): randread, randwrite"),
        ({"bs": "8k"}, "mix block sizes (bs): 4096, 8192"),
        ({"iodepth": "16"}, "mix depths (iodepth): 16, 8"),
        ({"ioengine": "io_uring"}, "mix engines: io_uring, libaio"),
        ({"stonewall": "1"}, "jobs ran one after the other"),
    ],
)
def test_a_file_of_two_settings_is_refused(options: dict[str, str], said: str) -> None:
    both = fio3(5000, 8)
    both["jobs"] += fio3(5000, 8, asked=options)["jobs"]
    assert said in refusal(text_of(both))


@pytest.mark.parametrize(
    ("text", "rw", "size"),
    [
        ("4k", "randread", 4096),
        ("4KiB", "randread", 4096),
        ("4096", "randread", 4096),
        ("4k,8k", "randread", 4096),
        ("4k,8k", "randwrite", 8192),
        ("1M", "randread", 1 << 20),
    ],
)
def test_block_sizes_are_read_as_fio_reads_them(text: str, rw: str, size: int) -> None:
    assert run_of(fio3(5000, 8, rw, bs=text)).asked.block_bytes == size


def test_mixed_block_sizes_are_no_block_size() -> None:
    assert run_of(fio3(5000, 8, bssplit="4k/50:8k/50")).asked.block_bytes is None


def test_a_name_with_an_escaped_colon_is_one_device() -> None:
    name = r"/dev/disk/by-path/pci-0000\:00\:1f.2-ata-1"
    assert run_of(fio3(5000, 8, filename=name)).asked.target == name


def test_reads_and_writes_of_a_mix_count_together() -> None:
    document = fio3(4000, 8, "randrw", in_flight=8)
    read_part = document["jobs"][0]["read"]
    document["jobs"][0]["write"] = {**read_part, "total_ios": read_part["total_ios"] // 4}
    run = run_of(document)
    assert run.figures.rate == pytest.approx(5000)
    assert run.figures.samples is None


@pytest.mark.parametrize(
    ("rw", "options", "percent"),
    [
        ("randrw", {}, 50),
        ("randrw", {"rwmixread": "70"}, 70),
        ("randrw", {"rwmixwrite": "30"}, 70),
        ("randread", {"rwmixread": "70"}, None),
    ],
)
def test_how_many_of_a_mix_are_reads(rw: str, options: dict[str, str], percent: int | None) -> None:
    assert run_of(fio3(4000, 8, rw, asked=options)).asked.read_percent == percent


def test_a_share_that_is_none_is_said() -> None:
    with pytest.raises(Unusable, match="its rwmixread is 'most', expected a percentage"):
        run_of(fio3(4000, 8, "randrw", asked={"rwmixread": "most"}))


def test_what_a_file_says_is_shown_without_its_escape_sequences() -> None:
    document = fio3(5000, 8, filename="/dev/\x1b[2Jsda")
    run = run_of({**document, "fio version": "fio-\x1b]0;3.33"})
    assert run.asked.target == "/dev/[2Jsda"
    assert run.fio_version == "fio-]0;3.33"


ODD = st.one_of(
    st.none(),
    st.booleans(),
    st.integers(),
    st.floats(),
    st.text(max_size=5),
    st.just([]),
    st.just({}),
    st.sampled_from([0, -1, 1e-300, 1e300, 10**400, "0", "k", [None], {"mean": None}]),
)


@settings(max_examples=300, deadline=None)
@given(data=st.data(), old=st.booleans())
def test_whatever_stands_in_a_file_it_is_a_run_or_says_why_not(
    data: st.DataObject, old: bool
) -> None:
    document = fio2(5000, 8) if old else fio3(5000, 8)
    for _ in range(data.draw(st.integers(1, 3))):
        place: Any = document
        while True:
            keys = list(range(len(place))) if isinstance(place, list) else list(place)
            if not keys:
                break
            key = data.draw(st.sampled_from(keys))
            if isinstance(place[key], dict | list) and data.draw(st.integers(0, 9)):
                place = place[key]
                continue
            place[key] = copy.deepcopy(data.draw(ODD))
            break
    try:
        run = read(json.dumps(document, indent=2))
    except Unusable as error:
        assert str(error)
        return
    as_run(run)
    judge([run], Yardstick("ssd", "", {}, ""))
    suspects([run], "ssd")
    guess_class([run])


@pytest.mark.skipif(not REAL.is_dir(), reason="the real sweeps are not here")
def test_every_real_sweep_keeps_littles_law() -> None:
    files = sorted(REAL.glob("*/rand*.json"))
    assert len(files) > 80
    for path in files:
        run = recorded_run(path.name, read_output(path.read_text()))
        _, depth, jobs = path.stem.split("-")
        assert run.offered_depth == int(depth) * int(jobs)
        assert run.voids == ()


@pytest.mark.skipif(not REAL.is_dir(), reason="the real sweeps are not here")
def test_a_real_status_interval_is_one_run() -> None:
    text = (REAL / "local_fio3.33_pitfalls" / "o5.json").read_text()
    output = read_output(text)
    assert len(output.documents) == 4
    assert "ioengine is null" in refusal(text)
    drive = json.loads(json.dumps(output.documents).replace('"null"', '"libaio"'))
    assert read("".join(map(text_of, drive))).figures.seconds == pytest.approx(3.0, abs=0.01)
