"""Columns that a table of a project may have: fixed ones, and those that its experiments or runs bring along.

Source: docs/reference/platform.md 9.2.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Iterator, Mapping
from typing import Any, Final, TypeVar

from sqlalchemy import ColumnElement, Select, and_, case, func, literal, null, select, true, type_coerce
from sqlalchemy.dialects.postgresql import JSONB
from sqlalchemy.ext.asyncio import AsyncConnection

from libs.db.tables.experiments import experiments
from libs.db.tables.trials import trials
from libs.natural_order.keys import natural_sort_key
from services.api.metrics.groups import TRAINING, VALIDATION
from services.api.queries.metric_types import OF_BEST, OF_PROJECT, metric_types
from services.api.queries.project_parts import Part, PartReader, ProjectParts
from services.api.queries.search.column_tables import EXPERIMENT_TABLE, RUN_TABLE
from services.api.queries.search.documents import is_moment, members
from services.api.queries.search.hyperparameters import PREFIX
from services.api.queries.search.language.filters import ColumnType, Location
from services.api.queries.search.language.metric_ids import AGGREGATES
from services.api.queries.search.run_values import METADATA_PREFIX
from services.api.wire.search.project_columns import ProjectColumn, WireColumnType, WireLocation

_N, _T, _D, _U = ColumnType.NUMBER, ColumnType.TEXT, ColumnType.DATE, ColumnType.UNSPECIFIED
_METRIC_TYPES: Final = {"number": _N, "string": _T, "date": _D, "array": ColumnType.ARRAY}
_METADATA_TYPES: Final = {"number": _N, "string": _T, "date": _D, "array": ColumnType.ARRAY}
_VALUE_TYPES: Final = {"number": _N, **dict.fromkeys(("string", "date", "array", "object", "null"), _T)}
"""Hyperparameters; lists and null are text, and a choice has no type, whatever its values are."""
_METRIC_LOCATIONS: Final = {TRAINING: Location.TRAINING, VALIDATION: Location.VALIDATIONS}

Name = TypeVar("Name", str, tuple[str, str])
Types = dict[str, set[str]]
"""Name -> the types that its values have."""


async def experiment_columns(connection: AsyncConnection, project_id: int, parts: ProjectParts) -> list[ProjectColumn]:
    """Fixed columns, metrics of best trials, and hyperparameters of configurations."""
    metrics = await parts.of_project(connection, project_id, _METRICS_OF_BEST)
    spaces = await parts.of_project(connection, project_id, _SPACES)
    return [
        *_fixed(EXPERIMENT_TABLE, Location.EXPERIMENT),
        *_metrics(metrics),
        *_keys(PREFIX, Location.HYPERPARAMETERS, spaces, _VALUE_TYPES),
    ]


async def run_columns(connection: AsyncConnection, project_id: int, parts: ProjectParts) -> list[ProjectColumn]:
    """Fixed columns, and metrics, hyperparameters and metadata of the runs."""
    metrics = await parts.of_project(connection, project_id, _METRICS_OF_RUNS)
    hyperparameters = await parts.of_project(connection, project_id, _HYPERPARAMETERS)
    metadata = await parts.of_project(connection, project_id, _METADATA)
    return [
        *_fixed(RUN_TABLE, Location.RUN),
        *_metrics(metrics),
        *_keys(PREFIX, Location.RUN_HYPERPARAMETERS, hyperparameters, _VALUE_TYPES),
        *_keys(METADATA_PREFIX, Location.RUN_METADATA, metadata, _METADATA_TYPES),
    ]


def _add(types: dict[Name, set[str]], more: Mapping[Name, set[str]]) -> None:
    for name, kinds in more.items():
        types.setdefault(name, set()).update(kinds)


async def _metrics_of_best(connection: AsyncConnection, part: Part) -> dict[tuple[str, str], set[str]]:
    return await metric_types(connection, OF_BEST, part.project_id, part.first, part.end)


async def _metrics_of_runs(connection: AsyncConnection, part: Part) -> dict[tuple[str, str], set[str]]:
    return await metric_types(connection, OF_PROJECT, part.project_id, part.first, part.end)


async def _spaces(connection: AsyncConnection, part: Part) -> Types:
    mine = (
        experiments.c.project_id == part.project_id,
        experiments.c.id >= part.first,
        experiments.c.id < part.end,
    )
    spaces = await connection.scalars(select(experiments.c.config["hyperparameters"]).where(*mine).distinct())
    return types_of_spaces(spaces)


async def _hyperparameters(connection: AsyncConnection, part: Part) -> Types:
    return await _types_of_leaves(connection, _of_runs(trials.c.hparams, part))


async def _metadata(connection: AsyncConnection, part: Part) -> Types:
    return await _types_of_leaves(connection, _of_runs(trials.c.metadata, part))


_METRICS_OF_BEST: Final = PartReader("metrics of best trials", _metrics_of_best, dict, _add, of_reports=True)
_SPACES: Final = PartReader("hyperparameters of experiments", _spaces, dict, _add)
_METRICS_OF_RUNS: Final = PartReader("metrics of runs", _metrics_of_runs, dict, _add, of_reports=True)
_HYPERPARAMETERS: Final = PartReader("hyperparameters of runs", _hyperparameters, dict, _add)
_METADATA: Final = PartReader("metadata of runs", _metadata, dict, _add)


def _of_runs(column: ColumnElement[Any], part: Part) -> Select[Any]:
    return select(column.label("document")).where(
        trials.c.project_id == part.project_id,
        trials.c.experiment_id >= part.first,
        trials.c.experiment_id < part.end,
    )


def types_of_spaces(spaces: Iterable[Any]) -> Types:
    """The hyperparameters of search spaces, by their dotted names."""
    types: dict[str, set[str]] = defaultdict(set)
    for space in spaces:
        for name, kind in _leaves_of_space(space, ()):
            types[name].add(kind)
    return types


def _leaves_of_space(space: Any, path: tuple[str, ...]) -> Iterator[tuple[str, str]]:
    if not isinstance(space, Mapping):
        return
    kind = space.get("type")
    if not path or not isinstance(kind, str):
        for name, inner in space.items():
            yield from _leaves_of_space(inner, (*path, name))
        return
    if kind == "categorical":
        yield ".".join(path), kind
    else:
        yield ".".join(path), _json_type(space.get("val")) if kind == "const" else "number"


def _json_type(value: Any) -> str:
    if isinstance(value, bool):
        return "boolean"
    if isinstance(value, int | float):
        return "number"
    return "string" if isinstance(value, str) else "object"


def _fixed(table: Mapping[str, tuple[ColumnType, str]], location: Location) -> Iterator[ProjectColumn]:
    return (_column(name, location, kind, shown) for name, (kind, shown) in table.items())


def _keys(
    prefix: str, location: Location, types: Types, column_types: Mapping[str, ColumnType]
) -> Iterator[ProjectColumn]:
    names = sorted(types, key=natural_sort_key)
    return (_column(prefix + name, location, _one_type(types[name], column_types)) for name in names)


def _one_type(types: Iterable[str], column_types: Mapping[str, ColumnType]) -> ColumnType:
    found = {column_types.get(kind, _U) for kind in types}
    return found.pop() if len(found) == 1 else _U


def _column(name: str, location: Location, kind: ColumnType, shown: str = "") -> ProjectColumn:
    return ProjectColumn(
        column=name, location=WireLocation[location.value], type=WireColumnType[kind.value], display_name=shown
    )


def _metrics(types: Mapping[tuple[str, str], set[str]]) -> list[ProjectColumn]:
    names = sorted(types, key=lambda pair: [natural_sort_key(part) for part in pair])
    return [column for (of, name) in names for column in metric_columns(of, name, types[of, name])]


def metric_columns(group: str, metric: str, types: set[str]) -> Iterator[ProjectColumn]:
    """All aggregates of a number; of anything else, or of what is now this and now that, the last value alone."""
    kind = _one_type(types, _METRIC_TYPES)
    for aggregate in AGGREGATES if kind is _N else ("last",):
        location = _METRIC_LOCATIONS.get(group, Location.CUSTOM_METRIC)
        yield _column(f"{group}.{metric}.{aggregate}", location, kind)


async def _types_of_leaves(connection: AsyncConnection, documents: Select[Any]) -> Types:
    """The dotted names below which nothing else lies, in all documents.

    What is below an object is looked at together for all documents that have the same there, and values of leaves are
    never compared: there may be a hundred thousand documents.
    """
    found = documents.subquery()
    top = members(found.c.document, "top")
    keys = (
        select(top.c.key.label("path"), _type(top.c.value).label("type"), _inner(top.c.value).label("inner"))
        .select_from(found.join(top, true()))
        .cte("keys", recursive=True)
    )
    below = members(keys.c.inner, "below")
    path = keys.c.path.op("||")(".").op("||")(below.c.key)
    keys = keys.union(select(path, _type(below.c.value), _inner(below.c.value)).select_from(keys.join(below, true())))
    types: dict[str, set[str]] = defaultdict(set)
    for row in await connection.execute(select(keys.c.path, keys.c.type).where(keys.c.inner.is_(None)).distinct()):
        types[row.path].add(row.type)
    return types


def _type(value: ColumnElement[Any]) -> ColumnElement[Any]:
    return case((is_moment(value), "date"), else_=func.jsonb_typeof(value))


def _inner(value: ColumnElement[Any]) -> ColumnElement[Any]:
    is_inner = and_(func.jsonb_typeof(value) == "object", value != literal({}, JSONB))
    return type_coerce(case((is_inner, value), else_=null()), JSONB)
