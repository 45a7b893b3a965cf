"""The model registry, and the history of usage."""

from __future__ import annotations

from typing import Final

from deploy.determined_import.kinds.copied import CopiedTable
from deploy.determined_import.kinds.rules import json_object
from libs.db.tables.cluster import usage_days
from libs.db.tables.models import model_versions, models

MODELS: Final = CopiedTable(
    kind="models",
    target=models,
    rows="models m",
    key="m.id",
    columns={
        "id": "m.id",
        "name": "m.name",
        "description": "coalesce(m.description, '')",
        "notes": "coalesce(m.notes, '')",
        "metadata": json_object("m.metadata"),
        # Array to array: a label may hold a comma.
        "labels": "coalesce(to_jsonb(m.labels), '[]')",
        "owner_id": "m.user_id",
        "workspace_id": "m.workspace_id",
        "archived": "m.archived",
        "created_at": "m.creation_time",
        "updated_at": "coalesce(m.last_updated_time, m.creation_time)",
    },
)

VERSIONS: Final = CopiedTable(
    kind="model versions",
    target=model_versions,
    rows="model_versions v",
    key="v.id",
    columns={
        "id": "v.id",
        "model_id": "v.model_id",
        "version": "v.version",
        "checkpoint_uuid": "v.checkpoint_uuid",
        "name": "coalesce(v.name, '')",
        "comment": "coalesce(v.comment, '')",
        "notes": "coalesce(v.notes, '')",
        "metadata": json_object("v.metadata"),
        "labels": "coalesce(to_jsonb(v.labels), '[]')",
        "owner_id": "v.user_id",
        "created_at": "v.creation_time",
        "updated_at": "coalesce(v.last_updated_time, v.creation_time)",
    },
)

USAGE: Final = CopiedTable(
    kind="days of usage",
    target=usage_days,
    rows="resource_aggregates a",
    key="a.date",
    key_type="date",
    columns={
        "day": "a.date",
        "aggregation_type": "a.aggregation_type",
        "aggregation_key": "a.aggregation_key",
        "seconds": "a.seconds",
    },
)
