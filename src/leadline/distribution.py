"""How xdist's workers share the drives: never two workers on one shared path.

The `xdist_group` mark would say the same in less, but pytest 9.2 with xdist 3.8
ignores it (pytest-xdist issue 1386).  Leases on the rig make this a matter of
speed, not of safety.
"""

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

import pytest
from xdist.scheduler import LoadScopeScheduling

if TYPE_CHECKING:
    from xdist.workermanage import WorkerController


class SharedPathScheduling(LoadScopeScheduling):
    """Hands out the tests of one shared path (an HBA, an expander, a host outlet) as one piece."""

    def __init__(self, config: pytest.Config, log: Any, shared_paths: Mapping[str, str]) -> None:
        super().__init__(config, log)
        # The longest id first: one id may be the beginning of another.
        self._shared_paths = sorted(shared_paths.items(), key=lambda pair: -len(pair[0]))

    def remove_node(self, node: "WorkerController") -> str | None:
        """Let others have what a worker that died has not run; the test that it died in, if any.

        That test is not run again.  xdist would hand it out until every worker that may be
        replaced has died in it, and what stands behind it on its path would never run.
        """
        work: dict[str, dict[str, bool]] = self.assigned_work.pop(node)
        pending = [
            (unit, test) for unit in work.values() for test, done in unit.items() if not done
        ]
        if not pending:
            return None
        died_with, died_in = pending[0]
        died_with[died_in] = True
        left = {scope: unit for scope, unit in work.items() if not all(unit.values())}
        self.workqueue.update(left)
        for other in self.assigned_work:
            self._reschedule(other)
        return died_in

    def _split_scope(self, nodeid: str) -> str:
        """The shared path of the visit named in the node id's brackets."""
        brackets = nodeid.partition("[")[2]
        for visit_id, shared_path in self._shared_paths:
            if visit_id in brackets:
                return shared_path
        return str(super()._split_scope(nodeid))
