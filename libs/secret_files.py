"""Secrets in files, as Kubernetes and Docker mount them: their content may change, and the newest counts."""

from __future__ import annotations

from pathlib import Path


def read_secret(path: str | Path) -> str:
    """The content, without the line break that editors and ``echo`` leave at its end. Raises OSError."""
    return Path(path).read_text().removesuffix("\n").removesuffix("\r")
