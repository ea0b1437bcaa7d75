"""What Leadline's own tests share."""

import sys
from pathlib import Path

pytest_plugins = ("pytester",)

# The benchmarks are not installed.  Last: what is installed comes before our fixtures/.
sys.path.append(str(Path(__file__).parent.parent))
