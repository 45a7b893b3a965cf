"""How rows are read when there may be very many of them."""

from __future__ import annotations

from typing import Final

ROWS_AT_ONCE: Final = 1000
"""Memory stays bounded, and going to the driver and back for each row would take longer than everything else."""
