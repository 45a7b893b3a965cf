"""Models, and checkpoints for them, as tests of the registry need them."""

from __future__ import annotations

from typing import Any

import httpx

from libs.db.engine import Connection
from tests.builders import insert_checkpoint, insert_experiment, insert_metrics, insert_trial
from tests.integration.api.world import World

ALL = "/api/v1/models"


def answered(reply: httpx.Response) -> dict[str, Any]:
    assert reply.status_code == 200, reply.text
    found: dict[str, Any] = reply.json()
    return found


def error_of(reply: httpx.Response) -> tuple[int, str]:
    return reply.status_code, reply.json()["error"]["error"]


def new_model(client: httpx.Client, name: str, **fields: Any) -> dict[str, Any]:
    found: dict[str, Any] = answered(client.post(ALL, json={"name": name, **fields}))["model"]
    return found


def register(client: httpx.Client, model: str, uuid: str, **fields: Any) -> dict[str, Any]:
    reply = client.post(f"{ALL}/{model}/versions", json={"checkpointUuid": uuid, "modelName": model, **fields})
    found: dict[str, Any] = answered(reply)["modelVersion"]
    return found


def get_model(client: httpx.Client, name: str) -> dict[str, Any]:
    found: dict[str, Any] = answered(client.get(f"{ALL}/{name}"))["model"]
    return found


def new_checkpoint(world: World, *, experiment_state: str = "COMPLETED", **columns: Any) -> tuple[int, str]:
    """An experiment that has ended, and the checkpoint of its trial, which was validated."""

    async def work(connection: Connection) -> tuple[int, str]:
        config = {
            "name": "mnist",
            "searcher": {"name": "single", "metric": "loss", "smaller_is_better": True},
            "checkpoint_storage": {"type": "directory", "container_path": "/checkpoints"},
        }
        experiment = await insert_experiment(connection, state=experiment_state, config=config)
        trial = await insert_trial(connection, experiment_id=experiment, state="COMPLETED")
        await insert_metrics(connection, trial_id=trial, step=3, values={"loss": 0.25})
        row = {
            "trial_id": trial,
            "experiment_id": experiment,
            "steps_completed": 3,
            "metadata": {"steps_completed": 3, "framework": "torch"},
            "resources": {"model.pt": 100},
            **columns,
        }
        return experiment, await insert_checkpoint(connection, **row)

    found: tuple[int, str] = world.in_database(work)
    return found
