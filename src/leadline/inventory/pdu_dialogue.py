"""The dialogue of a simple device, described in the rig file instead of in Python.

What can be said, with examples: docs/how-to/describe-a-pdu.md.
"""

from typing import Annotated, Self

from pydantic import AfterValidator, Field, ValidationInfo, field_validator, model_validator

from leadline.inventory.fields import Entry, Text, Unfit
from leadline.inventory.pdu_templates import (
    Encoding,
    check_command,
    check_error,
    check_row,
    names_outlet,
)

Words = Annotated[tuple[Text, ...], Field(max_length=16)]


class DialogueSpec(Entry):
    """What is sent to a device, and what it says."""

    encoding: Encoding = Field(default="text", description="text or hex")
    on: Text = Field(description="text that switches {outlet} on")
    off: Text = Field(description="text that switches {outlet} off")
    status: Text | None = Field(
        default=None, description="text that asks for the state of {outlet}, or of all"
    )
    first: int = Field(
        default=1, ge=0, le=191, description="the number by which the device calls outlet 1"
    )
    prompt: Text | None = Field(default=None, description="the prompt, as in RPC3>")
    identify: Text | None = Field(
        default=None, description="a question that is always answered by one line, as in *IDN?"
    )
    row: Annotated[Text, AfterValidator(check_row)] | None = Field(
        default=None, description='a line with {state}, as in "{outlet} * {state}"'
    )
    on_words: Words = Field(default=(), description="a list of the words for on, as in [ON]")
    off_words: Words = Field(default=(), description="a list of the words for off, as in [OFF]")
    errors: tuple[Annotated[Text, AfterValidator(check_error)], ...] = Field(
        default=(), max_length=16, description="a list of lines that refuse, as in [Input error*]"
    )

    @field_validator("on", "off", "status")
    @classmethod
    def _is_a_command(cls, text: str | None, info: ValidationInfo) -> str | None:
        return text and check_command(text, info.data.get("encoding", "text"))

    @model_validator(mode="after")
    def _fits_together(self) -> Self:
        if self.on == self.off:
            raise Unfit("the same for on and off", "two commands")
        if self.encoding == "hex" and (self.prompt or self.identify or self.errors):
            raise Unfit("a prompt, identify or errors with encoding hex", "none of them")
        if self.prompt and self.identify:
            raise Unfit("a prompt and identify", "identify only where there is no prompt")
        if self.status is None:
            if self.row or self.on_words or self.off_words:
                raise Unfit("a row or words for states without a status", "a status, too")
            return self
        if not (self.row and self.on_words and self.off_words):
            raise Unfit("a status without row, on_words and off_words", "all four, or none")
        if both := set(self.on_words) & set(self.off_words):
            raise Unfit(f"{min(both)} as a word for on and for off", "each word once")
        if self.encoding == "text" and not (self.prompt or self.identify):
            raise Unfit(
                "a status without a prompt or identify",
                "one of them: by it a late answer to something before is told from this one",
            )
        return self

    def check_outlets(self, outlets: int) -> None:
        """Raise Unfit where several outlets cannot be told apart."""
        if outlets == 1:
            return
        for key, command in (("on", self.on), ("off", self.off)):
            if not names_outlet(command):
                raise Unfit(f"{outlets} outlets and no {{outlet}} in {key}", "the outlet's number")
        told = self.status is None or names_outlet(self.status)
        if not told and (self.encoding == "hex" or not names_outlet(self.row or "")):
            raise Unfit(
                f"{outlets} outlets and no {{outlet}} in status or row",
                "{outlet} in one of them, with encoding hex in status",
            )
