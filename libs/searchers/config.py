"""The searcher section of a stored experiment configuration, decoded (docs/reference/experiments.md 1.5).

Fields that no search method looks at (source_trial_id, stop_once, ...) are ignored, unset ones may be null or absent.
"""

from collections.abc import Mapping
from typing import Any, NamedTuple

import msgspec

from libs.searchers.errors import InvalidSearcher
from libs.searchers.methods.definition import MethodDefinition
from libs.searchers.methods.table import METHODS


class ChosenMethod(NamedTuple):
    """The search method that a section names, and the section decoded to the method's own struct."""

    method: MethodDefinition[Any]
    config: Any


def parse_searcher(section: Mapping[str, Any]) -> ChosenMethod:
    """Decode a ``searcher`` section after defaults; raises InvalidSearcher, also for searchers that were removed."""
    name = section.get("name")
    method = METHODS.get(name) if isinstance(name, str) else None
    if method is None:
        raise InvalidSearcher("invalid searcher configuration")
    given = {key: value for key, value in section.items() if value is not None}
    if method.is_timed:
        given = _legacy_length(given) | given
        if "max_time" not in given or "time_metric" not in given:
            raise InvalidSearcher(f"the `{name}` searcher requires `max_time` and `time_metric` to be set")
    try:
        return ChosenMethod(method, msgspec.convert(given, method.config))
    except msgspec.ValidationError as error:
        raise InvalidSearcher(f"invalid searcher configuration: {error}") from error


def _legacy_length(section: Mapping[str, Any]) -> dict[str, Any]:
    """Old configurations say ``max_length: {batches: 100}``, or a bare number of batches, instead of ``max_time``."""
    match section.get("max_length"):
        case bool() | None:
            return {}
        case int(batches):
            return {"max_time": batches, "time_metric": "batches"}
        case {**length} if len(length) == 1:
            ((unit, units),) = length.items()
            return {"max_time": units, "time_metric": unit}
        case _:
            return {}
