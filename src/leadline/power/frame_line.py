"""Binary frames: relay boards that take a few bytes, and answer only when they are asked."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass

from leadline.power.command_line import SYNC_QUIETS_S, SYNC_S
from leadline.power.session import Session

ANSWER_S = 2.0
# The boards want 50 to 100 ms between commands.
SETTLE_S = 0.1


@dataclass(frozen=True)
class Query:
    """A question for states: its bytes, and what a whole answer says (None: it is none)."""

    sent: bytes
    read: Callable[[bytes], dict[int, bool] | None]

    def is_answered_by(self, heard: bytes) -> bool:
        """Whether what was heard is a whole answer."""
        return self.read(heard) is not None


class FrameLine:
    """A session with a board.

    The answers to all `queries` together tell every outlet's state.  `filler` are bytes
    that begin no frame, and end one that somebody left half sent.  A board that never
    answered, where it `may_be_mute`, cannot tell.
    """

    def __init__(
        self,
        session: Session,
        queries: Sequence[Query],
        *,
        filler: bytes = b"",
        may_be_mute: bool = False,
    ) -> None:
        self._session = session
        self._queries = queries
        self._filler = filler
        self._may_be_mute = may_be_mute
        self._told = False
        self._mute = False  # it was asked patiently once, and said nothing

    @property
    def reads_back(self) -> bool:
        """Whether it tells states; known after `sync`."""
        return bool(self._queries) and (self._told or not self._may_be_mute)

    def sync(self) -> None:
        """Get the line into step.  Raises LineTrouble unless as many answers come as were asked."""
        step = "finding the line"
        self._session.drain(step)
        if self._filler:
            self._session.send(self._filler, step)
            self._session.drain(step, quiet_s=SETTLE_S)
        if not self._queries:
            return
        first = self._queries[0]
        heard = b""
        quiets_s = SYNC_QUIETS_S[:1] if self._mute else SYNC_QUIETS_S
        for asked, quiet_s in enumerate(quiets_s, 1):
            self._session.send(first.sent, step)
            heard += self._session.drain(step, quiet_s=quiet_s, deadline_s=SYNC_S)
            if self._answers(first, heard, asked):
                self._told, self._mute = True, False
                return
        if heard or self.reads_back:
            what = f"no one answer, but {self._session.plain(heard)}" if heard else "no answer"
            raise self._session.trouble(
                step,
                f"{what} when asked for states; is it a board of this family, powered, at this "
                "baud rate, with as many outlets as the rig file says?",
            )
        self._mute = True

    def status(self) -> dict[int, bool]:
        """Every outlet's state; LineTrouble unless each question got its own whole answer."""
        states: dict[int, bool] = {}
        for query in self._queries:
            heard = self._session.ask(
                query.sent,
                query.is_answered_by,
                step="status",
                deadline_s=ANSWER_S,
            )
            states |= query.read(heard) or {}
        return states

    def command(self, frame: bytes, step: str) -> None:
        """Send a frame; what is said to it (some boards echo it) is read, and proves nothing."""
        self._session.send(frame, step)
        self._session.drain(step, quiet_s=SETTLE_S)

    def _answers(self, query: Query, heard: bytes, count: int) -> bool:
        """Whether it is so many answers, which are alike: nothing was switched in between."""
        length, rest = divmod(len(heard), count)
        if rest or not length:
            return False
        parts = [heard[at : at + length] for at in range(0, len(heard), length)]
        return all(query.read(part) is not None for part in parts)
