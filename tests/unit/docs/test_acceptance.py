"""Each acceptance scenario of docs/reference/scheduling.md 16 is shown by tests that exist."""

from __future__ import annotations

import ast
import re
from pathlib import Path
from typing import Final

import pytest

from tests.scenarios.queue.acceptance import ACCEPTANCE

ROOT: Final = Path(__file__).resolve().parents[3]
REFERENCE: Final = ROOT / "docs" / "reference" / "scheduling.md"
TESTS: Final = sorted({test for tests in ACCEPTANCE.values() for test in tests})


def test_every_row_has_tests() -> None:
    rows = re.findall(r"^\| (B\d+) \|", REFERENCE.read_text(), re.MULTILINE)
    assert list(ACCEPTANCE) == rows
    assert all(ACCEPTANCE.values())


@pytest.mark.parametrize("test", TESTS)
def test_what_is_named_exists(test: str) -> None:
    file, _, function = test.partition("::")
    name, _, row = function.removesuffix("]").partition("[")
    text = (ROOT / file).read_text()
    defined = {
        node.name for node in ast.walk(ast.parse(text)) if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef)
    }
    assert name in defined
    assert f'"{row}"' in text or not row
