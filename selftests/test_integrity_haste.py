"""A load that says more than is taken in meanwhile: it is enough, and over, all the same."""

import time
from itertools import count

import pytest

from leadline.errors import DriveFault, RigTrouble
from leadline.host.connection import Host, Running
from leadline.integrity import session
from leadline.integrity.account import Account
from leadline.integrity.intents import IntentLog
from leadline.integrity.plan import READ, Plan
from leadline.integrity.report import line_of
from leadline.integrity.session import Load, Target
from selftests.integrity_load import FOR_EVER_S, PLAN, log
from selftests.local_hosts import host

__all__ = ["host", "log"]  # fixtures


class Hasty(Target):
    """Instead of a program, one that says what its node is, and then more than anybody takes in."""

    def start(self, plan: Plan, seconds: float) -> Running:
        return self.host.start(["sh", "-c", 'echo "$1"; exec yes "c $0"', "." * 60, self.node])


@pytest.mark.timeout(120)
def test_a_load_that_is_faster_than_we_are_is_enough_all_the_same(
    host: Host, log: IntentLog, monkeypatch: pytest.MonkeyPatch
) -> None:
    took = Account.take

    def slowly(self: Account, line: str) -> None:
        time.sleep(1e-5)
        took(self, line)

    monkeypatch.setattr(Account, "take", slowly)
    monkeypatch.setattr(session, "SILENCE_S", 0.2)
    with Load(Hasty(host, "i 1", "slot a", 8), PLAN, FOR_EVER_S, log) as load:
        load.until(lambda account: account.commands > 3_000)
        assert load.account.commands < 100_000
        monkeypatch.setattr(Account, "take", took)
        with pytest.raises(RigTrouble, match="the load goes on, though its power was cut"):
            load.cut_off()
    assert log.path.read_text().count("\nc ") == load.account.commands, "all of it counts"


def test_wrong_data_outrank_a_load_that_goes_on(
    host: Host, log: IntentLog, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(session, "SILENCE_S", 0.2)
    read = next(each for each in count(PLAN.fills) if PLAN.request(each).kind == READ)
    wrong = line_of(["e5"] * PLAN.request(read).sectors)
    said = f"i {read}\nr {read} {wrong}"
    with (
        pytest.raises(DriveFault, match="wrong sectors"),
        Load(Hasty(host, said, "slot a", 8), PLAN, FOR_EVER_S, log) as load,
    ):
        load.cut_off()
