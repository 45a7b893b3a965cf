"""An experiment whose project was deleted while it was prepared is not stored, and nothing of it."""

from __future__ import annotations

from datetime import UTC, datetime
from typing import Any

import msgspec
import pytest
from sqlalchemy import text

from libs.clock import SystemClock
from libs.cluster.config import ClusterConfig
from libs.db.connecting.settings import DatabaseSettings
from libs.db.engine import Database, connect_database
from libs.errors import NotFound
from libs.ids import UserId
from services.api.access.principal import Principal
from services.api.actions.experiments.create import prepare_experiment, store_experiment
from services.api.wire.experiments.experiments import CreateExperimentRequest
from tests.bench.creating.config import CONFIG
from tests.harness.app import new_app

OWNER = Principal(user_id=UserId(2), username="determined")


async def test_nothing_is_stored_of_an_experiment_without_a_project(database_url: str) -> None:
    cluster = ClusterConfig(checkpoint_storage={"type": "shared_fs", "host_path": "/checkpoints"})
    nobody_listens: Any = None
    now = datetime.now(UTC)
    async with connect_database(DatabaseSettings(url=database_url)) as db:
        app = new_app(db, nobody_listens, SystemClock(), cluster=cluster)
        new = await prepare_experiment(
            app, CreateExperimentRequest(config=CONFIG), require=lambda _project: None, now=now
        )
        gone = msgspec.structs.replace(new, project=msgspec.structs.replace(new.project, project_id=4711))
        before = await _stored(db)
        with pytest.raises(NotFound, match="project '4711' not found"):
            await store_experiment(app, gone, OWNER, now=now)
        assert await _stored(db) == before
        await store_experiment(app, new, OWNER, now=now)
        assert await _stored(db) == before + 2


async def _stored(db: Database) -> int:
    """Jobs and experiments."""
    counted = text("SELECT (SELECT count(*) FROM jobs) + (SELECT count(*) FROM experiments)")
    async with db.read() as connection:
        return int((await connection.execute(counted)).scalar_one())
