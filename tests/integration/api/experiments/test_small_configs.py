"""Small configurations and files are not taken to threads, and all others are."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from datetime import UTC, datetime
from typing import Any

import pytest

from libs.clock import SystemClock
from libs.cluster.config import ClusterConfig
from libs.db.connecting.settings import DatabaseSettings
from libs.db.engine import connect_database
from services.api.actions.experiments.create import prepare_experiment
from services.api.actions.small_configs import (
    FEW_FILES,
    FEW_TRIALS,
    SMALL_FILES_BYTES,
    SMALL_TEXT,
    are_few,
    is_small,
    starts_small,
)
from services.api.wire.experiments.experiments import CreateExperimentRequest
from services.api.wire.experiments.model_definitions import File
from tests.bench.creating.config import CONFIG
from tests.harness.app import new_app

STEPS = ["parse_experiment_config", "merge", "apply_invariants", "_complete", "start_search"]
SMALL_FILE = File(path="train.py", type=ord("0"), content=b"a" * SMALL_FILES_BYTES)
LARGE_FILE = File(path="train.py", type=ord("0"), content=b"a" * (SMALL_FILES_BYTES + 1))
SEVERAL = CONFIG.replace("max_trials: 1", f"max_trials: {FEW_TRIALS + 1}")


@pytest.mark.parametrize(
    ("config", "files", "in_threads"),
    [
        (CONFIG, [SMALL_FILE], []),
        (CONFIG.ljust(SMALL_TEXT + 1, "\n"), [], STEPS),
        (CONFIG.replace("digits", "&much digits"), [], STEPS),
        (SEVERAL, [], ["start_search"]),
        (CONFIG, [LARGE_FILE], ["pack_context"]),
    ],
    ids=["small", "long", "with anchors", "with many trials", "with a large file"],
)
async def test_what_is_computed_in_threads(
    database_url: str, monkeypatch: pytest.MonkeyPatch, config: str, files: list[File], in_threads: list[str]
) -> None:
    to_thread, taken = asyncio.to_thread, []

    async def counted(work: Callable[..., Any], *arguments: Any, **named: Any) -> Any:
        taken.append(work.__name__)
        return await to_thread(work, *arguments, **named)

    cluster = ClusterConfig(checkpoint_storage={"type": "shared_fs", "host_path": "/checkpoints"})
    nobody_listens: Any = None
    async with connect_database(DatabaseSettings(url=database_url)) as db:
        app = new_app(db, nobody_listens, SystemClock(), cluster=cluster)
        monkeypatch.setattr(asyncio, "to_thread", counted)
        request = CreateExperimentRequest(config=config, model_definition=files)
        new = await prepare_experiment(app, request, require=lambda _project: None, now=datetime.now(UTC))
    assert [name for name in taken if name in (*STEPS, "pack_context")] == in_threads
    assert new.config["searcher"]["max_trials"] in (1, FEW_TRIALS + 1)


def test_what_is_small() -> None:
    assert is_small("a" * SMALL_TEXT)
    assert not is_small("a" * (SMALL_TEXT + 1))
    assert not is_small("a: &b [1, 2]\nc: [*b, *b]")
    assert starts_small({"name": "single"})
    assert not starts_small({"name": "grid", "max_trials": 1})
    assert are_few([SMALL_FILE])
    assert not are_few([SMALL_FILE, SMALL_FILE])
    assert not are_few([File(path=f"{number}.py") for number in range(FEW_FILES + 1)])
