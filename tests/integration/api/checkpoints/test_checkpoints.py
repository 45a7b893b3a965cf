"""Checkpoints as they are reported and patched."""

from __future__ import annotations

import asyncio
from typing import Any
from uuid import uuid4

import httpx
import pytest

from libs.db.engine import Database
from libs.db.tables.checkpoints import checkpoints
from libs.db.tables.experiments import experiments
from libs.db.tables.trials import trials
from tests.builders import insert_task
from tests.harness import FakeClock
from tests.integration.api.tasks.service import Run, announced, error_of, new_run, row_of, rows_of

FILES = {"model.pt": "100", "code/": "0", "code/main.py": "5"}


def checkpoint(run: Run, *, uuid: str | None = None, steps: int = 100, **more: Any) -> dict[str, Any]:
    """A report as the harness sends it."""
    return {
        "uuid": uuid or str(uuid4()),
        "taskId": run.task,
        "allocationId": run.allocation,
        "state": "STATE_COMPLETED",
        "metadata": {"steps_completed": steps, "framework": "torch"},
        "resources": FILES,
        "reportTime": "2030-01-01T12:00:00.123456+00:00",
        "storageId": None,
        "training": {},
        **more,
    }


async def registered_storage(client: httpx.AsyncClient, run: Run) -> int:
    """The number of a storage that nobody has registered before."""
    body = {"runId": run.trial, "checkpointStorage": {"type": "shared_fs", "host_path": f"/{uuid4()}"}}
    return int((await client.post("/api/v1/runs/start", json=body)).json()["storageId"])


async def counted(db: Database, run: Run) -> list[tuple[int, int]]:
    trial, experiment = await row_of(db, trials, id=run.trial), await row_of(db, experiments, id=run.experiment)
    return [(row.checkpoint_count, row.checkpoint_size) for row in (trial, experiment)]


async def test_a_report_is_recorded_once(db: Database, client: httpx.AsyncClient, run: Run) -> None:
    storage = await registered_storage(client, run)
    body = checkpoint(run, storageId=storage)
    answers = await asyncio.gather(*(client.post("/api/v1/checkpoints", json=body) for _ in range(4)))
    assert [(answer.status_code, answer.text) for answer in answers] == [(200, "{}")] * 4
    row = await row_of(db, checkpoints, uuid=body["uuid"])
    assert (row.trial_id, row.experiment_id, row.task_id) == (run.trial, run.experiment, run.task)
    assert (row.allocation_id, row.state, row.steps_completed, row.size_bytes) == (
        run.allocation,
        "COMPLETED",
        100,
        105,
    )
    assert row.resources == {"model.pt": 100, "code/": 0, "code/main.py": 5}
    assert (row.metadata, row.storage_id) == (body["metadata"], storage)
    assert row.report_time.isoformat() == "2030-01-01T12:00:00.123456+00:00"
    assert await counted(db, run) == [(1, 105), (1, 105)]
    assert len(await announced(db, f"checkpoint.{body['uuid']}.reported")) == 1


async def test_a_report_cannot_name_the_storage_of_another_experiment(
    db: Database, owner: httpx.AsyncClient, run: Run
) -> None:
    stranger, sibling = await new_run(db), await new_run(db, experiment=run.experiment)
    theirs, ours = await registered_storage(owner, stranger), await registered_storage(owner, sibling)
    for foreign in (theirs, 10**6):
        body = checkpoint(run, allocationId=None, storageId=foreign)
        refused = await owner.post("/api/v1/checkpoints", json=body)
        expected = f"no trial of experiment {run.experiment} has registered checkpoint storage {foreign}"
        assert (refused.status_code, error_of(refused)) == (400, expected)
        assert not await rows_of(db, checkpoints, uuid=body["uuid"])
    taken = await owner.post("/api/v1/checkpoints", json=checkpoint(run, allocationId=None, storageId=ours))
    assert taken.status_code == 200


async def test_sizes_of_trial_and_experiment(db: Database, owner: httpx.AsyncClient, run: Run) -> None:
    other = await new_run(db, experiment=run.experiment)
    for reporter in (run, run, other):
        await owner.post(
            "/api/v1/checkpoints", json=checkpoint(reporter, allocationId=None, reportTime=None, storageId=None)
        )
    assert await counted(db, run) == [(2, 210), (3, 315)]


async def test_a_report_may_leave_out_what_is_not_known(
    db: Database, client: httpx.AsyncClient, run: Run, clock: FakeClock
) -> None:
    uuid = str(uuid4())
    assert (await client.post("/api/v1/checkpoints", json={"uuid": uuid, "taskId": run.task})).status_code == 200
    row = await row_of(db, checkpoints, uuid=uuid)
    assert (row.steps_completed, row.size_bytes, row.report_time, row.storage_id) == (None, 0, clock.now(), None)


async def test_reports_that_are_refused(db: Database, owner: httpx.AsyncClient, run: Run) -> None:
    async with db.transaction() as tx:
        command = await insert_task(tx, task_type="COMMAND")
    mine = checkpoint(run)
    await owner.post("/api/v1/checkpoints", json=mine)
    other = await new_run(db)
    for body, status, message in [
        (checkpoint(run, state="STATE_DELETED"), 400, "invalid state for reported checkpoint: STATE_DELETED"),
        (checkpoint(run, taskId="nobody"), 404, "task 'nobody' not found"),
        (checkpoint(run, taskId=command), 400, "can only report checkpoints on trial's tasks"),
        (checkpoint(run, uuid="x"), 400, "checkpoint uuid 'x' is not a UUID"),
        (checkpoint(other, uuid=mine["uuid"]), 409, f"checkpoint '{mine['uuid']}' was reported by another task"),
    ]:
        answer = await owner.post("/api/v1/checkpoints", json=body)
        assert (answer.status_code, error_of(answer)) == (status, message)


@pytest.mark.parametrize(
    ("left", "state", "size"),
    [
        ({}, "DELETED", 105),
        ({"model.pt": 100, "code/": 0, "code/main.py": "5"}, "COMPLETED", 105),
        ({"code/": 0, "code/main.py": 5}, "PARTIALLY_DELETED", 5),
    ],
)
async def test_what_is_left_after_deletion(
    db: Database, client: httpx.AsyncClient, run: Run, left: dict[str, Any], state: str, size: int
) -> None:
    body, untouched = checkpoint(run), checkpoint(run)
    for report in (body, untouched):
        await client.post("/api/v1/checkpoints", json=report)
    patch = {"checkpoints": [{"uuid": body["uuid"], "resources": {"resources": left}}, {"uuid": untouched["uuid"]}]}
    for _ in range(2):
        answer = await client.patch("/api/v1/checkpoints", json=patch)
        assert (answer.status_code, answer.text) == (200, "{}")
    row = await row_of(db, checkpoints, uuid=body["uuid"])
    assert (row.state, row.size_bytes) == (state, size)
    assert (await row_of(db, checkpoints, uuid=untouched["uuid"])).state == "COMPLETED"
    still = (1, 105) if state == "DELETED" else (2, 105 + size)
    assert await counted(db, run) == [still, still]
    what = {"DELETED": "deleted", "PARTIALLY_DELETED": "changed"}.get(state)
    assert len(await announced(db, f"checkpoint.{body['uuid']}.{what}")) == (0 if what is None else 1)


async def test_patching_unknown_checkpoints(client: httpx.AsyncClient) -> None:
    uuids = sorted(str(uuid4()) for _ in range(2))
    patch = {"checkpoints": [{"uuid": uuid, "resources": {}} for uuid in reversed(uuids)]}
    answer = await client.patch("/api/v1/checkpoints", json=patch)
    assert (answer.status_code, error_of(answer)) == (404, f"checkpoints '{', '.join(uuids)}' not found")


async def test_patching_more_of_them_than_a_statement_has_parameters(client: httpx.AsyncClient) -> None:
    patch = {"checkpoints": [{"uuid": str(uuid4()), "resources": {}} for _ in range(33_000)]}
    assert (await client.patch("/api/v1/checkpoints", json=patch)).status_code == 404


async def test_patching_says_nothing_of_files(db: Database, client: httpx.AsyncClient, run: Run) -> None:
    body = checkpoint(run)
    await client.post("/api/v1/checkpoints", json=body)
    known = await client.patch("/api/v1/checkpoints", json={"checkpoints": [{"uuid": body["uuid"]}]})
    assert (known.status_code, (await row_of(db, checkpoints, uuid=body["uuid"])).state) == (200, "COMPLETED")
    stranger = str(uuid4())
    unknown = await client.patch("/api/v1/checkpoints", json={"checkpoints": [{"uuid": stranger}]})
    assert (unknown.status_code, error_of(unknown)) == (404, f"checkpoints '{stranger}' not found")
    assert (await client.patch("/api/v1/checkpoints", json={"checkpoints": [{"uuid": "x"}]})).status_code == 400


async def test_metadata_is_replaced_as_a_whole(db: Database, client: httpx.AsyncClient, run: Run) -> None:
    body = checkpoint(run)
    await client.post("/api/v1/checkpoints", json=body)
    path = f"/api/v1/checkpoints/{body['uuid']}/metadata"
    metadata = {"steps_completed": 100, "note": "best"}
    answer = await client.post(path, json={"checkpoint": {"uuid": body["uuid"], "metadata": metadata}})
    assert answer.status_code == 200
    assert answer.json()["checkpoint"]["metadata"] == metadata
    assert answer.json()["checkpoint"]["resources"] == FILES
    unknown = await client.post(f"/api/v1/checkpoints/{uuid4()}/metadata", json={"checkpoint": {"metadata": {}}})
    assert unknown.status_code == 404
    assert (await client.post(path, json={})).status_code == 400
    assert (await row_of(db, checkpoints, uuid=body["uuid"])).metadata == metadata
