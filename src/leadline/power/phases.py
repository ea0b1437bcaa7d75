"""The phases of a power cycle, from the announcement to the first read; a drive that is late."""

from dataclasses import dataclass

from leadline.errors import DriveFault


@dataclass(frozen=True)
class Dark:
    """How it went dark: the first `Phases`, and when, by the machine's clock, it was off."""

    announce_s: float
    command_s: float
    readback_s: float
    gone_s: float
    off_at: float
    verified: bool  # every outlet was read back as off


@dataclass(frozen=True)
class Arrival:
    """When a drive came back: seconds from the readback of on, infinite for what never came.

    Where its outlet feeds the host, the host's boot is part of each.
    """

    link_up_s: float | None  # by the kernel's log; None where that is not followed or not told
    back_s: float  # the kernel had the drive
    identify_s: float  # it said who it is
    ready_s: float  # it had read from its medium


@dataclass(frozen=True)
class Phases:
    """How long each phase took, in seconds; the last four as in `Arrival`."""

    announce_s: float  # graceful: device/delete, or the host's shutdown; else nothing
    command_s: float  # the PDU had answered "off"
    readback_s: float  # after that: its status said off; nothing where it cannot tell
    gone_s: float  # from the readback: the drive was proven gone, which waits for off_s
    off_s: float  # from the readback until "on" was sent
    on_s: float  # from that until the status said on
    link_up_s: float | None
    back_s: float
    identify_s: float
    ready_s: float


class NotReady(DriveFault):
    """A drive with power did not come ready in the time that the rig file gives it.

    `phases` are those of its whole cycle, where there was one.
    """

    def __init__(self, message: str, arrival: Arrival) -> None:
        super().__init__(message)
        self.arrival = arrival
        self.phases: Phases | None = None
