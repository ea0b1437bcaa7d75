"""The checks around the slices of one drive: each is made, recorded, and may void slices."""

import secrets
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field, replace

from leadline.drive.bind import Drive
from leadline.drive.conditions import Conditions, Surroundings, locate, look
from leadline.drive.disturbances import Asked, compare
from leadline.drive.finding import NOT_PRECONDITIONED, STEAL_TIME, Finding, failed
from leadline.drive.steal import STEAL_SHARE, Watched, watching
from leadline.host.connection import Host
from leadline.inventory.matrix import ModelSpec
from leadline.load.precondition import Preconditioned
from leadline.load.slices import Slice
from leadline.load.target import check_span, check_written, sample_places, span_of, zero_samples
from leadline.load.workload import WRITES, Workload


@dataclass
class Vetting:
    """What is known of the surroundings of one binding; `pinned` is how the settings stood then.

    What a workload is aimed at is looked into before its first slice and not again.
    """

    host: Host
    drive: Drive
    model: ModelSpec
    capacity_bytes: int
    around: Surroundings
    pinned: Conditions
    _targets: dict[Workload, tuple[Finding, ...]] = field(default_factory=dict)

    def measure(
        self,
        workload: Workload,
        run: Callable[[], Sequence[Slice]],
        preconditioned: Preconditioned | None = None,
    ) -> tuple[list[Slice], tuple[Finding, ...]]:
        """Run one batch of slices; they come back void by the name of each check that failed.

        `preconditioned` is what was done to the drive for this workload, if it writes.
        """
        first = self.target(workload)
        if workload.writes:
            first = (*first, _writes_judged(preconditioned))
        before = look(self.host, self.around, before=True)
        with watching(self.host, emulated=self.around.emulated) as watched:
            slices = run()
        after = look(self.host, self.around, before=False)
        findings = (*first, *compare(self.pinned, before, after, asked_of(workload, slices)))
        return voided(slices, findings, watched)

    def rewritten(self) -> None:
        """What the drive holds has changed: it is looked into again before the next slice."""
        self._targets.clear()

    def target(self, workload: Workload) -> tuple[Finding, ...]:
        """What a workload is aimed at: the span against the cache, and whether it was written."""
        if workload not in self._targets:
            span = span_of(workload, self.capacity_bytes)
            findings = [check_span(span[1], self.model.cache_bytes)]
            if workload.rw not in WRITES:
                findings.append(self._written(span))
            self._targets[workload] = tuple(findings)
        return self._targets[workload]

    def _written(self, span: tuple[int, int]) -> Finding:
        block = self.host.read_file(f"/sys/block/{self.drive.name}/queue/logical_block_size")
        places = sample_places(span, secrets.randbits(31))
        zeros, read = zero_samples(self.host, self.drive.node, places, int(block))
        rotates = self.model.class_ == "hdd"
        return check_written(zeros, read, span_bytes=span[1], rotates=rotates)


def vet(
    host: Host, drive: Drive, model: ModelSpec, capacity_bytes: int, *, emulated: bool = False
) -> Vetting:
    """Begin, when the settings of this binding have just been pinned.

    `emulated`: the rig and its drives run on this machine's processors.
    """
    around = locate(host, drive, emulated=emulated)
    pinned = look(host, around, before=True)
    return Vetting(host, drive, model, capacity_bytes, around, pinned)


def _writes_judged(preconditioned: Preconditioned | None) -> Finding:
    if preconditioned is None:
        return Finding(NOT_PRECONDITIONED, "void", "nothing was done to bring it there")
    return preconditioned.finding


def asked_of(workload: Workload, slices: Sequence[Slice]) -> Asked:
    """What the slices of one batch asked of the drive."""
    sizes = [each.setting.block_bytes or workload.block_bytes for each in slices]
    sized = list(zip(slices, sizes, strict=True))
    fastest = max((each.rate * size for each, size in sized), default=0.0)
    return Asked(sum(each.requests * size for each, size in sized), fastest, workload.sequential)


def voided(
    slices: Sequence[Slice], findings: Sequence[Finding], watched: Watched
) -> tuple[list[Slice], tuple[Finding, ...]]:
    """The slices of one batch, void by the name of each check that failed, and what these found.

    Steal time voids those alone that met it.  Where nobody looked, or the rig's clock has them at
    another time than that of the batch, it voids all of them as other checks do.
    """
    names = tuple(finding.name for finding in failed(findings))
    met = [watched.met_by(each.began, each.began + each.setting.seconds) for each in slices]
    if None in met:
        return [replace(each, voids=(*each.voids, *names)) for each in slices], tuple(findings)
    others = tuple(name for name in names if name != STEAL_TIME)
    marked = [
        replace(each, voids=(*each.voids, *others, *((STEAL_TIME,) if it_did else ())))
        for each, it_did in zip(slices, met, strict=True)
    ]
    said = f", more than {STEAL_SHARE:g} in {sum(map(bool, met))} of {len(met)} slices"
    return marked, tuple(
        replace(each, outcome="void" if any(met) else "ok", found=f"{each.found}{said}")
        if each.name == STEAL_TIME and each.outcome != "unknown"
        else each
        for each in findings
    )
