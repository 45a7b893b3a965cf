"""What is kept of interactive tasks that have ended (docs/reference/tasks-and-cli.md 2.8)."""

from __future__ import annotations

from datetime import timedelta
from typing import Final

LISTED: Final = timedelta(hours=24)
"""How long they are listed, and keep their keys and what their containers began with; the rest, and the log, stays."""
