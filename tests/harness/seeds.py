"""Seeds for chance in tests: the same every time, unless somebody asks for another."""

from __future__ import annotations

import os
import random
from typing import Final

SEED: Final = 1


def chance() -> random.Random:
    """Draws from SEED, or from RESOLUTE_TEST_SEED; a test that fails shows which."""
    seed = int(os.environ.get("RESOLUTE_TEST_SEED") or SEED)
    print(f"RESOLUTE_TEST_SEED={seed}")
    return random.Random(seed)
