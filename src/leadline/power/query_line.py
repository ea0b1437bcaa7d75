"""Lines without a prompt: devices that answer questions by lines, and commands by nothing."""

from collections.abc import Callable

from leadline.inventory.pdu import PduSpec
from leadline.inventory.pdu_templates import lines
from leadline.power.command_line import ERASE, HANDSHAKE_S
from leadline.power.session import Session


class QueryLine:
    """A session with a device that has no prompt.

    `identify` is a question that is always answered by one line, and by none that
    `is_state`: asked before everything else, it shows that no answer to something before is
    still to come.  Without it, nothing is known of the line.
    """

    def __init__(
        self, session: Session, spec: PduSpec, identify: str | None, is_state: Callable[[str], bool]
    ) -> None:
        self._session = session
        self._enter = spec.enter
        self._identify = identify
        self._is_state = is_state

    def sync(self) -> None:
        """End what somebody left half typed, and see that the device answers.

        Raises LineTrouble where it does not.
        """
        step = "finding the line"
        self._session.drain(step)
        self._session.send(ERASE + self._enter, step)
        self._session.drain(step)
        self._handshake()

    def command(
        self,
        text: str,
        *,
        step: str,
        deadline_s: float,
        is_answer: Callable[[bytes], bool] | None = None,
    ) -> bytes:
        """Type one command; what came until it `is_answer`, or until the line fell quiet.

        Raises LineTrouble at the deadline, and when an answer to something before comes.
        """
        self._handshake()
        if is_answer is None:
            self._session.send(text.encode() + self._enter, step)
            return self._session.drain(step)
        return self._session.ask(
            text.encode() + self._enter,
            lambda heard: heard.endswith((b"\r", b"\n")) and is_answer(heard),
            step=step,
            deadline_s=deadline_s,
        )

    def _handshake(self) -> None:
        identify = self._identify
        if identify is None:
            return
        heard = self._session.ask(
            identify.encode() + self._enter,
            lambda heard: heard.endswith((b"\r", b"\n")) and bool(self._said(heard, identify)),
            step="handshake",
            deadline_s=HANDSHAKE_S,
        )
        said = self._said(heard, identify)
        if len(said) > 1 or self._is_state(said[0]):
            raise self._session.trouble(
                "handshake", f"an answer to something before: {self._session.plain(heard)}"
            )

    def _said(self, heard: bytes, sent: str) -> list[str]:
        """The lines that are no echo."""
        return [line for line in lines(heard, "text") if line != sent]
