"""Advisory locks of PostgreSQL: two that share a key would wait for one another, some of them for ever."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Final

ROOT: Final = Path(__file__).parents[4]
OF_TWO_KEYS: Final = {"SHARD_LOCK", "SUMMARY_LOCKS", "_NAMES_LOCK", "_POOL_LOCKS"}
"""First keys of pairs, which PostgreSQL keeps apart from single keys."""
OF_CONSTANT: Final = re.compile(r"^(\w+): Final = (0x5E50\w*)$", re.MULTILINE)
IN_SQL: Final = re.compile(r"pg_(?:try_)?advisory_(?:xact_)?lock(?:_shared)?\((\d+)(,?)")
MEANT: Final = {"FORMER_LOCK": "number_change of migration 0001 has it too, and so it is held for old schemas only"}


def _constants() -> list[tuple[str, bool, int]]:
    """Where a key is, whether it is the first of a pair, and the key."""
    return [
        (f"{path.relative_to(ROOT)}: {name}", name in OF_TWO_KEYS, int(key, 16))
        for folder in ("libs", "services", "deploy")
        for path in sorted((ROOT / folder).rglob("*.py"))
        for name, key in OF_CONSTANT.findall(path.read_text())
        if name not in MEANT
    ]


def _of_migrations() -> set[tuple[bool, int]]:
    """Keys that are written out in SQL; a key there is one lock, wherever it is taken."""
    return {
        (bool(comma), int(key))
        for path in sorted((ROOT / "libs/db/migrations").rglob("*.py"))
        for key, comma in IN_SQL.findall(path.read_text())
    }


def test_every_lock_has_a_key_of_its_own() -> None:
    places_by_key: dict[tuple[bool, int], list[str]] = {}
    for place, is_pair, key in _constants():
        places_by_key.setdefault((is_pair, key), []).append(place)
    assert len(places_by_key) > 8
    assert {key: places for key, places in places_by_key.items() if len(places) > 1} == {}


def test_functions_of_the_database_share_pairs_of_keys_only() -> None:
    ours = {(is_pair, key) for _, is_pair, key in _constants()}
    assert {key for key in _of_migrations() & ours if not key[0]} == set()
    assert {key for key in _of_migrations() if key[0]} <= ours, "such as those of summaries"
    assert (False, 0x5E50_1074) in _of_migrations(), "of numbers of changes"
