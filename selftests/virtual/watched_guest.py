"""A module's guest as a run meets it: connected, its log watched, its healthy drive bound."""

from collections.abc import Iterator

import pytest

from leadline.drive.bind import Drive, bind
from leadline.drive.kernel_watch import KernelWatch
from leadline.drive.ladder import Ladder, climb
from leadline.host.connection import Host, open_host
from selftests.quick_guest import Guest, spec_of

HEALTHY = "VSSD0001"


@pytest.fixture(scope="module")
def host(guest: Guest) -> Iterator[Host]:
    with open_host(guest.spec, deadline=60) as opened:
        yield opened


@pytest.fixture(scope="module")
def watch(host: Host) -> Iterator[KernelWatch]:
    with KernelWatch(host) as following:
        yield following


@pytest.fixture
def ssd(host: Host) -> Drive:
    return bind(host, spec_of(HEALTHY))


def climbed(host: Host, watch: KernelWatch, serial: str) -> tuple[Drive, Ladder]:
    drive = bind(host, spec_of(serial))
    return drive, climb(host, drive, watch.history())
