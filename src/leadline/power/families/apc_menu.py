"""APC AP79xx and MasterSwitch with AOS 2 and 3: numbered menus.

The way to the table of outlets differs by firmware (1, 3 with AOS 2; 1, 2, 1 with AOS 3),
so it is found by what the menus say, and so is an action's number (MasterSwitch Plus has
"off" at 3).  An action is asked about; `YES` is typed only to a question that followed our
own choice, and about our outlet where it says which.  Sources: powerman's `apc*.dev`,
fence_apc.py, pdudaemon's apc79xx modules.
"""

import re
from collections.abc import Callable

from leadline.inventory.pdu import PduSpec
from leadline.power.command_line import CommandLine, Grammar, Wait, prompt_line
from leadline.power.families.apc import COMMAND_S, LINE, log_out, login_words
from leadline.power.session import Session

ESC = b"\x1b"  # one menu back
MAIN_MENU = b"\x03"  # Ctrl-C
MENUS = 4  # to the table, at most
# For all the screens of one status, one switching, one way to the table: 3 to 4 s at 9600 baud.
ACTION_S = 20.0
LEAVE_S = 5.0

GRAMMAR = Grammar(
    unit="an APC with AOS 2 or 3",
    prompt=prompt_line(rb">[ ]?"),
    pagers=(Wait(re.compile(LINE + rb"Press <ENTER>[^\r\n]*\Z")),),
    questions=re.compile(LINE + rb"Enter 'YES' to continue[^\r\n]*\Z"),
    # Somebody typed ` -c` after the password: out of the command line, to log in again.
    menus=(Wait(prompt_line(rb"APC>[ ]?"), b"bye"),),
    login=login_words(),
    handshake=False,
)


def at_main_menu(logout: int) -> re.Pattern[bytes]:
    """The main menu's end, where "Logout" has that number: accounts see different items."""
    item = rb"[\r\n][ ]*%d- Logout[ ]*[\r\n].*" % logout
    return re.compile(item + GRAMMAR.prompt.pattern, re.DOTALL)


def _item(label: str) -> re.Pattern[str]:
    return re.compile(rf"^[ ]*(\d{{1,2}})- (?:{label})[ ]*$", re.MULTILINE)


# What a user may have called an outlet stands between a line's beginning and its end.
WAY = _item(r"Device Manager|Outlet Management|Outlet Control(?:/\w+)?|MasterSwitch plus 1")
LOGOUT = _item("Logout")
CONTROL = _item("Control Outlet")
ACTION = {on: _item(f"Immediate {'On' if on else 'Off'}") for on in (True, False)}
ROW = re.compile(r"^[ ]*(\d{1,2})- .*[ ](ON|OFF)\*?[ ]*$", re.MULTILINE)
ANY = re.compile(rf"{WAY.pattern}|{ROW.pattern}|<ENTER>- Refresh", re.MULTILINE)
# Of the question, before the name: "... off outlet 3 named 'x'", under a line "Immediate Off".
ASKED_OUTLET = re.compile(r"\boutlet (\d+) named '")
ASKED_ACTION = re.compile(r"^[ ]*Immediate (\w+)[ ]*$", re.MULTILINE)
ISSUED = re.compile(r"^[ ]*(?:Command successfully issued|Success)\b", re.MULTILINE)


def screen_of(heard: bytes) -> str:
    """What a device said, its lines ended by LF."""
    return re.sub(r"[\r\n]+", "\n", heard.decode("latin-1"))


def parse_table(screen: str) -> dict[int, bool]:
    """The outlets of a table by their numbers; empty where there is no table, or one twice."""
    rows = ROW.findall(screen)
    states = {int(number): state == "ON" for number, state in rows}
    return states if len(states) == len(rows) else {}


class ApcMenu:
    """One console behind a session.  Between commands it stands at the table of outlets."""

    reads_back = True

    def __init__(self, session: Session, spec: PduSpec) -> None:
        self._session = session
        self._outlets = spec.outlets
        self._enter = spec.enter
        self._line = CommandLine(session, spec, GRAMMAR)
        self._into_table = ""  # what is chosen in the menu above it
        self._end = 0.0  # of the time for what is being done

    def sync(self) -> None:
        """Lead the session to the table of outlets, wherever it was left."""
        self._line.sync()
        self._within(ACTION_S)
        screen = self._press(MAIN_MENU, "going to the main menu", LOGOUT.search)
        for _ in range(MENUS):
            way = WAY.search(screen)
            if way is None:
                break
            self._into_table = way[1]
            screen = self._choose(way[1], "going to the outlets", ANY.search)
            if ROW.search(screen):
                return
        raise self._session.trouble(
            "going to the outlets",
            f"no menu leads there; the last was {self._session.plain(screen.encode('latin-1'))}; "
            "may this user switch outlets?",
        )

    def status(self) -> dict[int, bool]:
        """Every outlet's state by its number; LineTrouble unless the whole table came."""
        step = "status"
        self._within(ACTION_S)
        # Out and in again: a table that was late would come in place of the menu.
        self._press(ESC, step, WAY.search)
        states = parse_table(self._choose(self._into_table, step, ROW.search))
        if list(states) != list(range(1, self._outlets + 1)):
            listed = ", ".join(map(str, states)) or "none, or one twice"
            raise self._session.trouble(
                step, f"it lists outlets {listed}; the rig file says 1 to {self._outlets}"
            )
        return states

    def switch(self, outlet: int, *, on: bool) -> None:
        """Command one outlet.  Raises LineTrouble when the unit refuses or does not answer."""
        step = f"switching outlet {outlet} {'on' if on else 'off'}"
        action = ACTION[on]
        self._within(ACTION_S)
        screen = self._choose(
            str(outlet), step, lambda now: CONTROL.search(now) or action.search(now)
        )
        depth = 1
        if control := CONTROL.search(screen):
            screen = self._choose(control[1], step, action.search)
            depth = 2
        number = action.search(screen)
        assert number is not None, "which was waited for"
        question = self._choose(number[1], step, _asks)
        if not _about(question, outlet, on):
            asked = self._session.plain(question.encode("latin-1"), 200)
            raise self._session.trouble(step, f"it asks about something else: {asked}")
        self._choose("YES", step, ISSUED.search)
        for _ in range(depth - 1):
            self._press(ESC, step, CONTROL.search)
        self._press(ESC, step, ROW.search)

    def leave(self) -> None:
        """Log out."""
        self._within(LEAVE_S)
        screen = self._press(MAIN_MENU, "logging out", LOGOUT.search)
        number = LOGOUT.search(screen)
        assert number is not None, "which was waited for"
        log_out(self._session, number[1].encode() + self._enter)

    def _within(self, seconds: float) -> None:
        self._end = self._session.clock.now() + seconds

    def _choose(self, text: str, step: str, shows: Callable[[str], object]) -> str:
        return self._press(text.encode() + self._enter, step, shows)

    def _press(self, keys: bytes, step: str, shows: Callable[[str], object]) -> str:
        """The screen that follows, all its pages, once it is one that `shows` what we are after.

        Other screens are those of before; only the deadline ends the wait for ours.
        """
        left_s = self._end - self._session.clock.now()
        if left_s <= 0:
            raise self._session.trouble(step, "the unit is too slow: its time is over")
        heard = self._line.command(
            step,
            keys=keys,
            deadline_s=min(COMMAND_S, left_s),
            is_answer=lambda heard: (
                bool(shows(screen_of(heard)))
                or GRAMMAR.asks_login(heard)
                or any(pager.at.search(heard) for pager in GRAMMAR.pagers)
            ),
        )
        screen = screen_of(heard)
        if not shows(screen):
            raise self._session.trouble(step, f"another screen came: {self._session.plain(heard)}")
        return screen


def _asks(screen: str) -> bool:
    return GRAMMAR.asks(screen.encode("latin-1"))


def _about(question: str, outlet: int, on: bool) -> bool:
    """Whether a question is about this, as far as it says what it is about."""
    asked = ASKED_OUTLET.search(question)
    action = ASKED_ACTION.search(question)
    return (asked is None or int(asked[1]) == outlet) and (
        action is None or action[1] == ("On" if on else "Off")
    )
