"""What a device says takes no time to read, however it is made: no answer hangs a driver."""

import time
from collections.abc import Callable

import pytest

from leadline.power.command_line import Grammar
from leadline.power.families import (
    apc,
    apc_menu,
    baytech,
    baytech_menu,
    baytech_rpc28,
    numato,
    sentry_cdu,
    wti_nps,
    wti_rps10,
)
from leadline.power.session import NOISE_LIMIT

CPU_S = 3.0  # of a whole answer's worth; what goes wrong takes minutes, or for ever

GRAMMARS = {
    "baytech": baytech.GRAMMAR,
    "baytech-menu": baytech_menu.BaytechMenu.dialect.grammar,
    "wti": wti_nps.GRAMMAR,
    "sentry": sentry_cdu.GRAMMAR,
    "apc-menu": apc_menu.GRAMMAR,
    "numato": numato.GRAMMAR,
}
ONLY_PROMPTS = {
    b"RPC3-NC>": baytech.ONLY_PROMPTS,
    b"NPS>": wti_nps.ONLY_PROMPTS,
    b"Switched CDU:": sentry_cdu.ONLY_PROMPTS,
}
TABLES: dict[str, Callable[[bytes], object]] = {
    "baytech": baytech.parse_status,
    "baytech-menu": baytech_menu.parse_status,
    "baytech-rpc28": baytech_rpc28.parse_status,
    "wti": wti_nps.parse_status,
    "rps10": wti_rps10.parse_answers,
    "sentry": lambda text: sentry_cdu.parse_status(text, 7),
    "sentry 8": lambda text: sentry_cdu.parse_status(text, 8),
    "apc": lambda text: apc.parse_status(text.decode("latin-1")),
    "apc-menu": lambda text: apc_menu.parse_table(text.decode("latin-1")),
}
# What begins a row or a line, and what may be repeated in it.
HEADS = [b"1", b"1)...", b"1- ", b"1: ", b" 1 | ", b".A1", b"AA1", b"Plug 1 ", b"x", b"\r\n"]
BODIES = [b" ", b": ", b" On", b"  On", b": On  2)...", b"1 ", b" | ", b"a ", b"> "]
WAITS = [b"'YES'", b"(Y/N) ", b"password ", b"login ", b"Press <ENTER>", b"RPC3> ", b"\r\n 1"]


def as_long_as_can_be(head: bytes, body: bytes, tail: bytes) -> bytes:
    return head + body * ((NOISE_LIMIT - len(head) - len(tail)) // len(body)) + tail


def cpu_s(read: Callable[[], object]) -> float:
    begun = time.process_time()
    read()
    return time.process_time() - begun


@pytest.mark.parametrize("prompt", ONLY_PROMPTS)
@pytest.mark.parametrize("blanks", [b" ", b" \r\n", b"      "])
def test_any_number_of_prompts_and_blanks(prompt: bytes, blanks: bytes) -> None:
    """Each of them could once be told from the next in several ways, and all were tried."""
    left_over = (prompt + blanks) * 25
    assert ONLY_PROMPTS[prompt].match(b"\r\n" + left_over + prompt)
    assert cpu_s(lambda: ONLY_PROMPTS[prompt].match(left_over + b"x" + prompt)) < CPU_S


@pytest.mark.parametrize("family", TABLES)
@pytest.mark.parametrize("head", HEADS)
def test_any_table(family: str, head: bytes) -> None:
    for body in BODIES:
        for tail in (b"", b"x\r\n"):
            text = as_long_as_can_be(head, body, tail)
            assert cpu_s(lambda text=text: TABLES[family](text)) < CPU_S, (body, tail)  # type: ignore[misc]


@pytest.mark.parametrize("family", GRAMMARS)
@pytest.mark.parametrize("body", [*WAITS, *BODIES])
def test_anything_that_may_end_in_a_prompt(family: str, body: bytes) -> None:
    grammar: Grammar = GRAMMARS[family]
    for tail in (b"", b"x", b"\r\n"):
        text = as_long_as_can_be(b"\r\n", body, tail)
        assert cpu_s(lambda text=text: grammar.admits(text)) < CPU_S, tail  # type: ignore[misc]
