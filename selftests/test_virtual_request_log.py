"""The virtual drive's record of its requests."""

from pathlib import Path

import pytest

from leadline.virtual.request_log import (
    Request,
    RequestLog,
    count_lost,
    rate_between,
    read_request_log,
)

SECOND = 1_000_000_000


def request(n: int, op: str = "read") -> Request:
    return Request(n * SECOND, (n + 1) * SECOND, op, 8 * n, 8, 1, 0)


def logged(path: Path, requests: range, **limits: int) -> None:
    log = RequestLog(path, {"cycle": 0}, **limits)
    for n in requests:
        log.add(request(n))
    log.close()


def test_what_is_added_is_read_back_over_several_power_ons(tmp_path: Path) -> None:
    path = tmp_path / "requests.jsonl"
    logged(path, range(3))
    logged(path, range(3, 5))
    assert read_request_log(path) == tuple(map(request, range(5)))


def test_half_a_line_left_by_a_power_cut_spoils_nothing_else(tmp_path: Path) -> None:
    path = tmp_path / "requests.jsonl"
    logged(path, range(3))
    whole = path.read_bytes()
    for cut in range(1, 12):
        path.write_bytes(whole[:-cut])
        logged(path, range(3, 4))
        kept = read_request_log(path)
        assert kept in (
            tuple(map(request, (0, 1, 3))),
            tuple(map(request, (0, 1, 2, 3))),
        )


def test_the_log_does_not_grow_without_bound(tmp_path: Path) -> None:
    path = tmp_path / "requests.jsonl"
    for start in range(0, 1000, 100):
        logged(path, range(start, start + 100), limit_bytes=5_000)
    sizes = [file.stat().st_size for file in tmp_path.iterdir()]
    assert len(sizes) == 2
    assert sum(sizes) < 20_000
    kept = read_request_log(path)
    assert kept == tuple(map(request, range(kept[0].lba // 8, 1000)))
    assert len(kept) > 50


def test_a_log_that_cannot_be_written_is_said_once(
    tmp_path: Path, capfd: pytest.CaptureFixture[str]
) -> None:
    path = tmp_path / "requests.jsonl"
    path.symlink_to("/dev/full")
    logged(path, range(3))
    said = capfd.readouterr().err
    assert said.count("not being logged") == 1
    assert "No space left" in said


def test_how_many_were_lost_is_in_the_log(tmp_path: Path) -> None:
    path = tmp_path / "requests.jsonl"
    log = RequestLog(path, {"cycle": 0})
    path.unlink()
    path.mkdir()
    log.add(request(0))
    log.flush()
    log.add(request(1))
    log.flush()
    path.rmdir()
    log.add(request(2))
    log.close()
    assert read_request_log(path) == (request(2),)
    assert count_lost(path) == 2


def test_how_many_were_lost_is_in_the_log_though_no_request_comes_after_them(
    tmp_path: Path,
) -> None:
    path = tmp_path / "requests.jsonl"
    log = RequestLog(path, {"cycle": 0})
    path.unlink()
    path.mkdir()
    log.add(request(0))
    log.flush()
    path.rmdir()
    log.close()
    assert count_lost(path) == 1
    assert read_request_log(path) == ()


def test_a_rate_counts_answers_and_time_in_flight_within_the_stretch() -> None:
    requests = [request(n) for n in range(10)] + [request(5, "flush")]
    rate = rate_between(requests, 2 * SECOND + SECOND // 2, 6 * SECOND + SECOND // 2)
    assert (rate.completions, rate.seconds, rate.per_second) == (4, 4.0, 1.0)
    assert rate.mean_in_flight == pytest.approx(1.0)


def test_a_log_that_is_not_there(tmp_path: Path) -> None:
    with pytest.raises(FileNotFoundError):
        read_request_log(tmp_path / "requests.jsonl")
