"""Columns that every table of experiments or runs has, in order: what they hold and what people call them.

Source: docs/reference/platform.md 9.2.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final

from services.api.queries.search.language.filters import ColumnType

_N, _T, _D, _U = ColumnType.NUMBER, ColumnType.TEXT, ColumnType.DATE, ColumnType.UNSPECIFIED

EXPERIMENT_TABLE: Final[Mapping[str, tuple[ColumnType, str]]] = {
    "id": (_N, "ID"),
    "name": (_T, "Name"),
    "description": (_T, "Description"),
    "tags": (_T, "Tags"),
    "forkedFrom": (_N, "Forked From"),
    "startTime": (_D, "Start time"),
    "duration": (_N, "Duration"),
    "numTrials": (_N, "Trial Count"),
    "state": (_T, "State"),
    "searcherType": (_T, "Searcher"),
    "resourcePool": (_T, "Resource Pool"),
    "progress": (_N, "Progress"),
    "checkpointSize": (_N, "Checkpoint Size"),
    "checkpointCount": (_N, "Checkpoints"),
    "user": (_T, "User"),
    "searcherMetric": (_T, "Searcher Metric"),
    "searcherMetricsVal": (_N, "Searcher Metric Value"),
    "externalExperimentId": (_T, "External Experiment ID"),
    "externalTrialId": (_T, "External Trial ID"),
    "archived": (_U, "Archived"),
}
RUN_TABLE: Final[Mapping[str, tuple[ColumnType, str]]] = {
    "id": (_N, "Global Run ID"),
    "experimentDescription": (_T, "Search Description"),
    "tags": (_T, "Tags"),
    "forkedFrom": (_N, "Forked From"),
    "startTime": (_D, "Start time"),
    "endTime": (_D, "End time"),
    "duration": (_N, "Duration"),
    "state": (_T, "State"),
    "searcherType": (_T, "Searcher"),
    "resourcePool": (_T, "Resource Pool"),
    "checkpointSize": (_N, "Checkpoint Size"),
    "checkpointCount": (_N, "Checkpoints"),
    "user": (_T, "User"),
    "searcherMetric": (_T, "Searcher Metric"),
    "searcherMetricsVal": (_N, "Searcher Metric Value"),
    "externalExperimentId": (_T, "External Experiment ID"),
    "projectId": (_N, "Project ID"),
    "externalRunId": (_T, "External Run ID"),
    "experimentProgress": (_N, "Search Progress"),
    "experimentId": (_N, "Search ID"),
    "experimentName": (_T, "Search Name"),
    "isExpMultitrial": (_U, "Part of Search"),
    "parentArchived": (_U, "Parent Archived"),
    "localId": (_T, "Run ID"),
    "archived": (_U, "Archived"),
}
