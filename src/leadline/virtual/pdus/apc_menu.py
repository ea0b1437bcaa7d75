"""APC AP79xx and MasterSwitch Plus with numbered menus, as powerman and fence_apc know them.

The menus of AOS 3 are those of an AP7920 with AOS v3.9.2; AOS 2 has its outlets in the
device manager.  Of a MasterSwitch Plus only the numbers are known (3 is off, 8 cancel),
not the words.  Delays are 0 s, and what is off the way to the outlets opens nothing.
With ` -c` after the password AOS 3 gives its command line instead.
"""

from collections.abc import Iterator, Mapping
from typing import ClassVar

from leadline.virtual.pdus.apc import BANNER, BYE, CTRL_C, ESC, CommandLine, Console, crlf
from leadline.virtual.pdus.line import Piece, Unit

PAGER = b"\r        Press <ENTER> to continue..."
QUESTION = b"        Enter 'YES' to continue or <ENTER> to cancel : "
PROMPT = b"> "
WIDTH = 79
NAME_WIDTH = 20

CLI = CommandLine(
    prompt=b"APC>", done="OK", on="on", off="off", reboot="reboot", status="status", leave="bye"
)
C_OPTION = b" -c"

# A menu: its title, its items, and which of them leads on to the outlets.
Menu = tuple[str, tuple[str, ...], int]
MAIN: Menu = ("Control Console", ("Device Manager", "Network", "System", "Logout"), 1)


class Aos3(Console):
    """An AP7920 with AOS 3."""

    VERSION: ClassVar[str] = "3.9.2"
    LOGOUT: ClassVar[int] = 4  # of the main menu
    # Each place, and what ESC leads back through.
    PATH: ClassVar[tuple[str, ...]] = (
        "main",
        "device",
        "management",
        "table",
        "outlet",
        "control",
        "question",
    )
    MENUS: ClassVar[Mapping[str, Menu]] = {
        "main": MAIN,
        "device": (
            "Device Manager",
            ("Phase Management", "Outlet Management", "Power Supply Status"),
            2,
        ),
        "management": (
            "Outlet Management",
            ("Outlet Control/Configuration", "Outlet Restriction"),
            1,
        ),
    }
    TABLE: ClassVar[str] = "Outlet Control/Configuration"
    ACTIONS: ClassVar[tuple[str, ...]] = (
        "Immediate On",
        "Immediate Off",
        "Immediate Reboot",
        "Delayed On",
        "Delayed Off",
        "Delayed Reboot",
        "Cancel",
    )
    ISSUED: ClassVar[str] = "Command successfully issued."
    LEFT_AT: ClassVar[Mapping[str, bytes]] = {
        **Console.LEFT_AT,
        "main": b"\r\n" + PROMPT,
        "device": b"\r\n" + PROMPT,
        "management": b"\r\n" + PROMPT,
        "table": b"\r\n" + PROMPT,
        "outlet": b"\r\n" + PROMPT,
        "control": b"\r\n" + PROMPT,
        "pager": PAGER,
        "question": QUESTION,
        "half-typed": QUESTION + b"YES",
        "cli": b"\r\n" + CLI.prompt,
    }

    def begin(self, left_at: str) -> bytes:
        """As somebody left it, about to switch outlet 1 off; or closed."""
        super().begin({"half-typed": "question", "pager": "table"}.get(left_at, left_at))
        self._outlet = 1
        self._action = "Immediate Off"
        self._rest = self._screen() if left_at == "pager" else b""  # what a pager holds back
        self._paused = left_at == "pager"
        return b"YES" if left_at == "half-typed" else b""

    def _log_in(self, line: bytes) -> bytes:
        self._wants_cli = line.endswith(C_OPTION)
        return super()._log_in(line.removesuffix(C_OPTION))

    def _welcome(self) -> bytes:
        banner = crlf(BANNER.format(self.VERSION))
        if self._wants_cli:
            self._place = "cli"
            return banner + CLI.prompt
        return banner + self._open("main")

    def _obey(self, line: bytes) -> Iterator[Piece]:
        yield 0.0, b"\r\n" + self._answer_to(line)

    def _answer_to(self, line: bytes) -> bytes:
        if self._place == "cli":
            said = CLI.obey(line.strip(ESC + CTRL_C), self.outlets)
            return self._close() if said is None else said
        if line.endswith(CTRL_C):
            return self._open("main")
        if self._paused:
            return self._page(self._rest)
        if line.endswith(ESC):
            return self._open(self.PATH[max(0, self.PATH.index(self._place) - 1)])
        if self._place == "question":
            return self._decide(line)
        text = line.decode("latin-1").strip()
        return self._choose(int(text)) if text.isdecimal() else self._open(self._place)

    def _open(self, place: str) -> bytes:
        """Go there; its screen."""
        self._place = place
        return self._page(self._screen())

    def _close(self) -> bytes:
        self._place = "closed"
        return BYE

    def _choose(self, number: int) -> bytes:
        place = self._place
        if place == "main" and number == self.LOGOUT:
            return self._close()
        if place in self.MENUS:
            leads_on = number == self.MENUS[place][2]
        elif place == "table":
            leads_on = 1 <= number <= len(self.outlets) + 1
            self._outlet = number if leads_on else self._outlet
        elif place == "outlet":
            leads_on = number == 1
        else:
            leads_on = 1 <= number <= len(self.ACTIONS)
            self._action = self.ACTIONS[number - 1] if leads_on else self._action
        return self._open(self.PATH[self.PATH.index(place) + leads_on])

    def _decide(self, line: bytes) -> bytes:
        self._place = "control"
        if line.upper() != b"YES":
            return self._page(self._screen())
        chosen = [self._outlet] if self._outlet in self.outlets.contacts else []
        kind, _, what = self._action.partition(" ")
        if not chosen or kind == "Delayed" or what == "Reboot":
            self.outlets.careless.append(self._action.encode())
        for on in {"On": (True,), "Off": (False,), "Reboot": (False, True)}.get(what, ()):
            for outlet in chosen or self.outlets.contacts:
                self.outlets.switch(outlet, on=on)
        self._rest = self._screen()
        self._paused = True
        return crlf(f"\n        {self.ISSUED}\n\n") + PAGER

    def _page(self, text: bytes) -> bytes:
        """As much of it as fits before a pager."""
        lines = text.splitlines(keepends=True)
        first = self.outlets.faults.page_lines
        self._paused = 0 < first < len(lines)
        if not self._paused:
            return text
        self._rest = b"".join(lines[first:])
        return b"".join(lines[:first]) + PAGER

    def _screen(self) -> bytes:
        """What the place shows."""
        if self._place == "question":
            rule = "-" * (WIDTH - 8)
            return (
                crlf(
                    f"        {rule}\n        {self._action}\n\n"
                    f"        This command will {self._action.lower()}\n"
                    f"        outlet {self._outlet} named '{self._name(self._outlet)}'.\n\n"
                )
                + QUESTION
            )
        title, facts, items = self._contents()
        lines = [f"------- {title} ".ljust(WIDTH, "-"), "", *facts]
        lines += [f"{number:6d}- {item}" for number, item in enumerate(items, 1)]
        back = "Main Menu" if self._place == "main" else "Back"
        lines += ["", f"     <ESC>- {back}, <ENTER>- Refresh, <CTRL-L>- Event Log", ""]
        return crlf("\n" + "\n".join(lines)) + PROMPT

    def _contents(self) -> tuple[str, list[str], list[str]]:
        if self._place in self.MENUS:
            title, items, _ = self.MENUS[self._place]
            return title, [], list(items)
        states = self.outlets.shown
        if self._place == "table":
            rows = [
                f"{self._name(n):<{NAME_WIDTH + 4}} {'ON' if on else 'OFF'}"
                for n, on in states.items()
            ]
            return self.TABLE, [], [*rows, "Master Control/Configuration"]
        state = {True: "ON", False: "OFF", None: "?"}[states.get(self._outlet)]
        name = self._name(self._outlet)
        facts = [
            f"        Name         : {name}",
            f"        Outlet       : {self._outlet}",
            f"        State        : {state}",
            "",
        ]
        if self._place == "outlet":
            return name, facts, ["Control Outlet", "Configure Outlet"]
        return "Control Outlet", facts, list(self.ACTIONS)

    def _name(self, outlet: int) -> str:
        return self.outlets.name(outlet, f"Outlet {outlet}")[:NAME_WIDTH]


class Aos2(Aos3):
    """An AP7900 with AOS 2."""

    VERSION: ClassVar[str] = "2.7.0"
    PATH: ClassVar[tuple[str, ...]] = ("main", "device", "table", "outlet", "control", "question")
    LEFT_AT: ClassVar[Mapping[str, bytes]] = {
        place: said for place, said in Aos3.LEFT_AT.items() if place != "management"
    }
    MENUS: ClassVar[Mapping[str, Menu]] = {
        "main": MAIN,
        "device": (
            "Device Manager",
            (
                "Phase Monitor/Configuration",
                "Outlet Restriction Configuration",
                "Outlet Control/Configuration",
                "Power Supply Status",
            ),
            3,
        ),
    }


class MasterSwitchPlus(Aos3):
    """A MasterSwitch Plus with AOS 2.5."""

    VERSION: ClassVar[str] = "2.5.4"
    PATH: ClassVar[tuple[str, ...]] = Aos2.PATH
    LEFT_AT: ClassVar[Mapping[str, bytes]] = Aos2.LEFT_AT
    MENUS: ClassVar[Mapping[str, Menu]] = {
        "main": MAIN,
        "device": ("Device Manager", ("MasterSwitch plus 1",), 1),
    }
    TABLE: ClassVar[str] = "MasterSwitch plus 1"
    ACTIONS: ClassVar[tuple[str, ...]] = (
        "Immediate On",
        "Delayed On",
        "Immediate Off",
        "Delayed Off",
        "Immediate Reboot",
        "Delayed Reboot",
        "Shutdown",
        "Cancel",
    )
    ISSUED: ClassVar[str] = "Success"


UNITS: tuple[type[Unit], ...] = (Aos3, Aos2, MasterSwitchPlus)
