"""How xdist's workers share the drives: never two workers on one shared path.

The `xdist_group` mark would say the same in less, but pytest 9.2 with xdist 3.8
ignores it (pytest-xdist issue 1386).  Leases on the rig make this a matter of
speed, not of safety.
"""

from collections.abc import Mapping
from typing import Any

import pytest
from xdist.scheduler import LoadScopeScheduling


class SharedPathScheduling(LoadScopeScheduling):
    """Hands out the tests of one shared path (an HBA, an expander, a host outlet) as one piece."""

    def __init__(self, config: pytest.Config, log: Any, shared_paths: Mapping[str, str]) -> None:
        super().__init__(config, log)
        # The longest id first: one id may be the beginning of another.
        self._shared_paths = sorted(shared_paths.items(), key=lambda pair: -len(pair[0]))

    def _split_scope(self, nodeid: str) -> str:
        """The shared path of the visit named in the node id's brackets."""
        brackets = nodeid.partition("[")[2]
        for visit_id, shared_path in self._shared_paths:
            if visit_id in brackets:
                return shared_path
        return str(super()._split_scope(nodeid))
