"""One seeded fault as `./run bench faults` tries them all: found by its name, and not repaired."""

import pytest

from bench.faults import drawn, settled

pytestmark = [pytest.mark.measures, pytest.mark.long]


def test_ncq_that_errors_disabled_before_the_run_fails_it_and_no_write_brings_it_back() -> None:
    """V25: a bad sector was read too often; sysfs reads 32 all the same."""
    tried = settled(drawn("V25", 1))
    assert tried.wrong == (), tried.ran.said
