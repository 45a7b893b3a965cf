"""All tables. Importing this package registers every table with ``metadata``."""

from libs.db.tables import (
    checkpoints,
    cluster,
    experiments,
    interactive,
    logs,
    metrics,
    models,
    namespaces,
    tasks,
    templates,
    trials,
    users,
    webhooks,
    workspaces,
)
from libs.db.tables.metadata import metadata

__all__ = [
    "checkpoints",
    "cluster",
    "experiments",
    "interactive",
    "logs",
    "metadata",
    "metrics",
    "models",
    "namespaces",
    "tasks",
    "templates",
    "trials",
    "users",
    "webhooks",
    "workspaces",
]
