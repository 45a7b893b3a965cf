"""The one exception of an import: what stands in its way, and what to do about it."""

from __future__ import annotations

from libs.errors import ResoluteError


class ImportRefused(ResoluteError):
    """The import cannot begin or go on; the message is for whoever started it."""
