"""The kinds of value that an inventory file may hold.

A file hands over text (:mod:`leadline.inventory.document`); these types turn it
into what the field means, or say what was expected instead.  Each field's
``description`` reads after the word "expected", so that an error message and
the reference need no second wording.
"""

import os
import re
from collections.abc import Callable
from datetime import date
from functools import lru_cache
from pathlib import Path
from typing import Annotated

from pydantic import AfterValidator, BaseModel, BeforeValidator, ConfigDict, Field, ValidationInfo


class Entry(BaseModel):
    """One mapping of an inventory file: frozen, and an unknown key is an error.

    In Python a field goes by its own name; in a file by its key (``rig`` for a
    rig's name, ``class`` for a model's class), and by nothing else.
    """

    model_config = ConfigDict(
        extra="forbid", frozen=True, validate_by_name=True, validate_by_alias=True
    )


class Unfit(ValueError):
    """Raised by an entry whose fields do not go together."""

    def __init__(self, found: str, expected: str) -> None:
        super().__init__(f"found {found}, expected {expected}")
        self.found = found
        self.expected = expected


def _printable(text: str) -> str:
    if not text or not text.isascii() or not text.isprintable() or text != text.strip():
        raise ValueError("printable ASCII text, with no space before or after it")
    return text


@lru_cache(maxsize=4096)
def in_id(text: str) -> str:
    """A text as a part of a test's id: whatever could need quoting is an underscore."""
    return re.sub(r"[^A-Za-z0-9._+-]+", "_", text)


Text = Annotated[str, AfterValidator(_printable)]
"""What a drive says of itself (model, serial, firmware) or a program is given."""

Words = Annotated[str, Field(pattern=r"\S")]
"""A text for people; blanks alone are none."""

Name = Annotated[str, Field(pattern=r"^[A-Za-z0-9][A-Za-z0-9._-]{0,39}$")]
"""A word that users choose and that ends up in test ids and file names."""

ClaimKey = Annotated[
    str,
    Field(
        pattern=r"^[a-z][a-z0-9_]{0,79}$",
        description="a claim's name in lower-case letters, digits and _",
    ),
]
"""A claim's name in limits and known issues, such as ``depth_8_over_depth_1``."""

Sha256 = Annotated[str, Field(pattern=r"^[0-9a-f]{64}$")]
"""64 lower-case hex digits, as ``sha256sum`` prints them."""


def _day(text: object) -> object:
    if not isinstance(text, str):
        return text
    if not re.fullmatch(r"\d{4}-\d{2}-\d{2}", text, re.ASCII):
        raise ValueError("a day, as in 2027-01-31")
    try:
        return date.fromisoformat(text)
    except ValueError:
        raise ValueError("a day of the calendar, as in 2027-01-31") from None


Day = Annotated[date, BeforeValidator(_day)]
"""A day, written year-month-day (ISO 8601)."""

Seconds = Annotated[float, Field(gt=0, le=86400, allow_inf_nan=False)]


def _wwn(text: object) -> object:
    if not isinstance(text, str):
        return text
    digits = re.sub(r"^(wwn-)?(0x|naa\.)", "", text.strip().lower())
    digits = re.sub(r"[ :-]", "", digits)
    if not re.fullmatch(r"[0-9a-f]{16}|[0-9a-f]{32}", digits) or not int(digits, 16):
        raise ValueError("a world wide name: 16 (or 32) hex digits, as in 0x5000c500a1b2c3d4")
    return "0x" + digits


Wwn = Annotated[str, BeforeValidator(_wwn)]
"""A world wide name in one form: ``0x`` and 16 (NAA 2, 3, 5) or 32 (NAA 6) lower-case digits.

Read from any way in which Linux's tools print it: ``0x5000...`` (lsblk),
``naa.5000...``, ``wwn-0x5000...`` (udev) or ``5 000c50 0a1b2c3d4`` (smartctl).
"""


def _pci_address(text: object) -> object:
    if not isinstance(text, str):
        return text
    full = text.lower() if text.count(":") == 2 else "0000:" + text.lower()
    if not re.fullmatch(r"[0-9a-f]{4,8}:[0-9a-f]{2}:[01][0-9a-f]\.[0-7]", full):
        raise ValueError("a PCI address as lspci prints it, as in 0000:00:17.0")
    return full


PciAddress = Annotated[str, BeforeValidator(_pci_address)]
"""``domain:bus:device.function`` in lower case; ``00:17.0`` is read as domain 0000."""


def _pci_id(text: object) -> object:
    if not isinstance(text, str):
        return text
    if not re.fullmatch(r"[0-9a-f]{4}:[0-9a-f]{4}", text.lower()):
        raise ValueError("a PCI vendor and device id as lspci -n prints it, as in 8086:a282")
    return text.lower()


def _normal(form: Callable[[object], object], text: str) -> str:
    try:
        return str(form(text))
    except ValueError:
        return text


def normal_wwn(text: str) -> str:
    """A WWN in its one form; text that is none, unchanged."""
    return _normal(_wwn, text)


def normal_pci_address(text: str) -> str:
    """A PCI address in its one form; text that is none, unchanged."""
    return _normal(_pci_address, text)


PciId = Annotated[str, BeforeValidator(_pci_id)]


def user_cache() -> Path:
    """The user's cache directory: ``$XDG_CACHE_HOME``, or ``~/.cache`` when that is not absolute.

    XDG Base Directory Specification 0.8: a relative value is to be ignored.
    """
    named = Path(os.environ.get("XDG_CACHE_HOME", ""))
    return named if named.is_absolute() else Path.home() / ".cache"


def user_state() -> Path:
    """The user's state directory: ``$XDG_STATE_HOME``, or ``~/.local/state``; else as above."""
    named = Path(os.environ.get("XDG_STATE_HOME", ""))
    return named if named.is_absolute() else Path.home() / ".local" / "state"


def packaged(name: str) -> Path:
    """A file that comes with Leadline, by the shortest path that names it from here.

    In a clone it is the file at the top of the repository, to which the
    package has a link.
    """
    path = (Path(__file__).parents[1] / name).resolve()
    here = Path.cwd()
    return path.relative_to(here) if path.is_relative_to(here) else path


def expand(text: str) -> Path:
    """A path as written in a file, with a leading ``~`` replaced; not made absolute.

    ``~/.cache/`` means the user's cache directory wherever that is; any other
    ``~`` is the home directory.  Raises ValueError for ``~user`` of nobody.
    """
    if text.startswith("~/.cache/"):
        return user_cache() / text.removeprefix("~/.cache/")
    try:
        return Path(text).expanduser()
    except RuntimeError:
        raise ValueError("a path; there is no such user's home directory") from None


def _path(value: object, info: ValidationInfo) -> object:
    if not isinstance(value, str):
        return value
    if not value or not value.isprintable():
        raise ValueError("a path in printable characters")
    folder: Path = (info.context or {}).get("folder", Path())
    return folder / (expand(value) if value.startswith("~") else value)


FilePath = Annotated[Path, BeforeValidator(_path)]
"""A path; in a file it is relative to the directory of that file."""


def _port(value: object) -> object:
    if not isinstance(value, str):
        return value
    port = str(expand(value)) if value.startswith("~") else value
    if not port.isprintable() or not ("://" in port or port.startswith("/")):
        raise ValueError("an absolute path, a path from ~/, or a URL as in socket://host:port")
    return port


Port = Annotated[str, BeforeValidator(_port)]
"""A serial port: whatever ``serial.serial_for_url`` takes, with a leading ``~`` replaced."""
