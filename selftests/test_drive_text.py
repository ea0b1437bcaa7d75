"""Untrusted text, before it is shown."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from leadline.drive.text import plain, plain_ascii


@pytest.mark.parametrize(
    ("said", "shown"),
    [
        ("INTEL SSDSC2BX016T4", "INTEL SSDSC2BX016T4"),
        ("\x1b[31mred\x1b[0m", "[31mred[0m"),
        ("one\r\ntwo", "onetwo"),
        ("a\tb\u00a0c", "a b c"),
        ("\u202egnp.exe", "gnp.exe"),
        ("\x9b2J\x7f", "2J"),
        ("größer", "größer"),
    ],
)
def test_what_is_left_of_a_text(said: str, shown: str) -> None:
    assert plain(said) == shown


@given(st.text())
def test_it_is_always_printable_and_plain_text_stays(text: str) -> None:
    shown = plain(text)
    assert shown.isprintable()
    assert plain(shown) == shown


@given(st.binary())
def test_bytes_of_any_kind_are_shown(data: bytes) -> None:
    shown = plain_ascii(data)
    assert shown.isprintable()
    assert shown == shown.strip()
