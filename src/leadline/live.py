"""One line that moves while a claim is measured; silent where the output is no terminal."""

import sys
from collections.abc import Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any

import pytest

from leadline.load.slices import Slice

if TYPE_CHECKING:
    from rich.live import Live as RichLive


class Live:
    """The live line of one process.  xdist's workers have no terminal, and show nothing.

    A command that is not pytest's (`config` None) has no line, and says its sentences on stderr.
    """

    def __init__(self, config: pytest.Config | None) -> None:
        plugin = config.pluginmanager.get_plugin if config else lambda _: None
        self._reporter: pytest.TerminalReporter | None = plugin("terminalreporter")
        self._capture: Any = plugin("capturemanager")
        self._line: RichLive | None = None
        self._is_command = config is None

    def show(self, text: str) -> None:
        """Replace the line."""
        reporter = self._reporter
        if reporter is None or not reporter.isatty or reporter.config.option.verbose < 0:
            return
        from rich.text import Text

        with self._uncaptured():
            if self._line is None:
                reporter.ensure_newline()
                self._line = _line(reporter)
                self._line.start()
            self._line.update(Text(text, no_wrap=True, overflow="ellipsis"), refresh=True)

    def slice(self, cell: str, claim: str, side: str, measured: Slice) -> None:
        """Show a slice that has just been measured."""
        voids = f"  void: {', '.join(measured.voids)}" if measured.voids else ""
        held = "" if measured.drive_depth is None else f" (held {measured.drive_depth:.1f})"
        setting = measured.setting
        at = f"depth {setting.device_depth}"
        if setting.device_depth is None:  # it is left as it is
            at = f"{setting.offered_depth} offered"
        self.show(
            f"  {cell}  {claim}  {side}: {at}{held}, "
            f"{measured.rate:.0f} requests/s, {measured.mean_latency_s * 1e3:.2f} ms{voids}"
        )

    def clear(self) -> None:
        """Take the line away."""
        if self._line is not None:
            with self._uncaptured():
                self._line.stop()
            self._line = None

    def say(self, sentence: str) -> None:
        """A line that stays: something was mended, or is about to take a while."""
        self.clear()
        if self._is_command:
            print(f"leadline: {sentence}", file=sys.stderr)
        if self._reporter is not None:
            with self._uncaptured():
                self._reporter.ensure_newline()
                self._reporter.write_line(f"leadline: {sentence}")

    @contextmanager
    def _uncaptured(self) -> Iterator[None]:
        """pytest captures the terminal, too, while a test or a fixture runs."""
        if self._capture is None:
            yield
        else:
            with self._capture.global_and_fixture_disabled():
                yield


def _line(reporter: pytest.TerminalReporter) -> "RichLive":
    from rich.console import Console
    from rich.live import Live as RichLive

    console = Console(file=reporter._tw._file, force_terminal=True)
    return RichLive(
        console=console,
        transient=True,
        auto_refresh=False,
        redirect_stdout=False,
        redirect_stderr=False,
    )
