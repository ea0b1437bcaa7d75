"""How firmware is put on a drive: the `flash` of a drive in a rig file."""

import re
from typing import Annotated, Literal, Self

from pydantic import AfterValidator, BeforeValidator, Field, model_validator

from leadline.inventory.fields import Entry, Text, Unfit

Method = Literal["write-buffer", "hdparm", "program"]
Activation = Literal["power-cycle", "at-once"]

PLACEHOLDERS = ("rig", "slot", "device", "image")
# SPC-4, WRITE BUFFER command, table of its MODE field: those that download microcode and save it.
WHOLE, OFFSETS, SELECT, DEFERRED = 0x5, 0x7, 0xD, 0xE
DEFERRING = (SELECT, DEFERRED)
USUAL_CHUNK_KIB = 4
"""What sg_write_buffer's own help calls working well: some drives take no more at once."""
_MODES = "0x5, 0x7, 0xd or 0xe"


def _mode(value: object) -> object:
    """By any of the ways in which a mode is written: 0xe, 0Eh, 14."""
    if not isinstance(value, str):
        return value
    text = value.strip().lower()
    found = re.fullmatch(r"0x([0-9a-f]{1,2})|([0-9a-f]{1,2})h|(\d{1,2})", text)
    mode = int(found[1] or found[2] or found[3], 10 if found[3] else 16) if found else -1
    if mode not in (WHOLE, OFFSETS, SELECT, DEFERRED):
        raise ValueError(_MODES)
    return mode


def _command(command: tuple[str, ...]) -> tuple[str, ...]:
    allowed = ", ".join(f"{{{name}}}" for name in PLACEHOLDERS)
    for word in command:
        for name in re.findall(r"\{([^{}]*)\}", word):
            if name not in PLACEHOLDERS:
                raise ValueError(f"no placeholder but {allowed}; there is {{{name}}}")
    if command and not any("{image}" in word for word in command):
        raise ValueError("{image} among the arguments: it stands for the file to flash")
    return command


class FlashSpec(Entry):
    """How a firmware image is put on a drive; its presence is the first key for doing so.

    By `sg_write_buffer`, by hdparm only where it is asked for by name, or by the vendor's own
    program.
    """

    method: Method = Field(
        default="write-buffer", description="write-buffer, hdparm, or program (with its command)"
    )
    mode: Annotated[int, BeforeValidator(_mode)] = Field(
        default=OFFSETS, description=f"a mode of WRITE BUFFER: {_MODES}"
    )
    chunk_kib: int = Field(
        default=USUAL_CHUNK_KIB, ge=1, le=16384, description="KiB in one command, 1 to 16384"
    )
    command: Annotated[tuple[Text, ...], AfterValidator(_command)] = Field(
        default=(),
        description="a list: a program and its arguments, with {rig} {slot} {device} {image}",
    )
    runs_on: Literal["here", "rig"] = Field(default="rig", description="here (this machine) or rig")
    activates: Activation = Field(default="at-once", description="power-cycle or at-once")

    @model_validator(mode="before")
    @classmethod
    def _say_what_is_implied(cls, given: object) -> object:
        """A command is a program's; a mode that defers is for the next power cycle."""
        if not isinstance(given, dict):
            return given
        implied: dict[str, object] = {"method": "program"} if "command" in given else {}
        if defers(given.get("mode")):
            implied["activates"] = "power-cycle"
        return {**implied, **given}

    @model_validator(mode="after")
    def _fits_its_method(self) -> Self:
        given = self.model_fields_set
        if self.method == "program":
            lacking = [key for key in ("command", "runs_on", "activates") if key not in given]
            if lacking or not self.command:
                raise Unfit(f"a program without {lacking[0] if lacking else 'a command'}", "it too")
        elif self.command or "runs_on" in given:
            raise Unfit(f"method {self.method} with command or runs_on", "method program")
        if self.method != "write-buffer" and given & {"mode", "chunk_kib"}:
            raise Unfit(f"method {self.method} with mode or chunk_kib", "method write-buffer")
        if self.mode == WHOLE and "chunk_kib" in given:
            raise Unfit("chunk_kib with mode 0x5, which has no offsets", "mode 0x7, 0xd or 0xe")
        return self

    @property
    def defers(self) -> bool:
        """Whether the image lies in the drive, whole and saved, before it is activated."""
        return self.method == "write-buffer" and self.mode in DEFERRING

    def argv(self, *, rig: str, slot: str, device: str, image: str) -> tuple[str, ...]:
        """The program's arguments to run, placeholders replaced.

        A replacement is never looked into again, so a path with braces is safe.
        """
        values = {"rig": rig, "slot": slot, "device": device, "image": image}
        return tuple(re.sub(r"\{(\w+)\}", lambda m: values[m[1]], word) for word in self.command)


def defers(mode: object) -> bool:
    """Whether a mode as it is written in a file only saves what another command activates."""
    try:
        return _mode(mode) in DEFERRING
    except ValueError:
        return False


def _allowed(value: object) -> object:
    """`forbidden` is as none, and `allowed` the usual method."""
    if not isinstance(value, str):
        return value
    if value not in ("allowed", "forbidden"):
        raise ValueError("forbidden, allowed, or a mapping that says how")
    return {} if value == "allowed" else None


Flash = Annotated[FlashSpec | None, BeforeValidator(_allowed)]
"""A drive's `flash`: None where its firmware must not be changed."""
