"""Mistakes in values for the Helm chart, found with the schema that the chart itself is installed with."""

from __future__ import annotations

import difflib
import json
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import Any, Final

from deploy.operations.config.mistakes import Mistake
from deploy.operations.config.pedl import pedl_mistakes
from libs.errors import InvalidRequest

SCHEMA: Final = Path(__file__).parents[2] / "helm" / "values.schema.json"
"""Beside it is the chart, which an installed package has, too."""


def read_schema(path: Path) -> dict[str, Any]:
    """Raises InvalidRequest."""
    try:
        schema: dict[str, Any] = json.loads(path.read_text())
    except (OSError, ValueError) as error:
        raise InvalidRequest(
            f"the schema of the chart's values cannot be read: {error}; name it with --schema: it is "
            "values.schema.json of the chart"
        ) from error
    return schema


def values_mistakes(values: object, schema: dict[str, Any]) -> list[Mistake]:
    """Everything that keeps the chart from being installed with ``values``, by the place where it stands."""
    try:
        from jsonschema import Draft7Validator  # noqa: PLC0415  # services do without
    except ImportError as error:
        raise InvalidRequest("checking values needs jsonschema: pip install 'resolute[tools]'") from error
    found = Draft7Validator(schema).iter_errors(values)
    return sorted((mistake for error in found for mistake in _mistakes(error)), key=lambda mistake: mistake.key)


def _mistakes(error: Any) -> Iterator[Mistake]:
    place = _place(error.absolute_path)
    if error.validator == "additionalProperties" and error.validator_value is False:
        known = error.schema.get("properties", {})
        for name in sorted(error.instance.keys() - known.keys()):
            path = f"{place}.{name}" if place else name
            of_pedl = list(pedl_mistakes(path, error.instance[name]))
            yield from of_pedl or [Mistake("error", path, _unknown(name, known))]
    else:
        yield Mistake("error", place, error.message)


def _unknown(name: str, known: Iterable[str]) -> str:
    close = difflib.get_close_matches(name, list(known), n=1, cutoff=0.5)
    return f"the chart has no such value; {f'did you mean {close[0]}?' if close else 'remove it'}"


def _place(path: Iterable[str | int]) -> str:
    parts = "".join(f"[{part}]" if isinstance(part, int) else f".{part}" for part in path)
    return parts.removeprefix(".")
