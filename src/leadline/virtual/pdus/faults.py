"""How a virtual PDU misbehaves."""

from dataclasses import dataclass, field


@dataclass
class Faults:
    """What is wrong with a unit or its line.  Tests change the fields while it runs.

    `lines` limits the faults of the line (silent, mute, garbage, half, stale, noise,
    slow) to that many inputs (lines, or frames), after which the unit is well again; None is
    for ever.  Unplugged and back is the port's affair: `pty.VirtualPdu.unplug`.
    """

    # The line.
    silent: bool = False  # hears nothing, says nothing
    mute: bool = False  # obeys, and says nothing
    garbage: bool = False  # the wrong baud rate: understands nothing, answers with noise
    half: bool = False  # obeys, and stops in the middle of its answer
    stale: bool = False  # obeys, and gives the answer to the command before
    noise: int = 0  # obeys, with so many bytes of noise before the answer
    slow_s: float = 0.0  # seconds before each answer
    lines: int | None = None

    # The outlets, by their numbers in the rig file.
    stuck: set[int] = field(default_factory=set)  # relay does not move, and status says so
    welded: set[int] = field(default_factory=set)  # contacts do not move; status says they did
    blind: set[int] = field(default_factory=set)  # contacts move; status says they did not
    rewired: dict[int, int] = field(default_factory=dict)  # a command for N switches another
    names: dict[int, str] = field(default_factory=dict)  # what the user called the outlets

    # The session.
    left_at: str = ""  # where the last user left: a place of the unit's LEFT_AT, or as powered on
    leftover: bytes = b""  # text that lies on the line when a session begins
    page_lines: int = 0  # long answers stop at a pager after so many lines
    password_refused: bool = False  # whatever is given as one
    locked_out: bool = False  # nobody is let in
    password_echoed: bool = False  # a terminal that shows what should be hidden

    def on_the_line(self) -> bool:
        """Whether this input is one that is misheard or misanswered; counts it."""
        if self.lines is None:
            return True
        misheard = self.lines > 0
        self.lines -= misheard
        return misheard
