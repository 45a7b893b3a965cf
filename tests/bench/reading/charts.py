"""Charts: processor for series of which few points are shown, and series beside much that is not asked for.

The baseline of a row is the same request where there is little else: trials with just the points that are shown, a
trial of ten names, a series of a tenth of the length.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from dataclasses import dataclass
from statistics import quantiles
from typing import Any, Final

import asyncpg
import msgspec

from tests.bench.cpu import cpu_s, workers_cpu_s
from tests.bench.reading.reads import milliseconds
from tests.bench.result import Result
from tests.bench.rows import keep_in_rows
from tests.bench.system import BenchSystem
from tests.harness.raw_http import RawConnection

TRIALS: Final = 5
POINTS: Final = 10_000
SHOWN: Final = 200
LONG: Final = 100_000
LONGEST: Final = 1_000_000
WIDE: Final = 100_000
NARROW: Final = 10
PIXELS: Final = 1000
LISTED: Final = 40
FACTOR: Final = 1.5
_SPENT_TIMES: Final = 60
_TIMES: Final = 40
_LONG_TIMES: Final = 20
_SERIES: Final = "/api/v1/trials/time-series"
_NAMES: Final = "/api/v1/resolute/trials/{}/metric-names"


@dataclass(frozen=True)
class BenchSeries:
    """Ids of trials: ``few`` have SHOWN points each, ``many`` POINTS; and of experiments with LISTED trials each."""

    few: list[int]
    many: list[int]
    short: int
    long: int
    longest: int
    narrow: int
    wide: int
    narrow_list: int
    wide_list: int


async def measure(system: BenchSystem) -> list[Result]:
    rows = await insert_series(system.database_url)
    api = await RawConnection.open(system.options.master_url, {"Authorization": f"Bearer {system.log_in()}"})
    results = [
        *await _processor(system, api, rows),
        await _compare(
            api,
            f"one chart of a trial of {WIDE:,} names beside one of {NARROW}",
            [api.get_request(_chart([trial])) for trial in (rows.narrow, rows.wide)],
            _TIMES,
            goal=FACTOR,
        ),
        *await _long_series(api, rows),
        await _compare(
            api,
            f"a list of {LISTED} runs with one of {WIDE:,} names beside one without",
            [api.request("/api/v1/runs", _runs_of(experiment)) for experiment in (rows.narrow_list, rows.wide_list)],
            _TIMES,
            goal=None,
        ),
        await _compare(
            api,
            f"a page of the names of a trial of {WIDE:,} beside one of {NARROW}",
            [api.get_request(f"{_NAMES.format(trial)}?text=9") for trial in (rows.narrow, rows.wide)],
            _TIMES,
            goal=None,
        ),
    ]
    api.close()
    return results


async def _long_series(api: RawConnection, rows: BenchSeries) -> list[Result]:
    """Whole and in part; what is asked for the first time makes its levels."""
    series = {rows.long: LONG, rows.longest: LONGEST}
    several = [api.get_request(f"{_chart([trial], PIXELS)}&metricNames=accuracy") for trial in series]
    filtered = [
        api.get_request(
            f"{_chart([trial], PIXELS)}&timeSeriesFilter.name=batches&timeSeriesFilter.integerRange.gt={points}"
        )
        for trial, points in series.items()
    ]
    short = api.get_request(_chart([rows.short], PIXELS))
    whole = [api.get_request(_chart([trial], PIXELS)) for trial in series]
    # From a sixth to five sixths, in steps of ten.
    parts = [
        api.get_request(f"{_chart([trial], PIXELS)}&startBatches={points * 10 // 6}&endBatches={points * 50 // 6}")
        for trial, points in series.items()
    ]
    first = [await milliseconds(lambda: api.send(request)) for request in whole]  # noqa: B023
    for request in several:
        await api.send(request)
    return [
        Result(
            name=f"the first chart of {LONGEST:,} points beside {LONG:,}, with their levels",
            value=first[1],
            unit="ms",
            baseline=first[0],
            goal=None,
            better="lower",
        ),
        await _compare(api, f"{LONGEST:,} points at {PIXELS} pixels beside {LONG:,}", whole, _LONG_TIMES, goal=FACTOR),
        await _compare(
            api, f"two thirds of {LONGEST:,} points at {PIXELS} pixels beside {LONG:,}", parts, _LONG_TIMES, goal=FACTOR
        ),
        await _compare(api, f"two metrics of {LONGEST:,} points beside {LONG:,}", several, _LONG_TIMES, goal=FACTOR),
        await _compare(
            api, f"{LONGEST:,} points from some batch on beside {LONG:,}", filtered, _LONG_TIMES, goal=FACTOR
        ),
        await _compare(
            api, f"{LONGEST:,} points at {PIXELS} pixels beside {PIXELS:,}", [short, whole[1]], _LONG_TIMES, goal=None
        ),
    ]


async def _processor(system: BenchSystem, api: RawConnection, rows: BenchSeries) -> list[Result]:
    pids = system.pids()
    found: dict[str, list[float]] = {}
    for trials in (rows.few, rows.many):
        request = api.get_request(_chart(trials))
        await api.send(request)
        for what, cost in (await _spent_ms(lambda: api.send(request), pids)).items():  # noqa: B023
            found.setdefault(what, []).append(cost)
    return [
        Result(
            name=f"charts of {TRIALS} trials of {POINTS:,} points, processor of the {what}",
            value=value,
            unit="ms",
            baseline=baseline,
            goal=None,
            better="lower",
        )
        for what, (baseline, value) in found.items()
    ]


async def _spent_ms(work: Callable[[], Awaitable[Any]], pids: dict[str, int]) -> dict[str, float]:
    """Processor time of one request, in the api and in the database."""

    def spent() -> dict[str, float]:
        return {"api": cpu_s(pids["api"]), "database": workers_cpu_s(pids["postgres"])}

    before = spent()
    for _ in range(_SPENT_TIMES):
        await work()
    return {what: (after - before[what]) * 1e3 / _SPENT_TIMES for what, after in spent().items()}


async def _compare(api: RawConnection, name: str, requests: list[bytes], times: int, *, goal: float | None) -> Result:
    """In turns; the fastest tenth is of moments in which the machine does little else."""
    taken: list[list[float]] = [[], []]
    for _ in range(times):
        for request, each in zip(requests, taken, strict=True):
            each.append(await milliseconds(lambda: api.send(request)))  # noqa: B023
    baseline, value = (quantiles(each, n=10)[0] for each in taken)
    return Result(
        name=f"{name}, a tenth is faster", value=value, unit="ms", baseline=baseline, goal=goal, better="lower"
    )


def _runs_of(experiment: int) -> bytes:
    of_experiment = {
        "kind": "field",
        "columnName": "experimentId",
        "operator": "=",
        "value": experiment,
        "location": "LOCATION_TYPE_RUN",
        "type": "COLUMN_TYPE_NUMBER",
    }
    wanted = {"filterGroup": {"kind": "group", "conjunction": "and", "children": [of_experiment]}, "showArchived": True}
    return msgspec.json.encode({"projectId": 1, "limit": LISTED, "filter": msgspec.json.encode(wanted).decode()})


def _chart(trials: list[int], pixels: int = SHOWN) -> str:
    asked = "&".join(f"trialIds={trial}" for trial in trials)
    return f"{_SERIES}?{asked}&metricNames=loss&group=training&maxDatapoints={pixels}"


async def insert_series(url: str) -> BenchSeries:
    """Trials of an experiment that is over, so that no scheduler touches them."""
    connection = await asyncpg.connect(url)
    try:
        experiment = await _experiment(connection)
        lists = [await _experiment(connection) for _ in range(2)]
        for each in lists:
            for _ in range(LISTED - 1):
                await _trial(connection, each, points=1, names=NARROW)
        for each, names in zip(lists, (NARROW, WIDE), strict=True):
            await _trial(connection, each, points=1, names=names)
        series = BenchSeries(
            few=[await _trial(connection, experiment, points=SHOWN, names=1) for _ in range(TRIALS)],
            many=[await _trial(connection, experiment, points=POINTS, names=1) for _ in range(TRIALS)],
            short=await _trial(connection, experiment, points=PIXELS, names=1),
            long=await _trial(connection, experiment, points=LONG, names=1),
            longest=await _trial(connection, experiment, points=LONGEST, names=1),
            narrow=await _trial(connection, experiment, points=POINTS, names=NARROW),
            wide=await _trial(connection, experiment, points=POINTS, names=WIDE),
            narrow_list=lists[0],
            wide_list=lists[1],
        )
        await keep_in_rows(connection)
        await connection.execute("VACUUM ANALYZE", timeout=300)
    finally:
        await connection.close()
    return series


async def _experiment(connection: asyncpg.Connection) -> int:
    ident = await connection.fetchval(
        """INSERT INTO experiments (state, config, original_config, owner_id, project_id, job_id, progress,
                                    start_time, end_time)
           VALUES ('COMPLETED', '{"searcher": {"name": "random", "metric": "loss"}, "max_restarts": 5}',
                   'name: charts', 2, 1, gen_random_uuid()::text, 1, now() - interval '2 hours', now())
           RETURNING id"""
    )
    return int(ident)


async def _trial(connection: asyncpg.Connection, experiment: int, *, points: int, names: int) -> int:
    """The id of a trial that has reported ``loss`` in steps of ten, and ``names`` others that stand in its summary."""
    trial = await connection.fetchval(
        """INSERT INTO trials (experiment_id, project_id, local_id, request_id, hparams, state, run_id, start_time,
                               end_time, total_batches, summary_metrics)
           SELECT $1, 1, (SELECT coalesce(max(local_id), 0) + 1 FROM trials WHERE project_id = 1),
                  gen_random_uuid()::text, '{"lr": 0.1}', 'COMPLETED', 1, now() - interval '2 hours', now(), $2 * 10,
                  jsonb_build_object('avg_metrics', (
                      SELECT jsonb_object_agg('layers.' || n, jsonb_build_object(
                             'type', 'number', 'count', 100, 'min', 0.001, 'max', 1.5, 'sum', 90, 'mean', 0.9,
                             'last', 0.7))
                        FROM generate_series(1, $3::int) n))
           RETURNING id""",
        experiment,
        points,
        names,
    )
    await connection.execute(
        """INSERT INTO metrics (trial_id, trial_run_id, metric_group, kind, total_batches, end_time, metrics)
           SELECT $1::bigint, 1, 'training', 'TRAINING', n * 10, now() + n * interval '1.234567 second',
                  jsonb_build_object('avg_metrics', jsonb_build_object(
                      'loss', 1.0::float8 / n + (abs(hashint4(n)) % 1000) / 100000.0::float8,
                      'accuracy', (abs(hashint4(n + 5)) % 100000) / 100000.0::float8, 'lr', 0.001, 'epoch', n / 100))
             FROM generate_series(1, $2::int) n""",
        trial,
        points,
        timeout=300,
    )
    return int(trial)
