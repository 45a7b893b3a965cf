"""The versions of this release and of the one that it stands in for."""

from __future__ import annotations

from functools import cache
from importlib import metadata
from typing import Final

REFERENCE_VERSION: Final = "0.38.1"
"""What clients compare with their own version; they warn at every command when it differs."""


@cache
def own_version() -> str:
    """The version of this distribution; ``0+source`` for a tree that was never installed.

    Clients ask for it before everything else, and to find it files are read.
    """
    try:
        return metadata.version("resolute")
    except metadata.PackageNotFoundError:
        return "0+source"
