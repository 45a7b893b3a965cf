"""Searches before they run: ``det preview-search`` (docs/reference/experiments.md 3.6)."""

from __future__ import annotations

import asyncio
from typing import Any, Final

from msgspec import UNSET

from libs.config import check_current_searcher, normalise_experiment_config, with_defaults
from libs.config.yaml_text import MAX_VALUES
from libs.errors import InvalidRequest
from libs.searchers.methods.definition import PreviewTrial
from libs.searchers.preview import preview
from services.api.app import App
from services.api.http.call import Call
from services.api.http.routing import Route
from services.api.wire.base import struct_value
from services.api.wire.experiments.searches import (
    PreviewRequest,
    PreviewResponse,
    SearchSummary,
    SearchUnit,
    TrialSummary,
)


async def preview_search(call: Call[App, None, PreviewRequest]) -> PreviewResponse:
    """How many trials of what length a configuration stands for."""
    return await asyncio.to_thread(_preview, call.body.config or {})


def _preview(submitted: dict[str, Any]) -> PreviewResponse:
    config = normalise_experiment_config(submitted)
    if config.get("searcher") is None:
        raise InvalidRequest("invalid experiment configuration: <config>: searcher is a required property")
    complete = with_defaults(config, seed=0, name="preview")
    check_current_searcher(complete)
    trials = preview(complete["searcher"], complete["hyperparameters"])
    summary = SearchSummary(config=struct_value(complete["searcher"]), trials=[_summary(trial) for trial in trials])
    return PreviewResponse(summary=summary)


def _summary(trial: PreviewTrial) -> TrialSummary:
    unit = SearchUnit(
        name=UNSET if trial.name is None else trial.name,
        value=UNSET if trial.value is None else trial.value,
        max_length=trial.max_length,
    )
    return TrialSummary(count=trial.count, unit=unit)


ROUTES: Final = (
    Route(
        method="POST",
        path="/api/v1/preview-hp-search",
        handler=preview_search,
        body=PreviewRequest,
        max_body_values=MAX_VALUES,
        response=PreviewResponse,
        summary="Preview what a hyperparameter search would do",
    ),
)
