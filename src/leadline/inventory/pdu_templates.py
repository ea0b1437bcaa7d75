"""The templates of a described device: what is sent for an outlet, and what a row looks like.

They are no regular expressions: a row has at most one `*`, so that no template, and nothing
that a device says, makes a match take longer than the line is long.
"""

import re
from collections.abc import Sequence
from typing import Literal

Encoding = Literal["text", "hex"]

LONGEST_LINE = 256  # characters of a line that is held against a row; a longer one is none
OUTLET = re.compile(r"\{outlet(?::(0?[1-9]?[dxX]))?\}")
_PLACEHOLDER = re.compile(r"\{[^{}]*\}|[{}]")
_HEX_WORD = re.compile(r"[0-9A-Fa-f]{2}")


def names_outlet(template: str) -> bool:
    """Whether the outlet's number stands in it."""
    return OUTLET.search(template) is not None


def check_command(template: str, encoding: Encoding) -> str:
    """The template of what is sent; ValueError says what would be one."""
    if encoding == "hex":
        words = template.split()
        wrong = [w for w in words if not _HEX_WORD.fullmatch(w) and w not in ("{outlet}", "{sum}")]
        if wrong or not words:
            raise ValueError(
                "bytes of two hex digits, {outlet} and {sum}, with spaces between, "
                'as in "A0 {outlet} 01 {sum}"' + (f"; there is {wrong[0]}" if wrong else "")
            )
        return template
    _only(template, OUTLET, "{outlet}, or with a format such as {outlet:02X}")
    return template


def check_row(template: str) -> str:
    """The template of a line that tells a state; ValueError says what would be one."""
    if len(re.findall(r"\{state\}", template)) != 1 or len(OUTLET.findall(template)) > 1:
        raise ValueError("{state} once, and {outlet} at most once")
    _only(template.replace("{state}", ""), OUTLET, "{outlet} and {state}")
    if re.search(r"\*\{|\}\*|\}\{", template):
        raise ValueError("something between {outlet}, {state} and *, if only a space")
    return _one_star(template)


def check_error(template: str) -> str:
    """The template of a line that refuses a command; ValueError says what would be one."""
    _only(template, None, "*")
    if not template.strip("* "):
        raise ValueError("words of the device's; this would take every answer for an error")
    return _one_star(template)


def command_bytes(template: str, encoding: Encoding, number: int) -> bytes:
    """What is sent for the outlet that the device calls `number`, without an end of line."""
    if encoding == "text":
        return template.format(outlet=number).encode("ascii")
    sent = bytearray()
    for word in template.split():
        if word == "{sum}":
            sent.append(sum(sent) % 256)
        else:
            sent.append(number if word == "{outlet}" else int(word, 16))
    return bytes(sent)


def line_pattern(template: str, encoding: Encoding, words: Sequence[str]) -> re.Pattern[str]:
    """What matches the whole of such a `line`; its groups are `outlet` and `state`."""
    states = "|".join(map(re.escape, words))
    digits = r"[0-9A-F]{2}" if encoding == "hex" else _digits(template)
    pattern = ""
    for part in re.split(r"(\{[^{}]*\}|\*)", " ".join(template.split())):
        if part == "*":
            pattern += ".*"
        elif part == "{state}":
            pattern += f"(?P<state>{states})"
        elif OUTLET.fullmatch(part):
            pattern += f"(?P<outlet>{digits})"
        else:
            pattern += re.escape(part)
    return re.compile(pattern)


def outlet_base(template: str, encoding: Encoding) -> int:
    """The base of the outlet's number in a row."""
    given = OUTLET.search(template)
    return 16 if encoding == "hex" or (given and (given[1] or "").lower().endswith("x")) else 10


def lines(heard: bytes, encoding: Encoding) -> list[str]:
    """What is held against rows: the lines with their spaces made one, or all bytes in hex."""
    if encoding == "hex":
        return [heard.hex(" ").upper()]
    split = (" ".join(line.split()) for line in re.split(r"[\r\n]+", heard.decode("latin-1")))
    return [line for line in split if 0 < len(line) <= LONGEST_LINE]


def _digits(template: str) -> str:
    return r"[0-9A-Fa-f]{1,4}" if outlet_base(template, "text") == 16 else r"[0-9]{1,4}"


def _only(template: str, allowed: re.Pattern[str] | None, words: str) -> None:
    for found in _PLACEHOLDER.findall(template):
        if allowed is None or not allowed.fullmatch(found):
            raise ValueError(f"no placeholder but {words}; there is {found}")


def _one_star(template: str) -> str:
    if template.count("*") > 1:
        raise ValueError("at most one *, which stands for anything")
    return template
