"""The plan of a real load, its log, and when it is enough."""

from collections.abc import Iterator
from pathlib import Path

import pytest

from leadline.integrity.account import Account
from leadline.integrity.intents import IntentLog
from leadline.integrity.plan import Plan

PLAN = Plan(7, 2048, 1024, 4, 512)
FOR_EVER_S = 1000.0
ENOUGH = 300


def enough(account: Account) -> bool:
    return account.history.covered == PLAN.sectors and account.acknowledged > ENOUGH


def never(account: Account) -> bool:
    return False


@pytest.fixture
def log(tmp_path: Path) -> Iterator[IntentLog]:
    with IntentLog(tmp_path / "of run" / "load.log", PLAN, {"cell": "a"}) as made:
        yield made
