"""The generated pages of the documentation."""

from __future__ import annotations

from pathlib import Path
from typing import Final

import pytest

from deploy.documentation.reference_pages import PAGES

DOCS: Final = Path(__file__).resolve().parents[3] / "docs"


@pytest.mark.parametrize("name", PAGES)
def test_a_generated_page_is_that_of_the_code(name: str) -> None:
    assert (DOCS / name).read_text() == PAGES[name](), "run make docs, and commit what it writes"
