"""What Leadline's own tests share."""

import signal
import sys
from pathlib import Path

pytest_plugins = ("pytester",)

# A shell's background job ignores Ctrl-C, and so would every program that a test starts.
signal.signal(signal.SIGINT, signal.default_int_handler)

# The benchmarks are not installed.  Last: what is installed comes before our fixtures/.
sys.path.append(str(Path(__file__).parent.parent))
