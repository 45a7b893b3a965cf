"""Writes the page of the chart's values from its schema and its defaults."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any, Final, NamedTuple

import yaml

CHART: Final = Path(__file__).resolve().parents[1] / "helm"
_NO_VALUE: Final = "-"


class ChartValue(NamedTuple):
    path: str
    kind: str
    default: str
    description: str


def chart_values() -> Iterator[ChartValue]:
    """Every value, in the order of the schema."""
    schema = json.loads((CHART / "values.schema.json").read_text())
    defaults = yaml.safe_load((CHART / "values.yaml").read_text())
    yield from _values(schema["properties"], defaults, prefix="")


def _values(properties: Mapping[str, Any], defaults: Any, *, prefix: str) -> Iterator[ChartValue]:
    for name, schema in properties.items():
        default = defaults.get(name) if isinstance(defaults, dict) else None
        if "properties" in schema:
            yield from _values(schema["properties"], default, prefix=f"{prefix}{name}.")
        else:
            yield ChartValue(f"{prefix}{name}", _kind(schema), _shown(default), schema["description"])


def _kind(schema: Mapping[str, Any]) -> str:
    if "enum" in schema:
        return ", ".join(f"`{each}`" for each in schema["enum"] if each is not None)
    kinds: list[str] = schema["type"] if isinstance(schema["type"], list) else [schema["type"]]
    words = {"object": "mapping", "array": "list", "integer": "whole number"}
    return " or ".join(words.get(kind, kind) for kind in kinds if kind != "null")


def _shown(default: Any) -> str:
    return _NO_VALUE if default in (None, "", [], {}) else f"`{json.dumps(default)}`"
