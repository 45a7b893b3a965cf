"""All tables. Importing this package registers every table with ``metadata``."""

from libs.db.tables import (
    checkpoints,
    cluster,
    experiments,
    logs,
    metrics,
    namespaces,
    tasks,
    templates,
    trials,
    users,
    workspaces,
)
from libs.db.tables.metadata import metadata

__all__ = [
    "checkpoints",
    "cluster",
    "experiments",
    "logs",
    "metadata",
    "metrics",
    "namespaces",
    "tasks",
    "templates",
    "trials",
    "users",
    "workspaces",
]
