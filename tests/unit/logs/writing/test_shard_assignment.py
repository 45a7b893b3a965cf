"""Shards are shared among the live writers, and few of them move when one joins or leaves."""

from __future__ import annotations

from libs.events.subjects import LOG_SHARDS
from services.logs.writing.shard_assignment import share_of


def test_every_shard_falls_to_one_writer() -> None:
    writers = ["a", "b", "c"]
    shares = [share_of(writer, writers) for writer in writers]
    assert sorted(shard for share in shares for shard in share) == list(range(LOG_SHARDS))
    assert share_of("a", ["a"]) == frozenset(range(LOG_SHARDS))
    assert share_of("a", []) == share_of("stranger", writers) == frozenset()


def test_a_writer_that_leaves_moves_only_its_own_shards() -> None:
    for writer in ("a", "b"):
        assert share_of(writer, ["a", "b", "c"]) <= share_of(writer, ["a", "b"])
