"""What the api says of trials, beside what the reference says of the same."""

from __future__ import annotations

import json
import math
from collections.abc import Callable, Iterable, Mapping
from typing import Any, Final

import asyncpg
import httpx

from tests.integration.api.metrics.reference import ReferenceTrial, Row, number_in
from tests.integration.api.tasks.service import Run

GROUPS: Final = {"avg_metrics": "training", "validation_metrics": "validation"}
AGGREGATES: Final = ("last", "max", "mean", "min")
ROWS: Final = """
SELECT trial_run_id, metric_group, total_batches, kind, metrics::text AS metrics, end_time, archived
  FROM metrics WHERE trial_id = $1
"""
TOLD: Final = "SELECT payload::text FROM searcher_events WHERE trial_id = $1 AND kind = 'validation'"


async def get(client: httpx.AsyncClient, path: str, **query: Any) -> Any:
    answer = await client.get(path, params=query)
    assert answer.status_code == 200, answer.text
    return answer.json()


async def lines(client: httpx.AsyncClient, path: str, **query: Any) -> list[Any]:
    """The messages of a stream that ends."""
    answer = await client.get(path, params=query)
    assert answer.status_code == 200, answer.text
    return [json.loads(line)["result"] for line in answer.text.splitlines()]


async def check_trial(client: httpx.AsyncClient, run: Run, reference: ReferenceTrial) -> None:
    """One trial by itself: summaries, validations, totals, and its reports by run and step."""
    trial = (await get(client, f"/api/v1/trials/{run.trial}"))["trial"]
    assert trial["summaryMetrics"] == reference.summary
    assert trial["totalBatchesProcessed"] == reference.total_batches
    assert _validation(trial["bestValidation"]) == _expected(reference.best_validation)
    assert _validation(trial["latestValidation"]) == _expected(reference.latest_validation)
    best = reference.best_validation
    expected = None if best is None else best.avg[reference.goal]
    assert trial.get("searcherMetricValue") == expected

    for group in ("training", "validation", "custom"):
        messages = await lines(client, "/api/v1/trials/metrics/trial_metrics", trialIds=run.trial, group=group)
        shown = [
            (report["trialRunId"], report["totalBatches"], report["metrics"])
            for message in messages
            for report in message["metrics"]
        ]
        rows = sorted(reference.surviving(group), key=lambda row: row.run)
        assert shown == [(row.run, row.step, row.document) for row in rows]


async def check_rows(driver: asyncpg.Connection, run: Run, reference: ReferenceTrial) -> None:
    """What is stored, archived reports included, and what the search has heard."""
    stored = [
        (
            r["trial_run_id"],
            r["metric_group"],
            r["total_batches"],
            r["kind"],
            r["end_time"],
            r["archived"],
            r["metrics"],
        )
        for r in await driver.fetch(ROWS, run.trial)
    ]
    expected = [(r.run, r.group, r.step, r.kind, r.time, r.archived, r.document) for r in reference.rows]
    assert _sorted((*row[:-1], json.loads(row[-1])) for row in stored) == _sorted(expected)
    told = [json.loads(payload)["metrics"] for (payload,) in await driver.fetch(TOLD, run.trial)]
    assert _sorted(told) == _sorted(reference.told)


async def check_lists(
    client: httpx.AsyncClient, *, project: int, experiment: int, trials: Mapping[int, ReferenceTrial]
) -> None:
    """Lists, sorts, filters and charts of an experiment that is over, alone in its project."""
    listed = await get(client, f"/api/v1/experiments/{experiment}/trials", sortBy="SORT_BY_BATCHES_PROCESSED")
    expected = sorted(trials, key=lambda ident: (trials[ident].total_batches, ident))
    assert [trial["id"] for trial in listed["trials"]] == expected
    compared = await get(client, "/api/v1/trials/time-series", trialIds=expected, metricNames=["loss"])
    totals = [each["trial"]["totalBatchesProcessed"] for each in compared["trials"]]
    assert totals == [trials[ident].total_batches for ident in expected]
    for trial in listed["trials"]:
        assert trial["summaryMetrics"] == trials[trial["id"]].summary

    for column, descending in [("training.loss.max", True), ("validation.loss.min", False), ("custom.loss.mean", True)]:
        found = await _search(client, project, sort=f"{column}={'desc' if descending else 'asc'}")
        values = {ident: _aggregate(reference, column) for ident, reference in trials.items()}
        assert [run["id"] for run in found] == _ordered(values, descending=descending), column
    for run in found:
        assert run["summaryMetrics"] == trials[run["id"]].summary

    column = "training.loss.mean"
    bound = {"columnName": column, "location": "LOCATION_TYPE_TRAINING", "type": "COLUMN_TYPE_NUMBER"}
    more = {**bound, "kind": "field", "operator": ">=", "value": 0}
    conditions = {"filterGroup": {"kind": "group", "conjunction": "and", "children": [more]}, "showArchived": True}
    found = await _search(client, project, filter=json.dumps(conditions))
    values = {ident: _aggregate(reference, column) for ident, reference in trials.items()}
    # PostgreSQL has NaN greater than all numbers.
    enough = [ident for ident, value in values.items() if value is not None and (math.isnan(value) or value >= 0)]
    assert [run["id"] for run in found] == sorted(enough)

    names = {
        (GROUPS.get(key, key), name) for t in trials.values() for key, group in t.summary.items() for name in group
    }
    messages = await lines(client, "/api/v1/experiments/metrics-stream/metric-names", ids=experiment, periodSeconds=1)
    shown = [(pair["group"], pair["name"]) for message in messages for pair in message["metricNames"]]
    assert sorted(shown) == sorted(names)

    columns = await get(client, f"/api/v1/projects/{project}/columns", tableType="TABLE_TYPE_RUN")
    shown_columns = {column["column"] for column in columns["columns"] if column["location"] in _METRIC_LOCATIONS}
    assert shown_columns == _columns(trials.values())


async def check_ranges(client: httpx.AsyncClient, *, project: int, best: ReferenceTrial) -> None:
    """Ranges of a project with one experiment, whose best trial is ``best``: each of one value."""
    shown = (await get(client, f"/api/v1/projects/{project}/experiments/metric-ranges"))["ranges"]
    expected = {}
    for key, group in best.summary.items():
        for name, summary in group.items():
            for aggregate in AGGREGATES if summary["type"] == "number" else ():
                value = number_in(summary.get(aggregate))
                if value is not None and math.isfinite(value):
                    expected[f"{GROUPS.get(key, key)}.{name}.{aggregate}"] = value
    goal = best.best_validation
    reached = None if goal is None else number_in(goal.avg[best.goal])
    if reached is not None and math.isfinite(reached):
        expected["searcherMetricsVal"] = reached
    assert {item["metricsName"]: item["min"] for item in shown} == expected
    assert {item["metricsName"]: item["max"] for item in shown} == expected


_METRIC_LOCATIONS: Final = ("LOCATION_TYPE_TRAINING", "LOCATION_TYPE_VALIDATIONS", "LOCATION_TYPE_CUSTOM_METRIC")


async def _search(client: httpx.AsyncClient, project: int, **request: Any) -> list[Any]:
    answer = await client.post("/api/v1/runs", json={"projectId": project, "limit": 1000, **request})
    assert answer.status_code == 200, answer.text
    runs: list[Any] = answer.json()["runs"]
    return runs


def _aggregate(reference: ReferenceTrial, column: str) -> float | None:
    group, name, aggregate = column.split(".")
    key = {"training": "avg_metrics", "validation": "validation_metrics"}.get(group, group)
    return number_in(reference.summary.get(key, {}).get(name, {}).get(aggregate))


def _ordered(values: Mapping[int, float | None], *, descending: bool) -> list[int]:
    """None comes last whichever way, NaN is greater than all numbers; ids decide between equals."""
    known = [(ident, value) for ident, value in values.items() if value is not None]
    sign = -1 if descending else 1
    known.sort(key=lambda pair: (sign * math.isnan(pair[1]), 0 if math.isnan(pair[1]) else sign * pair[1], pair[0]))
    return [ident for ident, _ in known] + sorted(ident for ident, value in values.items() if value is None)


def _columns(trials: Iterable[ReferenceTrial]) -> set[str]:
    types: dict[tuple[str, str], set[str]] = {}
    for trial in trials:
        for key, group in trial.summary.items():
            for name, summary in group.items():
                types.setdefault((GROUPS.get(key, key), name), set()).add(summary["type"])
    return {
        f"{group}.{name}.{aggregate}"
        for (group, name), kinds in types.items()
        for aggregate in (AGGREGATES if kinds == {"number"} else ("last",))
    }


def _validation(shown: Any) -> Any:
    return None if shown is None else (shown["totalBatches"], shown["metrics"]["avgMetrics"])


def _expected(row: Row | None) -> Any:
    return None if row is None else (row.step, row.avg)


def _sorted(rows: Iterable[Any]) -> list[Any]:
    key: Callable[[Any], str] = lambda row: json.dumps(row, sort_keys=True, default=str)  # noqa: E731
    return sorted(rows, key=key)
