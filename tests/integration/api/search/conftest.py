"""A project with experiments and runs of all kinds, and searches in it."""

from __future__ import annotations

import json
from dataclasses import dataclass
from datetime import timedelta
from typing import Any

import pytest_asyncio
from sqlalchemy import update

from libs.db.engine import Database, driver_connection
from libs.db.tables.experiments import experiments
from services.api.metrics.rows.promotion import promote
from services.api.metrics.rows.statements import MARK, WRITES_ROWS
from tests.builders import insert_experiment, insert_project, insert_trial, insert_workspace
from tests.integration.api.experiments.conftest import Api, api
from tests.integration.api.experiments.rows import START
from tests.integration.api.metrics.row_form import DECOY
from tests.scenarios.search.nodes import group

__all__ = ["api"]


@dataclass
class Found:
    """A project, and the ids of its experiments and runs by name: run ``a1`` is the first of experiment ``a``."""

    api: Api
    project: int
    empty_project: int
    key: str
    experiments: dict[str, int]
    runs: dict[str, int]

    async def search(self, table: str, wanted: Any = None, *, archived: bool = False, **request: Any) -> list[str]:
        """Names of what a search finds; ``wanted`` is a group, or a field."""
        answer = await self.api.ok("POST", PATHS[table], json=self.request(wanted, archived=archived, **request))
        names = {ident: name for name, ident in getattr(self, table).items()}
        found = [row["experiment"] for row in answer[table]] if table == "experiments" else answer[table]
        return [names[row["id"]] for row in found]

    def request(self, wanted: Any, *, archived: bool = False, **request: Any) -> dict[str, Any]:
        root = wanted if wanted is None or wanted["kind"] == "group" else group("and", wanted)
        text = {} if root is None else {"filter": json.dumps({"filterGroup": root, "showArchived": archived})}
        return {"projectId": self.project, **text, **request}


PATHS = {"experiments": "/api/v1/experiments-search", "runs": "/api/v1/runs"}


def config(name: str, **parts: Any) -> dict[str, Any]:
    return {
        "name": name,
        "resources": {"resource_pool": "default"},
        "searcher": {"name": "single", "metric": "loss", "smaller_is_better": True},
        "hyperparameters": {},
        "max_restarts": 5,
        **parts,
    }


def number(last: float, *, mean: float | None = None) -> dict[str, Any]:
    mean = last if mean is None else mean
    return {"type": "number", "count": 2, "sum": 2 * mean, "min": min(last, mean), "max": max(last, mean), "mean": mean,
            "last": last}  # fmt: skip


LAG = "UPDATE trials SET summary_metrics = $2::jsonb WHERE id = $1"


async def keep_in_rows_alone(db: Database, trial: int) -> None:
    """Leave the summary of a trial in rows, behind which its column lags, as while it is reported."""
    async with db.read() as connection:
        driver = await driver_connection(connection)
        async with driver.transaction():
            await promote(driver, [trial])
            await driver.execute(WRITES_ROWS)
            await driver.execute(LAG, trial, json.dumps(DECOY))
            await driver.execute(MARK, [trial])


@pytest_asyncio.fixture(scope="module", loop_scope="module")
async def found(api: Api) -> Found:
    async with api.app.db.transaction() as connection:
        workspace = await insert_workspace(connection, name="searched")
        project = await insert_project(connection, workspace_id=workspace, name="searched", key="SRCH")
        empty = await insert_project(connection, workspace_id=workspace, name="empty", key="EMPTY")
        hp = {
            "lr": {"type": "double", "minval": 0.1, "maxval": 1.0},
            "opt": {"type": "categorical", "vals": ["sgd", "adam", "7", 8, True]},
            "net": {"depth": {"type": "const", "val": 4}, "kind": {"type": "const", "val": "Resnet"}},
        }
        rows: dict[str, dict[str, Any]] = {
            "a": {
                "config": config(
                    "Alpha t\\set",
                    description="50% done",
                    labels=["prod", "x"],
                    hyperparameters=hp,
                    searcher={"name": "random", "metric": "accuracy"},
                ),
                "state": "COMPLETED",
                "progress": 1.0,
                "end_time": START + timedelta(seconds=90),
                "checkpoint_size": 5_000_000_000,
                "checkpoint_count": 4,
            },
            "b": {
                "config": config(
                    "beta", labels=[], resources={"resource_pool": "gpus"}, hyperparameters={"lr": hp["lr"]}
                ),
                "state": "PAUSED",
                "progress": 0.25,
                "owner_id": 2,
                "external_id": "outside",
                "start_time": START + timedelta(days=1),
            },
            "c": {"config": config("gamma", description=""), "state": "ERROR", "archived": True},
            "gone": {"config": config("gone"), "state": "DELETING"},
        }
        ids: dict[str, int] = {}
        for name, row in rows.items():
            if name == "b":
                row["parent_id"] = ids["a"]
            ids[name] = await insert_experiment(connection, project_id=project, **{"start_time": START, **row})
        trials: dict[str, dict[str, Any]] = {
            "a1": {
                "state": "COMPLETED",
                "hparams": {"lr": 1, "opt": "apple", "net": {"depth": 4, "flag": True, "in": {"ner": 5}}},
                "metadata": {"team": "Blue", "n": 7, "day": "2024-02-29", "tags": ["p", "q", 3], "in": {"ner": "deep"}},
                "summary_metrics": {
                    "avg_metrics": {"loss": number(0.5), "curve": {"type": "array", "last": [1, 2]}},
                    "validation_metrics": {
                        "accuracy": number(0.9, mean=0.8),
                        "word": {"type": "string", "last": "Apple"},
                    },
                    "group_b": {"value.a": number(2)},
                },
                "searcher_metric_value": 0.9,
                "external_id": "run-1",
                "checkpoint_size": 7,
                "end_time": START + timedelta(seconds=30),
            },
            "a2": {
                "state": "ERROR",
                "hparams": {"lr": 2, "opt": "bright", "net": {"depth": 10**30}},
                "metadata": {"team": "red", "n": 8.5, "day": "2024-02-30", "tags": [], "flag": False, "in": {"ner": 1}},
                "summary_metrics": {
                    "avg_metrics": {
                        "loss": {"type": "number", "min": "NaN", "max": "NaN", "mean": "NaN", "last": "NaN"}
                    },
                    "validation_metrics": {"accuracy": number(0.1), "word": {"type": "number", "last": 3}},
                },
                "archived": True,
            },
            "b1": {"state": "PAUSED", "hparams": {}, "start_time": START + timedelta(days=1)},
            "c1": {"state": "ERROR", "hparams": {"lr": None, "opt": ["l", 1]}},
        }
        runs: dict[str, int] = {}
        for position, (name, row) in enumerate(trials.items(), start=1):
            of = {"experiment_id": ids[name[0]], "project_id": project, "local_id": position, "start_time": START}
            runs[name] = await insert_trial(connection, **{**of, **row})
        best = update(experiments).where(experiments.c.id == ids["a"]).values(best_trial_id=runs["a1"])
        await connection.execute(best)
    await keep_in_rows_alone(api.app.db, runs["a1"])
    return Found(api, project, empty, "SRCH", ids, runs)
