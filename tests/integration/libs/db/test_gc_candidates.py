"""What a retention policy may delete, and what it must leave alone."""

from __future__ import annotations

from sqlalchemy import insert

from libs.db.checkpoints.gc_candidates import gc_candidates
from libs.db.connecting.settings import DatabaseSettings
from libs.db.engine import connect_database
from libs.db.tables.models import model_versions, models
from tests.builders import OWNER, insert_checkpoint, insert_experiment, insert_trial


async def test_versions_of_models_stay(database_url: str) -> None:
    async with connect_database(DatabaseSettings(url=database_url)) as db, db.transaction() as connection:
        experiment = await insert_experiment(connection)
        trial = await insert_trial(connection, experiment_id=experiment)
        of_trial = {"trial_id": trial, "experiment_id": experiment}
        registered, other = [await insert_checkpoint(connection, **of_trial) for _ in range(2)]
        model = {"name": "mnist", "owner_id": OWNER, "workspace_id": 1}
        added = await connection.execute(insert(models).values(model).returning(models.c.id))
        version = {"model_id": added.scalar_one(), "version": 1, "checkpoint_uuid": registered}
        await connection.execute(insert(model_versions).values(version))
        candidates = await gc_candidates(connection, experiment, {"searcher": {"metric": "loss"}})
    assert [candidate.uuid for candidate in candidates] == [other]


async def test_those_of_one_trial_are_found_without_reading_the_others(database_url: str) -> None:
    async with connect_database(DatabaseSettings(url=database_url)) as db, db.transaction() as connection:
        experiment = await insert_experiment(connection)
        trials = [await insert_trial(connection, experiment_id=experiment) for _ in range(2)]
        mine, _ = [await insert_checkpoint(connection, trial_id=trial, experiment_id=experiment) for trial in trials]
        found = await gc_candidates(connection, experiment, {}, trial_id=trials[0])
        both = await gc_candidates(connection, experiment, {})
    assert [candidate.uuid for candidate in found] == [mine]
    assert len(both) == 2
