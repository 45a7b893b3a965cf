"""Metrics through the whole api: what is stored, what the trial amounts to, what the search hears."""

from __future__ import annotations

import asyncio
from typing import Any

import httpx
import pytest
from sqlalchemy import text

from libs.bus import Bus
from libs.clock import SystemClock
from libs.db.engine import Database, driver_connection
from libs.db.tables.experiments import experiments, searcher_events
from libs.db.tables.metrics import metrics
from libs.db.tables.trials import trials
from services.api.metrics.rows.settling import settle
from services.api.metrics.writer import ToRows
from tests.harness import FakeClock, eventually
from tests.harness.app import always, never
from tests.integration.api.tasks.service import (
    CONFIG,
    Replica,
    Run,
    announced,
    error_of,
    new_experiment,
    new_run,
    replica,
    row_of,
    rows_of,
    set_trial,
)
from tests.unit.api.metrics.test_rollback import SEQUENCE

BOTH_FORMS = pytest.mark.parametrize("to_rows", [always, never])


async def report(
    client: httpx.AsyncClient,
    run: Run,
    group: str = "training",
    step: int | None = 1,
    *,
    run_id: int = 1,
    batches: list[Any] | None = None,
    time: str | None = None,
    **avg: Any,
) -> httpx.Response:
    """A report as the harness sends it: nulls included, no content type."""
    body = {
        "group": group,
        "metrics": {
            "trialId": run.trial,
            "trialRunId": run_id,
            "stepsCompleted": step,
            "reportTime": time,
            "metrics": {"avgMetrics": avg, "batchMetrics": batches},
        },
    }
    return await client.post(f"/api/v1/trials/{run.trial}/metrics", content=httpx.Response(200, json=body).content)


async def accepted(*args: Any, **kwargs: Any) -> None:
    answer = await report(*args, **kwargs)
    assert (answer.status_code, answer.text) == (200, "{}"), answer.text


async def settled(db: Database, run: Run) -> Any:
    """The row of a trial, once it has all that was reported, in whichever form the summary is."""
    async with db.read() as connection:
        await settle(await driver_connection(connection), run.trial)
    return await row_of(db, trials, id=run.trial)


async def stored(db: Database, run: Run, **key: Any) -> list[Any]:
    return sorted(await rows_of(db, metrics, trial_id=run.trial, **key), key=lambda row: row.id)


@BOTH_FORMS
async def test_a_report_is_stored_and_summed_up(
    db: Database, client: httpx.AsyncClient, run: Run, clock: FakeClock
) -> None:
    await accepted(client, run, step=100, batches=[{"loss": 0.5}], loss=0.25, lr="NaN")
    await accepted(client, run, step=200, loss=0.75)
    first, second = await stored(db, run)
    assert first.metrics == {"avg_metrics": {"loss": 0.25, "lr": "NaN"}, "batch_metrics": [{"loss": 0.5}]}
    assert (first.kind, first.metric_group, first.total_batches, first.trial_run_id) == ("TRAINING", "training", 100, 1)
    assert first.end_time == clock.now()
    assert second.metrics == {"avg_metrics": {"loss": 0.75}, "batch_metrics": None}
    trial = await settled(db, run)
    assert trial.total_batches == 200
    loss = trial.summary_metrics["avg_metrics"]["loss"]
    assert loss == {"type": "number", "count": 2, "sum": 1.0, "min": 0.25, "max": 0.75, "mean": 0.5, "last": 0.75}
    assert "last" not in trial.summary_metrics["avg_metrics"]["lr"]


async def test_validations_feed_the_search_once(db: Database, client: httpx.AsyncClient, run: Run) -> None:
    await accepted(client, run, "training", 10, loss=1.0)
    await accepted(client, run, "validation", 10, loss=0.5, acc=0.9)
    await accepted(client, run, "validation", 10, loss=0.5, acc=0.9)  # the answer to the first was lost
    await accepted(client, run, "validation", 20, loss=0.7)
    _, best, latest = await stored(db, run)
    trial = await row_of(db, trials, id=run.trial)
    assert (trial.best_validation_id, trial.latest_validation_id) == (best.id, latest.id)
    assert (trial.searcher_metric_value, trial.searcher_metric_signed) == (0.5, 0.5)
    assert (await row_of(db, experiments, id=run.experiment)).best_trial_id == run.trial
    events = await rows_of(db, searcher_events, experiment_id=run.experiment)
    assert [(event.trial_id, event.kind, event.payload) for event in events] == [
        (run.trial, "validation", {"metrics": {"loss": 0.5, "acc": 0.9}}),
        (run.trial, "validation", {"metrics": {"loss": 0.7}}),
    ]
    assert len(await announced(db, f"experiment.{run.experiment}.searcher")) == 2


@pytest.mark.parametrize(("state", "unmanaged"), [("COMPLETED", False), ("RUNNING", True)])
async def test_no_search_hears_what_no_search_started(db: Database, api: Replica, state: str, unmanaged: bool) -> None:
    run = await new_run(db, experiment=await new_experiment(db, state=state, unmanaged=unmanaged))
    async with api.client(headers=run.headers) as client:
        await accepted(client, run, "validation", 10, loss=0.5)
    assert (await row_of(db, trials, id=run.trial)).searcher_metric_value == 0.5
    assert await rows_of(db, searcher_events, experiment_id=run.experiment) == []


async def test_the_best_trial_is_that_of_the_best_value(db: Database, api: Replica) -> None:
    searcher = {**CONFIG["searcher"], "metric": "acc", "smaller_is_better": False}
    experiment = await new_experiment(db, config={**CONFIG, "searcher": searcher})
    one, other = await new_run(db, experiment=experiment), await new_run(db, experiment=experiment)
    path = f"/api/v1/experiments/{experiment}/searcher/best_searcher_validation_metric"
    async with api.client(headers=one.user_headers) as client:
        answer = await client.get(path)
        assert (answer.status_code, error_of(answer)) == (404, "no validations for experiment")
        for run, step, acc, best in [
            (one, 1, 0.5, one),
            (other, 1, 0.6, other),
            (one, 2, "NaN", other),
            (one, 3, 0.1 + 0.2, other),
            (one, 4, 0.9, one),
            (one, 5, 0.1, one),
        ]:
            await accepted(client, run, "validation", step, acc=acc)
            assert (await row_of(db, experiments, id=experiment)).best_trial_id == best.trial
        assert (await client.get(path)).json() == {"metric": 0.9}
        assert (
            await client.get("/api/v1/experiments/99999/searcher/best_searcher_validation_metric")
        ).status_code == 404
    assert (await row_of(db, trials, id=one.trial)).searcher_metric_signed == -0.9


@BOTH_FORMS
async def test_the_sequence_of_roll_backs(db: Database, client: httpx.AsyncClient, run: Run) -> None:
    taken_back = 0
    for group, run_id, step, total, back in SEQUENCE:
        await set_trial(db, run.trial, run_id=run_id)
        await accepted(client, run, group, step, run_id=run_id, loss=float(step), **{f"of_run_{run_id}": 1})
        archived = len(await stored(db, run, archived=True))
        assert archived - taken_back == back, (group, run_id, step)
        taken_back = archived
        assert (await settled(db, run)).total_batches == total
    trial, live = await settled(db, run), await stored(db, run, archived=False)
    validations = [row for row in live if row.kind == "VALIDATION"]
    assert [row.total_batches for row in validations] == [10, 20, 25, 27]
    assert trial.latest_validation_id == validations[-1].id
    assert (trial.best_validation_id, trial.searcher_metric_value) == (validations[0].id, 10.0)
    # Recomputed: nothing is left of what was taken back.
    summary = trial.summary_metrics
    assert summary["validation_metrics"]["loss"]["count"] == 4
    assert summary["validation_metrics"]["loss"]["last"] == 27.0
    assert summary["avg_metrics"]["loss"]["count"] == len([row for row in live if row.kind == "TRAINING"])
    assert "of_run_1" not in summary["avg_metrics"]
    assert summary["golabi"]["loss"]["max"] == 27.0


async def test_a_training_report_can_take_back_the_best_validation(
    db: Database, owner: httpx.AsyncClient, run: Run
) -> None:
    other = await new_run(db, experiment=run.experiment)
    await accepted(owner, other, "validation", 1, loss=2.0)
    await accepted(owner, run, "validation", 5, loss=3.0)
    await accepted(owner, run, "validation", 20, loss=1.0)
    assert (await row_of(db, experiments, id=run.experiment)).best_trial_id == run.trial
    await set_trial(db, run.trial, run_id=2)
    await accepted(owner, run, "training", 10, run_id=2, loss=1.0)
    trial = await settled(db, run)
    assert (trial.searcher_metric_value, trial.total_batches) == (3.0, 10)
    assert trial.best_validation_id == trial.latest_validation_id
    assert (await row_of(db, experiments, id=run.experiment)).best_trial_id == other.trial


async def test_a_step_may_be_reported_in_parts(db: Database, client: httpx.AsyncClient, run: Run) -> None:
    await accepted(client, run, "validation", 10, acc=1)
    assert (await row_of(db, trials, id=run.trial)).best_validation_id is None
    await accepted(client, run, "validation", 10, loss=0.5)
    (row,) = await stored(db, run)
    assert row.metrics == {"validation_metrics": {"acc": 1, "loss": 0.5}}
    assert (await row_of(db, trials, id=run.trial)).best_validation_id == row.id
    last = (await rows_of(db, searcher_events, experiment_id=run.experiment))[-1]
    assert last.payload == {"metrics": {"acc": 1, "loss": 0.5}}
    answer = await report(client, run, "validation", 10, loss=0.6)
    assert answer.status_code == 400
    assert error_of(answer) == "overwriting existing metric keys is not supported, conflicting key: loss"


async def test_an_exact_duplicate_with_batch_metrics_succeeds(
    db: Database, client: httpx.AsyncClient, run: Run
) -> None:
    for _ in range(2):
        await accepted(client, run, step=5, batches=[{"loss": 1}], loss=1)
    (row,) = await stored(db, run)
    assert row.metrics["batch_metrics"] == [{"loss": 1}]
    assert (await settled(db, run)).summary_metrics["avg_metrics"]["loss"]["count"] == 1
    answer = await report(client, run, step=5, batches=[{"loss": 2}], loss=1)
    assert (answer.status_code, error_of(answer)) == (400, "overwriting batch metrics is not supported")


@BOTH_FORMS
async def test_profiling_is_stored_as_it_comes(db: Database, client: httpx.AsyncClient, run: Run) -> None:
    await accepted(client, run, step=50, loss=1)
    sample = {"node-1": {"gpu-1": {"gpu_util": 0.5}}}
    for _ in range(2):  # the second is the first, repeated
        await accepted(client, run, "gpu", None, time="2030-01-01T00:00:00.5+00:00", **sample)
    await accepted(client, run, "gpu", None, time="2030-01-01T00:00:01.5+00:00", **sample)
    rows = await stored(db, run, kind="PROFILING")
    assert [(row.metrics, row.total_batches) for row in rows] == [(sample, None)] * 2
    trial = await settled(db, run)
    assert (trial.total_batches, set(trial.summary_metrics)) == (50, {"avg_metrics"})
    await set_trial(db, run.trial, run_id=2)
    await accepted(client, run, step=10, run_id=2, loss=1)
    assert len(await stored(db, run, archived=True)) == 1  # profiling is never taken back


async def test_a_search_hears_nothing_of_a_report_that_is_refused(
    db: Database, client: httpx.AsyncClient, run: Run
) -> None:
    await accepted(client, run, "validation", 10, loss=0.5)
    for refused in (
        await report(client, run, "validation", 20, run_id=2, loss=0.1),
        await report(client, run, "validation", 10, loss=0.1),
        await report(client, run, "validation", 20, epoch="one", loss=0.1),
    ):
        assert refused.status_code == 400
    heard = await rows_of(db, searcher_events, experiment_id=run.experiment)
    assert [event.payload for event in heard] == [{"metrics": {"loss": 0.5}}]
    assert (await row_of(db, trials, id=run.trial)).searcher_metric_value == 0.5


async def test_reports_that_are_refused(owner: httpx.AsyncClient, run: Run) -> None:
    refused = [
        (
            await report(owner, run, run_id=2, loss=1),
            "invalid run id, 2 (reported) != 1 (expected): invalid arguments",
        ),
        (await report(owner, run, "", loss=1), "metric group cannot be empty"),
        (await report(owner, run, "a.b", loss=1), "metric group cannot contain '.'"),
        (await report(owner, run, epoch="one"), "cannot add metric with non numeric 'epoch' value got one"),
    ]
    for answer, message in refused:
        assert (answer.status_code, error_of(answer)) == (400, message)
    unknown = await owner.post("/api/v1/trials/99999/metrics", json={"group": "training", "metrics": {}})
    assert (unknown.status_code, error_of(unknown)) == (404, "trial '99999' not found")
    assert (await owner.post("/api/v1/trials/x/metrics")).status_code == 400


def nested(depth: int) -> Any:
    return [nested(depth - 1)] if depth else 1


@pytest.mark.parametrize(
    ("part", "value", "text"),
    [
        ("avgMetrics", [1], "avgMetrics"),
        ("avgMetrics", "text", "avgMetrics"),
        ("avgMetrics", {"loss": nested(150)}, "nested deeper than 100 levels"),
        ("batchMetrics", {"loss": 1}, "batchMetrics"),
        ("batchMetrics", [1], "batchMetrics"),
    ],
)
async def test_reports_of_another_shape_store_nothing(
    db: Database, owner: httpx.AsyncClient, run: Run, part: str, value: Any, text: str
) -> None:
    shapeless = {"trialRunId": 1, "stepsCompleted": 3, "metrics": {"avgMetrics": {"loss": 1}, part: value}}
    for path, body in (
        ("metrics", {"group": "training", "metrics": shapeless}),
        ("training_metrics", shapeless),
        ("validation_metrics", shapeless),
    ):
        answer = await owner.post(f"/api/v1/trials/{run.trial}/{path}", json=body)
        assert answer.status_code == 400, (path, answer.text)
        assert text in error_of(answer), path
    assert await stored(db, run) == []
    assert await rows_of(db, searcher_events, experiment_id=run.experiment) == []


async def test_a_bad_report_does_not_fail_its_neighbours(db: Database, bus: Bus, clock: FakeClock) -> None:
    many = [await new_run(db) for _ in range(8)]
    async with replica(db, bus, clock) as api, api.client(headers=many[0].user_headers) as client:
        # A moment before all moments: decoded without complaint, and refused when it is written.
        sent = [
            report(client, run, step=1, loss=1, **({"time": "0001-01-01T00:00:00+14:00"} if n == 3 else {}))
            for n, run in enumerate(many)
        ]
        answers = await asyncio.gather(*sent)
    assert [answer.status_code for answer in answers] == [200, 200, 200, 400, 200, 200, 200, 200]
    assert [len(await stored(db, run)) for run in many] == [1, 1, 1, 0, 1, 1, 1, 1]


@BOTH_FORMS
async def test_many_reports_at_once_share_commits_and_lose_nothing(db: Database, live_api: Replica) -> None:
    many = [await new_run(db) for _ in range(16)]
    async with live_api.client(headers=many[0].user_headers) as client:

        async def train(run: Run) -> None:
            for step in range(1, 11):
                await accepted(client, run, step=step, loss=step)
                if step % 5 == 0:
                    await accepted(client, run, "validation", step, loss=step)

        await asyncio.gather(*(train(run) for run in many))
    for run in many:
        trial = await settled(db, run)
        assert len(await stored(db, run)) == 12
        assert trial.summary_metrics["avg_metrics"]["loss"]["sum"] == 55
        assert (trial.total_batches, trial.searcher_metric_value) == (10, 5)


@BOTH_FORMS
async def test_replicas_do_not_trust_what_they_remember_of_a_trial(
    db: Database, bus: Bus, clock: FakeClock, to_rows: ToRows
) -> None:
    run = await new_run(db)
    async with (
        replica(db, bus, clock, to_rows=to_rows) as one,
        replica(db, bus, clock, to_rows=to_rows) as other,
        one.client(headers=run.headers) as first,
        other.client(headers=run.headers) as second,
    ):
        for step in range(1, 5):
            for client in (first, first, second):
                await accepted(client, run, f"g{step % 2}", step, loss=step)  # the second is a repetition
            await accepted(second, run, "g0", 10 * step, loss=1)
        await set_trial(db, run.trial, runner_state="training")
        await accepted(first, run, "g0", 50, loss=7)
        await accepted(first, run, "g0", 60, loss=8)
        await set_trial(db, run.trial, run_id=2)
        assert (await report(first, run, "g0", 70, loss=9)).status_code == 400
        await accepted(first, run, "g0", 55, run_id=2, loss=10)
    trial = await settled(db, run)
    live = await stored(db, run, archived=False)
    for group in ("g0", "g1"):
        losses = [row.metrics["avg_metrics"]["loss"] for row in live if row.metric_group == group]
        loss = trial.summary_metrics[group]["loss"]
        assert (loss["count"], loss["sum"], loss["max"]) == (len(losses), sum(losses), max(losses))
    assert trial.total_batches == 55
    assert trial.summary_metrics["g0"]["loss"]["last"] == 10


async def test_a_locked_trial_keeps_only_its_own_reports_waiting(db: Database, bus: Bus, clock: FakeClock) -> None:
    held, free = await new_run(db), await new_run(db)
    async with replica(db, bus, clock, to_rows=never) as api, api.client(headers=free.user_headers) as client:
        for run in (held, free):
            await accepted(client, run, step=1, loss=1)
        async with db.transaction() as connection:
            await connection.execute(text("SELECT FROM trials WHERE id = :id FOR UPDATE"), {"id": held.trial})
            waiting = asyncio.create_task(report(client, held, step=2, loss=2))
            for step in range(2, 8):
                await asyncio.wait_for(accepted(client, free, step=step, loss=step), 10)
            assert not waiting.done()
        assert (await asyncio.wait_for(waiting, 60)).status_code == 200
    assert [len(await stored(db, run)) for run in (held, free)] == [2, 7]
    assert (await settled(db, held)).summary_metrics["avg_metrics"]["loss"]["sum"] == 3


@BOTH_FORMS
async def test_what_others_change_in_a_trial_meanwhile_is_kept(db: Database, live_api: Replica) -> None:
    many = [await new_run(db) for _ in range(4)]
    changes = 0

    async def change() -> None:
        nonlocal changes
        while True:
            changes += 1
            for run in many:
                await set_trial(db, run.trial, restarts=changes)

    async with live_api.client(headers=many[0].user_headers) as client:

        async def train(run: Run) -> None:
            for step in range(1, 26):
                await accepted(client, run, step=step, loss=step)

        changing = asyncio.create_task(change())
        await asyncio.gather(*(train(run) for run in many))
        changing.cancel()
        await asyncio.gather(changing, return_exceptions=True)
    for run in many:
        trial = await settled(db, run)
        assert len(await stored(db, run)) == 25
        assert (trial.total_batches, trial.summary_metrics["avg_metrics"]["loss"]["sum"]) == (25, 325)
        assert trial.restarts >= changes - 1 > 0


async def test_reports_of_one_trial_at_once_are_taken_one_after_the_other(
    db: Database, client: httpx.AsyncClient, run: Run
) -> None:
    answers = await asyncio.gather(*(report(client, run, step=step % 4, **{f"m{step}": 1}) for step in range(16)))
    assert {answer.status_code for answer in answers} == {200}
    rows = await stored(db, run)
    assert sorted(row.total_batches for row in rows) == [0, 1, 2, 3]
    assert all(len(row.metrics["avg_metrics"]) == 4 for row in rows)
    assert len((await settled(db, run)).summary_metrics["avg_metrics"]) == 16


async def test_training_is_announced_now_and_then_and_the_last_word_is_heard(
    db: Database, bus: Bus, monkeypatch: pytest.MonkeyPatch
) -> None:
    now_s = 100.0  # however long the reports take
    monkeypatch.setattr("services.api.metrics.writer._now_s", lambda: now_s)
    run = await new_run(db)
    async with replica(db, bus, SystemClock()) as api, api.client(headers=run.headers) as client:
        for step in range(1, 21):
            await accepted(client, run, step=step, loss=1)
        said = len(await announced(db, f"trial.{run.trial}.metrics"))
        assert said <= 2
        now_s += 2

        async def last_word() -> bool:
            return len(await announced(db, f"trial.{run.trial}.metrics")) == said + 1

        await eventually(last_word)


async def test_a_database_that_restarts_costs_a_repetition(
    db: Database, client: httpx.AsyncClient, run: Run, database_url: str
) -> None:
    await accepted(client, run, step=1, loss=1)
    async with db.transaction() as tx:
        await tx.execute(
            text(
                "SELECT pg_terminate_backend(pid) FROM pg_stat_activity"
                " WHERE datname = current_database() AND pid <> pg_backend_pid()"
            )
        )

    async def repeated() -> bool:
        answer = await report(client, run, step=2, loss=1)
        assert answer.status_code in (200, 503)
        assert answer.status_code == 200 or "retry-after" in answer.headers
        return answer.status_code == 200

    await eventually(repeated)
    assert [row.total_batches for row in await stored(db, run)] == [1, 2]


async def test_legacy_routes(db: Database, client: httpx.AsyncClient, run: Run) -> None:
    body = {"trialRunId": 1, "stepsCompleted": 3, "metrics": {"avgMetrics": {"loss": 1}}}
    for group in ("training", "validation"):
        answer = await client.post(f"/api/v1/trials/{run.trial}/{group}_metrics", json=body)
        assert (answer.status_code, answer.text) == (200, "{}")
    assert [row.metric_group for row in await stored(db, run)] == ["training", "validation"]


async def test_snake_case_and_protobuf_spellings(db: Database, client: httpx.AsyncClient, run: Run) -> None:
    body = {
        "group": "training",
        "metrics": {"trial_run_id": "1", "steps_completed": 7, "metrics": {"avg_metrics": {"a": 1}}},
    }
    assert (await client.post(f"/api/v1/trials/{run.trial}/metrics", json=body)).status_code == 200
    assert [row.total_batches for row in await stored(db, run)] == [7]
