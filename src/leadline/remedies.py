"""What to do about a verdict that is void, by the name of what voided it."""

from leadline.drive import finding
from leadline.load import slices
from leadline.verdict.contrast import IDENTICAL

TOO_FEW = "too-few"
"""The judge's own: the budget was spent before there was enough to look at."""
NO_DIFFERENCE = "no-difference"
"""Of a load that drives agree on whether their NCQ is on or off."""
WHICH_IS_OFF = "which-is-off"
"""Of two drives that do not agree: nothing tells which of them is the odd one."""
NO_REQUEST_SEEN = "no-request-seen"
"""Of request sizes: the slice was watched, and none of its requests was seen."""
NOT_SEEN = "not-seen"
"""Of power cycles: nobody saw when the drive came to what the claim is about."""
NO_STATION = "no-station"
"""Of firmwares that are compared: a station has recorded nothing, or too little."""
SESSIONS_TELL = "three sessions of leadline calibrate or more say how far this rig's differ"
"""What may help where a verdict allows for what sessions differ by, and cannot tell so little."""
REMEDIES = {
    slices.LATE_START: "see whether the rig's processors are busy with something else (top)",
    slices.LITTLES_LAW: "see whether the rig's processors are busy with something else (top)",
    slices.DEVICE_DEPTH: "see what else writes device/queue_depth on the rig; tuned, a udev rule?",
    slices.DRIVE_DEPTH: "see whether the rig's processors are busy with something else (top)",
    slices.IO_ERRORS: "see the kernel's log and smartctl -x: the drive or its path fails requests",
    slices.TOO_SHORT: "the drive is too slow for any slice of ours, or it stalls: see its rate",
    slices.OVERLAP: "run it again; when it stays, report it: it is a defect of Leadline",
    slices.FIO_CPU: "let the rig's processors do nothing else, or test at a larger block size",
    slices.LOG_INCOMPLETE: "run it again; when it stays, report it with the rig's version of fio",
    finding.MERGED: "find what sets queue/scheduler or queue/nomerges on the rig, and stop it",
    finding.SETTINGS_MOVED: "find what writes the setting on the rig (tuned, a udev rule), stop it",
    finding.NEIGHBOUR: "leave the disks beside it in peace: a scrub, a backup, another suite",
    finding.OTHER_IO: "find the program and stop it: fuser -v on the drive's node",
    finding.OTHER_COMMANDS: "stop smartd and other monitoring on the rig while drives are tested",
    finding.PAGE_CACHE: "see whether the node is the drive itself, and no cache before it",
    finding.TEMPERATURE: "cool the drive, or let it settle: run the suite once before it counts",
    finding.ERRORS: "see the kernel's log, the cable and smartctl -x",
    finding.LINK_LIMIT: "test at a smaller block size, or see why the link is slow",
    finding.STEAL_TIME: "leave the machine under the rig to it: see st in its top, or pin its CPUs",
    finding.UNWRITTEN: "write the span: a test that writes does so under both keys",
    finding.SPAN: "give the model's cache_bytes in the firmware matrix, or use more of the drive",
    finding.NOT_PRECONDITIONED: "let the drive rest or cool, and run it again",
    NO_REQUEST_SEEN: "run it again; when it stays, report it with the release of the rig's kernel",
    NOT_SEEN: "claim another milestone, such as ready",
    TOO_FEW: "raise --drive-time",
    IDENTICAL: "something answers in the drive's place, or results were copied: measure it again",
    NO_STATION: "see how the tests at that station ended; they are run with the claim, all of them",
    NO_DIFFERENCE: "claim it of a load that needs the queue, such as random reads; of a record, "
    "see how that drive stands (its NCQ ladder), and run the suite on it again",
    WHICH_IS_OFF: "run the suite on a third drive of this model and firmware, or see the notes",
}


def remedy_of(void: str) -> str:
    """What to do about one line of a verdict's voids ("name: why"); "" for one not known."""
    return REMEDIES.get(void.partition(":")[0], "")
