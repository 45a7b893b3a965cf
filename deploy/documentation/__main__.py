"""``python -m deploy.documentation``: writes the generated pages into ``docs/``."""

from __future__ import annotations

from pathlib import Path

from deploy.documentation.reference_pages import write_pages

write_pages(Path(__file__).resolve().parents[2] / "docs")
