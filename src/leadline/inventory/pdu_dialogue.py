"""The dialogue of a simple device, described in the rig file instead of in Python."""

import re
from typing import Annotated

from pydantic import AfterValidator, Field

from leadline.inventory.fields import Entry, Text


def _command(text: str) -> str:
    others = [name for name in re.findall(r"\{([^{}]*)\}", text) if name != "outlet"]
    if others:
        raise ValueError(f"no placeholder but {{outlet}}; there is {{{others[0]}}}")
    return text


Command = Annotated[Text, AfterValidator(_command)]
"""What is sent for an outlet; ``{outlet}`` stands for its number."""


class DialogueSpec(Entry):
    """What is sent to a device of the family ``described``."""

    on: Command = Field(description="text that switches {outlet} on")
    off: Command = Field(description="text that switches {outlet} off")
    status: Command | None = Field(
        default=None, description="text that asks for the state of {outlet}"
    )
