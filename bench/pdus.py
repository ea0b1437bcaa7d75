"""Virtual PDUs in a process of their own: like real ones, they take no time from their client."""

import subprocess
import sys
from collections.abc import Sequence
from contextlib import ExitStack
from pathlib import Path
from typing import Self

from leadline.virtual.pdus.faults import Faults
from leadline.virtual.pdus.pty import VirtualPdu

OUTLETS = 8
_DEEDS = ("plug_in", "unplug")


class Pdus:
    """PDUs of 8 outlets at `folder`/NAME, each answering after `answer_s`; a context manager."""

    def __init__(self, folder: Path, names: Sequence[str], *, answer_s: float = 0.0) -> None:
        self._folder = folder
        words = [sys.executable, "-m", "bench.pdus", str(folder), str(answer_s), *names]
        here = Path(__file__).parents[1]
        self._process = subprocess.Popen(
            words, cwd=here, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True
        )

    def __enter__(self) -> Self:
        self._await("ready")
        return self

    def __exit__(self, *_: object) -> None:
        with self._process:  # ends when its stdin is closed
            pass

    def port(self, name: str) -> Path:
        """Where one of them is found."""
        return self._folder / name

    def plug_in(self, name: str) -> None:
        """Its serial adapter appears again; returns when it has."""
        self._tell(f"plug_in {name}")

    def unplug(self, name: str) -> None:
        """Its serial adapter goes away; returns when it has."""
        self._tell(f"unplug {name}")

    def _tell(self, line: str) -> None:
        assert self._process.stdin is not None
        self._process.stdin.write(f"{line}\n")
        self._process.stdin.flush()
        self._await("done")

    def _await(self, word: str) -> None:
        assert self._process.stdout is not None
        said = self._process.stdout.readline().strip()
        if said != word:
            raise RuntimeError(f"the virtual PDUs said {said!r}, not {word!r}")


def _serve(folder: Path, answer_s: float, names: Sequence[str]) -> None:
    """In the process itself: do what stdin says."""
    with ExitStack() as stack:
        units = {
            name: stack.enter_context(
                VirtualPdu(OUTLETS, lambda *_: None, folder / name, faults=Faults(slow_s=answer_s))
            )
            for name in names
        }
        print("ready", flush=True)
        for line in sys.stdin:
            deed, name = line.split()
            if deed in _DEEDS:
                getattr(units[name], deed)()
            print("done", flush=True)


if __name__ == "__main__":
    _serve(Path(sys.argv[1]), float(sys.argv[2]), sys.argv[3:])
