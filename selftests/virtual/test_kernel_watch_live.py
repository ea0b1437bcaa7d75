"""What a real kernel tells of a drive: its traces, and its log through a flood and a reboot."""

from collections.abc import Iterator

import pytest

from leadline.drive import overlap, tracing
from leadline.drive.bind import Drive
from leadline.drive.kernel_watch import LOG, OVERRUN, KernelWatch
from leadline.drive.ladder import climb
from leadline.errors import RigTrouble
from leadline.host.connection import Host
from selftests.quick_guest import BOOT_S, Guest, ata, booted, shell
from selftests.virtual.watched_guest import HEALTHY, climbed, host, ssd, watch

__all__ = ["host", "ssd", "watch"]  # fixtures

DISABLED = "{}: NCQ disabled due to excessive errors\n"
# Of level 7, which the console leaves out: an emulated serial port takes a minute for these.
FLOOD = f"""echo on > /proc/sys/kernel/printk_devkmsg
python3 -c '
with open("{LOG}", "w", buffering=1) as log:
    for number in range(9000):
        print("<7>", number, "x" * 200, file=log)'"""


@pytest.fixture(scope="module")
def guest(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Guest]:
    folder = tmp_path_factory.mktemp("watched")
    with booted(folder, [ata(folder, HEALTHY, "ide.0")]) as running:
        yield running


# The probe.


def test_a_dead_runs_tracing_instance_is_in_nobodys_way(host: Host, ssd: Drive) -> None:
    left = "/sys/kernel/tracing/instances/leadline-VSSD0001"
    shell(host, f"mkdir {left}; echo 1 > {left}/events/libata/ata_qc_issue/enable")
    assert overlap.probe(host, ssd).commands > 0
    assert not host.exists(left)
    shell(host, f"mkdir {left}")
    assert tracing.forget(host) == ["leadline-VSSD0001"]
    assert not host.exists(left)


@pytest.mark.long
def test_a_guest_outlasts_what_tracing_patches_in_its_kernel(host: Host, ssd: Drive) -> None:
    """A processor that missed a patch would stay on a breakpoint that is there no more.

    With two of them emulated at once by a QEMU older than 8.1 that takes some 80 rounds.
    """
    events = "/sys/kernel/tracing/events"
    load = f"fio --name=load --filename={ssd.node} --readonly --rw=randread --bs=4k --direct=1"
    load += " --ioengine=libaio --iodepth=16 --time_based --runtime=600 --output=/dev/null"
    toggle = f"for e in block libata; do echo $on >{events}/$e/enable; done; sleep 0.02"
    rounds = f"for n in $(seq 300); do for on in 1 0; do {toggle}; done; done"
    host.run(["sh", "-euc", f"{load} & trap 'kill $!' EXIT; {rounds}"], deadline=300)


def test_a_kernel_without_tracing_leaves_the_rung_unknown(
    host: Host, watch: KernelWatch, ssd: Drive
) -> None:
    shell(host, "umount /sys/kernel/tracing; umount /sys/kernel/debug")
    try:
        ladder = climb(host, ssd, watch.history())
    finally:
        shell(host, "mount -t debugfs d /sys/kernel/debug; mount -t tracefs t /sys/kernel/tracing")
    assert ladder.first_broken is None
    (rung,) = ladder.unknown
    assert rung.name == "overlap"
    assert "mount -t tracefs" in rung.found


# The kernel log.


def test_an_event_is_seen_as_soon_as_it_has_happened(
    host: Host, watch: KernelWatch, ssd: Drive
) -> None:
    for _ in range(20):
        mark = watch.mark()
        assert watch.since(mark) == ()
        host.write_value(LOG, DISABLED.format("ata6.00"))
        (event,) = watch.since(mark)
        assert event.kind == "ncq-disabled"
        assert watch.since(mark, ssd) == ()  # not this drive's
    assert watch.since(watch.mark()) == ()


def test_lost_messages_are_never_taken_for_silence(host: Host, ssd: Drive) -> None:
    with KernelWatch(host) as watch:
        before = watch.mark()
        reader = shell(host, "pgrep -n -x cat").strip()
        shell(host, f"kill -STOP {reader}; {FLOOD}; kill -CONT {reader}")
        with pytest.raises(RigTrouble, match="messages were lost"):
            watch.since(before, ssd)
        after = watch.mark()
        assert watch.since(after, ssd) == ()
        assert OVERRUN in [event.kind for event in watch.history().events]
        assert not watch.history().complete
        ladder = climb(host, ssd, watch.history())
        assert "error handling" in [rung.name for rung in ladder.unknown]


@pytest.mark.long
def test_the_watch_outlives_a_reboot(
    guest: Guest, host: Host, watch: KernelWatch, ssd: Drive
) -> None:
    old_boot, mark = host.boot_id(), watch.mark()
    host.write_value(LOG, DISABLED.format(ssd.ata_port or ""))
    assert "ncq-disabled" in [event.kind for event in watch.since(mark, ssd)]
    guest.reset()
    host.reconnect(BOOT_S)
    assert host.boot_id() != old_boot
    kinds = [event.kind for event in watch.since(mark)]
    assert kinds[0] == "ncq-disabled"  # of the boot before, and still counted
    assert "link-up" in kinds[1:]
    drive, ladder = climbed(host, watch, HEALTHY)
    assert watch.history().complete
    assert ladder.first_broken is None, str(ladder)
    assert watch.since(watch.mark(), drive) == ()
