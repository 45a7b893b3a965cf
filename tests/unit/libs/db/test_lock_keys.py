"""Advisory locks of PostgreSQL: two that share a key would wait for one another, some of them for ever."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Final

ROOT: Final = Path(__file__).parents[4]
OF_TWO_KEYS: Final = {"SHARD_LOCK", "SUMMARY_LOCKS", "_NAMES_LOCK", "_POOL_LOCKS"}
"""First keys of pairs, which PostgreSQL keeps apart from single keys."""


def test_every_lock_has_a_key_of_its_own() -> None:
    places_by_key: dict[tuple[bool, int], list[str]] = {}
    for folder in ("libs", "services", "deploy"):
        for path in sorted((ROOT / folder).rglob("*.py")):
            for name, key in re.findall(r"^(\w*LOCKS?): Final = (0x\w+)$", path.read_text(), re.MULTILINE):
                is_pair = name in OF_TWO_KEYS
                places_by_key.setdefault((is_pair, int(key, 16)), []).append(f"{path.relative_to(ROOT)}: {name}")
    assert len(places_by_key) > 3
    assert {key: places for key, places in places_by_key.items() if len(places) > 1} == {}
