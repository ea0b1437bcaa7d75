"""A secret that went over a line, kept out of what is logged and quoted of that line."""

SHOWN = b"<password>"


class Mask:
    """Replaces a secret by `SHOWN`.  Until one is hidden, everything passes as it is.

    `whole` is for a text that is complete; `next` and `rest` for one that comes in pieces,
    where the secret may be cut anywhere: the beginning of one is held back until the next
    piece decides.
    """

    def __init__(self) -> None:
        self._secret = b""
        self._held = b""

    def hide(self, secret: bytes) -> None:
        """From now on this is not shown."""
        self._secret = secret
        self._held = b""

    def whole(self, text: bytes) -> bytes:
        """The text without the secret, nor what may be the beginning of one at its end."""
        shown, cut = self._split(text)
        return shown + SHOWN if cut else shown

    def next(self, piece: bytes) -> bytes:
        """What can be shown after this piece."""
        shown, self._held = self._split(self._held + piece)
        return shown

    def rest(self) -> bytes:
        """What stands for what is held back, once no more can come; it is given up then."""
        held, self._held = self._held, b""
        return SHOWN if held else b""

    def _split(self, text: bytes) -> tuple[bytes, bytes]:
        """What can be shown, and the longest end that may be the secret's beginning."""
        if not self._secret:
            return text, b""
        *before, last = text.split(self._secret)
        lengths = range(min(len(last), len(self._secret) - 1), 0, -1)
        keep = next((n for n in lengths if last.endswith(self._secret[:n])), 0)
        end = len(last) - keep
        return SHOWN.join([*before, last[:end]]), last[end:]
