"""What slices are aimed at: a drive, several, or what is built of them."""

from collections.abc import Mapping
from dataclasses import dataclass, replace

from leadline.errors import Misuse
from leadline.load.overdue import inflight_of
from leadline.load.slices import SliceSetting
from leadline.load.workload import Workload


@dataclass(frozen=True)
class Aim:
    """What fio opens, and the drives below whose device queue depth a slice sets.

    `paths` are devices or files, by the number of drives that a slice is over: its jobs take
    them in turn.  `depth_paths` are all set alike; `inflight` counts the requests of the first
    of these drives ("": nobody counts them).  `striped`: what is opened for several drives is one
    array of them, and so many times as large as the workload's span.
    """

    paths: Mapping[int, tuple[str, ...]]
    depth_paths: tuple[str, ...] = ()
    inflight: str = ""
    striped: bool = False

    @property
    def first(self) -> str:
        """What stands for all of it in messages, and in the options that all jobs share."""
        return next(iter(self.paths.values()))[0]

    def spread(self, workload: Workload, setting: SliceSetting) -> Workload:
        """The workload over all of what a slice opens: streams of one drive's part of an array
        would have the outer tracks of every disk to themselves."""
        if not self.striped or workload.span is None:
            return workload
        offset, size = workload.span
        return replace(workload, span=(offset, setting.drives * size))

    def opened(self, setting: SliceSetting) -> tuple[str, ...]:
        """What a slice opens.  Misuse where there are not so many drives, or jobs do not share."""
        paths = self.paths.get(setting.drives)
        if paths is None:
            known = ", ".join(map(str, self.paths))
            raise Misuse(f"a slice over {setting.drives} drives: expected one over {known}")
        if setting.jobs % len(paths):
            raise Misuse(f"{setting.jobs} jobs over {len(paths)} drives: as many on each")
        return paths


def drive_alone(node: str, depth_path: str | None) -> Aim:
    """One drive, by its node; without a `depth_path` its queue depth is left as it is."""
    depth_paths = () if depth_path is None else (depth_path,)
    return Aim({1: (node,)}, depth_paths, inflight_of(node))
