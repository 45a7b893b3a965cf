"""Reads that are POSTs: searches by every column of the tables, previews, groups, roles, and files of experiments."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping, Sequence
from typing import Any, Final

from tests.golden.reads import Read

_TABLES: Final = {"experiments-search": "TABLE_TYPE_EXPERIMENT", "runs": "TABLE_TYPE_RUN"}
_OPERATORS: Final = ("=", "!=", "<", "<=", ">", ">=", "contains", "notContains", "isEmpty", "notEmpty")
_VALUES: Final[Mapping[str, Sequence[Any]]] = {
    "COLUMN_TYPE_NUMBER": (2, 0.5),
    "COLUMN_TYPE_TEXT": ("COMPLETED", "s"),
    "COLUMN_TYPE_DATE": ("2100-01-01T00:00:00Z",),
    "COLUMN_TYPE_ARRAY": ("two",),
    "COLUMN_TYPE_UNSPECIFIED": ("step 12", 1),
}
_PAGES: Final = ((2, 0), (2, 1), (-1, 0), (-2, 0), (1000, 0), (3, -2), (0, 0), (5, 100_000))
_PREVIEWED: Final = (
    {"name": "grid"},
    {"name": "random", "max_trials": 4},
    {"name": "adaptive_asha", "max_trials": 8, "max_time": 9, "time_metric": "step"},
)


def columns_of(project: int, ask: Any) -> dict[str, list[dict[str, str]]]:
    """By the path of the search; ``ask`` takes a path and returns the JSON of its answer."""
    return {
        path: ask(f"/api/v1/projects/{project}/columns?tableType={table}")["columns"] for path, table in _TABLES.items()
    }


def posts(columns: Mapping[str, Sequence[Mapping[str, str]]], experiments: Sequence[str]) -> Iterator[Read]:
    for path, known in columns.items():
        for body in (*_pages(), *_sorted(known), *_filtered(known), *_nested()):
            yield Read("POST", f"/api/v1/{path}", body)
    for searcher in _PREVIEWED:
        yield Read("POST", "/api/v1/preview-hp-search", {"config": _preview(searcher), "seed": 7})
    for limit, offset in _PAGES:
        for path in ("groups/search", "roles/search", "roles/search/by-assignability"):
            yield Read("POST", f"/api/v1/{path}", {"limit": limit, "offset": offset})
    yield Read("POST", "/api/v1/roles/search/by-ids", {"roleIds": [1, 2, 5]})
    for ident in experiments:
        yield Read("POST", f"/api/v1/experiments/{ident}/file", {"path": "reporting.py"})


def _pages() -> Iterator[dict[str, Any]]:
    for limit, offset in _PAGES:
        for project in ({}, {"projectId": 1}, {"projectId": 2}):
            yield {"limit": limit, "offset": offset, **project}


def _sorted(columns: Sequence[Mapping[str, str]]) -> Iterator[dict[str, Any]]:
    names = dict.fromkeys(column["column"] for column in columns)
    for name in names:
        for direction in ("asc", "desc"):
            for limit, offset in ((3, 0), (4, 2), (1000, 0)):
                yield {"projectId": 1, "limit": limit, "offset": offset, "sort": f"{name}={direction}"}
    for first, second in zip(names, list(names)[1:], strict=False):
        yield {"limit": 50, "sort": f"{first}=desc,{second}=asc"}


def _filtered(columns: Sequence[Mapping[str, str]]) -> Iterator[dict[str, Any]]:
    for column in columns:
        for value in _VALUES[column["type"]]:
            for operator in _OPERATORS:
                if column["column"] == "duration" and "ontains" in operator:
                    continue  # digits of how long something has gone on are of the moment
                yield _with(_field(column, operator, value))


def _nested() -> Iterator[dict[str, Any]]:
    state = {"column": "state", "location": "LOCATION_TYPE_EXPERIMENT", "type": "COLUMN_TYPE_TEXT"}
    tags = {"column": "tags", "location": "LOCATION_TYPE_EXPERIMENT", "type": "COLUMN_TYPE_TEXT"}
    loss = {"column": "validation.loss.min", "location": "LOCATION_TYPE_VALIDATIONS", "type": "COLUMN_TYPE_NUMBER"}
    either = _group("or", _field(tags, "contains", "both"), _field(loss, "<", 0.2))
    for archived in (True, False):
        for inner in (either, _group("and"), _group("or", either, _field(state, "!=", "ERROR"))):
            yield {**_with(_field(state, "=", "COMPLETED"), inner, archived=archived), "sort": "searcherMetricsVal=asc"}


def _with(*children: Mapping[str, Any], archived: bool = True) -> dict[str, Any]:
    wanted = json.dumps({"filterGroup": _group("and", *children), "showArchived": archived})
    return {"limit": 100, "filter": wanted}


def _group(conjunction: str, *children: Mapping[str, Any]) -> dict[str, Any]:
    return {"kind": "group", "conjunction": conjunction, "children": list(children)}


def _field(column: Mapping[str, str], operator: str, value: Any) -> dict[str, Any]:
    return {
        "kind": "field",
        "columnName": column["column"],
        "operator": operator,
        "value": None if operator in ("isEmpty", "notEmpty") else value,
        "location": column["location"],
        "type": column["type"],
    }


def _preview(searcher: Mapping[str, Any]) -> str:
    return json.dumps(
        {
            "name": "previewed",
            "entrypoint": "true",
            "searcher": {"metric": "loss", **searcher},
            "hyperparameters": {"width": {"type": "int", "minval": 1, "maxval": 4, "count": 4}},
        }
    )
