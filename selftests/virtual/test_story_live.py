"""The shortest of the five stories, as `./run bench stories` tells them all."""

import pytest

from bench.stories import measure

pytestmark = [pytest.mark.measures, pytest.mark.long]


def test_a_megabyte_asked_arrives_in_half_the_limit_is_named_and_hugepages_are_sent_whole() -> None:
    found = measure(["5", "--json"])
    assert found["within_limits"], found
