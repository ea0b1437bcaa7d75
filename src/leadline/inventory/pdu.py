"""A PDU in a rig file: its family, its line, and where its password is kept.

The password itself never stands in a rig file, whose text ends up in repositories,
journals and reports: the file names an environment variable, a file or a program,
which is asked when a device wants it (`power.credentials`).
"""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Literal, Self, get_args

from pydantic import Field, model_validator

from leadline.inventory.fields import Entry, FilePath, Name, Port, Text, Unfit
from leadline.inventory.pdu_dialogue import DialogueSpec

FamilyName = Literal[
    "baytech-rpc3",
    "baytech-rpc28",
    "baytech-rpc3-menu",
    "apc-menu",
    "apc-cli",
    "apc-cli8",
    "wti-nps",
    "wti-rps10",
    "sentry-cdu",
    "lcus",
    "kmtronic",
    "devantech-rly",
    "numato",
    "quarch",
    "scpi",
    "control-line",
    "described",
]
FAMILY_NAMES: tuple[FamilyName, ...] = get_args(FamilyName)
EndOfLine = Literal["cr", "lf", "crlf"]
ENDS: dict[EndOfLine, bytes] = {"cr": b"\r", "lf": b"\n", "crlf": b"\r\n"}
NO_PASSWORD_HERE = (
    "password_env, password_file or password_command, which say where the password is kept"
)


@dataclass(frozen=True)
class Kind:
    """What a family fixes: the defaults of its line, how many outlets it can have, whether
    it can have a login at all."""

    baud: int = 9600
    end_of_line: EndOfLine = "cr"
    outlets: int = 8
    most: int = 64
    login: bool = True


_RELAY = Kind(most=8, login=False)
KINDS: dict[str, Kind] = {
    "wti-rps10": Kind(outlets=10, most=10, login=False),
    "lcus": _RELAY,
    "kmtronic": _RELAY,
    "devantech-rly": _RELAY,
    "numato": Kind(login=False),
    "quarch": Kind(baud=19200, end_of_line="crlf", outlets=1, login=False),
    "scpi": Kind(end_of_line="lf", outlets=2, login=False),
    "control-line": Kind(outlets=1, most=2, login=False),
    "described": Kind(login=False),
}
"""Of the families that are not like the rest; sources in docs/explanation/serial-power.md."""


def kind(family: object) -> Kind:
    """What a family fixes; for anything that is none, what is usual."""
    return KINDS.get(family, Kind()) if isinstance(family, str) else Kind()


class PduSpec(Entry):
    """One switched power strip, relay board or supply on a serial line."""

    name: Name = Field(description="a name of letters, digits and . _ -, at most 40")
    family: FamilyName = Field(description=f"one of {', '.join(FAMILY_NAMES)}")
    port: Port = Field(
        description="a serial port: a path such as /dev/ttyS0, or a URL such as socket://host:port"
    )
    baud: int = Field(default=9600, ge=50, le=4_000_000, description="bits per second, as in 9600")
    end_of_line: EndOfLine = Field(default="cr", description="cr, lf or crlf")
    outlets: int = Field(default=8, ge=1, le=64, description="how many outlets it has, 1 to 64")
    username: Text | None = Field(default=None, description="who logs in, in printable ASCII")
    password_env: str | None = Field(
        default=None,
        pattern=r"^[A-Za-z_][A-Za-z0-9_]*$",
        description="the name of an environment variable that holds the password",
    )
    password_file: FilePath | None = Field(
        default=None, description="a path to a file that holds the password, readable by you alone"
    )
    password_command: tuple[Text, ...] | None = Field(
        default=None,
        min_length=1,
        description="a list: a program and its arguments that print the password",
    )
    dialogue: DialogueSpec | None = Field(
        default=None, description="a mapping with on, off and perhaps more"
    )

    @model_validator(mode="before")
    @classmethod
    def _as_is_usual(cls, given: Any) -> Any:
        """Fill in what the family fixes and the entry does not say."""
        if not isinstance(given, Mapping):
            return given
        usual = kind(given.get("family"))
        defaults = {
            "baud": usual.baud,
            "end_of_line": usual.end_of_line,
            "outlets": usual.outlets,
        }
        return defaults | dict(given)

    @model_validator(mode="after")
    def _fits_its_family(self) -> Self:
        fixed = kind(self.family)
        if self.outlets > fixed.most:
            raise Unfit(f"{self.outlets} outlets", f"at most {fixed.most}: {self.family} has these")
        if (self.family == "described") != (self.dialogue is not None):
            raise Unfit(
                f"family {self.family} with{'' if self.dialogue else 'out'} a dialogue",
                "a dialogue with family described, and with no other",
            )
        if self.dialogue is not None:
            self.dialogue.check_outlets(self.outlets)
        sources = [self.password_env, self.password_file, self.password_command]
        named = sum(source is not None for source in sources)
        if named > 1:
            raise Unfit(f"{named} places of the password", f"one of {NO_PASSWORD_HERE}")
        if self.username is not None and not named:
            raise Unfit("a username without a password", f"one of {NO_PASSWORD_HERE}, too")
        if named and not fixed.login:
            raise Unfit(f"a login for {self.family}", "none: these devices have no login")
        return self

    @property
    def enter(self) -> bytes:
        """The bytes that end a line."""
        return ENDS[self.end_of_line]
