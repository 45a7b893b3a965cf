"""Columns of experiments and of runs: docs/reference/platform.md 9.2, one row each."""

from __future__ import annotations

from typing import NamedTuple


class Column(NamedTuple):
    """What may be done with a column."""

    name: str
    filters_experiments: bool
    sorts_experiments: bool
    filters_runs: bool
    sorts_runs: bool

    def __str__(self) -> str:
        return self.name


COLUMNS = [
    Column("id", True, True, True, True),
    Column("name", True, True, False, False),
    Column("description", True, True, False, False),
    Column("experimentName", False, False, True, True),
    Column("experimentDescription", False, False, True, True),
    Column("tags", True, True, True, True),
    Column("searcherType", True, True, True, True),
    Column("searcherMetric", True, True, True, True),
    Column("resourcePool", True, True, True, True),
    Column("startTime", True, True, True, True),
    Column("endTime", True, True, True, True),
    Column("duration", True, True, True, True),
    Column("state", True, True, True, True),
    Column("numTrials", True, True, False, False),
    Column("progress", True, True, False, False),
    Column("experimentProgress", False, False, True, True),
    Column("user", True, True, True, True),
    Column("forkedFrom", True, True, True, True),
    Column("projectId", True, True, True, True),
    Column("checkpointSize", True, True, True, True),
    Column("checkpointCount", True, True, True, True),
    Column("searcherMetricsVal", True, True, True, True),
    Column("externalExperimentId", True, True, True, True),
    Column("externalTrialId", True, True, False, False),
    Column("externalRunId", False, False, True, True),
    Column("experimentId", False, False, True, True),
    Column("localId", False, False, True, True),
    Column("isExpMultitrial", False, False, True, True),
    Column("parentArchived", False, False, True, True),
    Column("archived", True, True, True, True),
    Column("notValid", False, False, False, False),
]

COLUMNS_OF_EXPERIMENTS = [
    ("id", "EXPERIMENT", "NUMBER"),
    ("name", "EXPERIMENT", "TEXT"),
    ("description", "EXPERIMENT", "TEXT"),
    ("tags", "EXPERIMENT", "TEXT"),
    ("forkedFrom", "EXPERIMENT", "NUMBER"),
    ("startTime", "EXPERIMENT", "DATE"),
    ("duration", "EXPERIMENT", "NUMBER"),
    ("numTrials", "EXPERIMENT", "NUMBER"),
    ("state", "EXPERIMENT", "TEXT"),
    ("searcherType", "EXPERIMENT", "TEXT"),
    ("resourcePool", "EXPERIMENT", "TEXT"),
    ("progress", "EXPERIMENT", "NUMBER"),
    ("checkpointSize", "EXPERIMENT", "NUMBER"),
    ("checkpointCount", "EXPERIMENT", "NUMBER"),
    ("user", "EXPERIMENT", "TEXT"),
    ("searcherMetric", "EXPERIMENT", "TEXT"),
    ("searcherMetricsVal", "EXPERIMENT", "NUMBER"),
    ("externalExperimentId", "EXPERIMENT", "TEXT"),
    ("externalTrialId", "EXPERIMENT", "TEXT"),
    ("archived", "EXPERIMENT", "UNSPECIFIED"),
]
"""Of a table of experiments, in their order; hyperparameters and metrics follow."""

COLUMNS_OF_RUNS = [
    ("id", "RUN", "NUMBER"),
    ("experimentDescription", "RUN", "TEXT"),
    ("tags", "RUN", "TEXT"),
    ("forkedFrom", "RUN", "NUMBER"),
    ("startTime", "RUN", "DATE"),
    ("endTime", "RUN", "DATE"),
    ("duration", "RUN", "NUMBER"),
    ("state", "RUN", "TEXT"),
    ("searcherType", "RUN", "TEXT"),
    ("resourcePool", "RUN", "TEXT"),
    ("checkpointSize", "RUN", "NUMBER"),
    ("checkpointCount", "RUN", "NUMBER"),
    ("user", "RUN", "TEXT"),
    ("searcherMetric", "RUN", "TEXT"),
    ("searcherMetricsVal", "RUN", "NUMBER"),
    ("externalExperimentId", "RUN", "TEXT"),
    ("projectId", "RUN", "NUMBER"),
    ("externalRunId", "RUN", "TEXT"),
    ("experimentProgress", "RUN", "NUMBER"),
    ("experimentId", "RUN", "NUMBER"),
    ("experimentName", "RUN", "TEXT"),
    ("isExpMultitrial", "RUN", "UNSPECIFIED"),
    ("parentArchived", "RUN", "UNSPECIFIED"),
    ("localId", "RUN", "TEXT"),
    ("archived", "RUN", "UNSPECIFIED"),
]
