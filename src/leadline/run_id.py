"""What a run is called, and its day."""

import re
import secrets
import time
from datetime import UTC, date, datetime

RUN_ID = re.compile(r"\d{8}-\d{6}-[0-9a-f]{4}")


def new_run_id() -> str:
    """An id that sorts by time: 20260131-235959-1a2b."""
    return f"{time.strftime('%Y%m%d-%H%M%S')}-{secrets.token_hex(2)}"


def run_day() -> date:
    """The day of a run that begins now, by this machine's own time zone."""
    return datetime.now(UTC).astimezone().date()
