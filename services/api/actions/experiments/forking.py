"""Experiments that begin as a copy of another one and take over its model definition.

Source: docs/reference/experiments.md 1.7 (steps 1 and 12).
"""

from __future__ import annotations

from msgspec import Struct
from sqlalchemy import or_, select
from sqlalchemy.ext.asyncio import AsyncConnection

from libs.config.stored import labels_of
from libs.db.tables.experiments import experiments, model_definitions
from libs.db.tables.workspaces import projects, workspaces
from libs.errors import FailedPrecondition, NotFound
from services.api.actions.small_configs import are_few, computed
from services.api.contexts.pack import pack_context
from services.api.wire.experiments.experiments import CreateExperimentRequest


class Parent(Struct, frozen=True):
    id: int
    model_definition: bytes
    """tar.gz"""
    labels: frozenset[str]


async def load_parent(connection: AsyncConnection, experiment_id: int) -> Parent:
    """The experiment to fork. Raises NotFound, and FailedPrecondition when it lies in an archive."""
    row = (
        await connection.execute(
            select(
                experiments.c.id,
                experiments.c.config,
                model_definitions.c.tgz,
                or_(projects.c.archived, workspaces.c.archived).label("archived"),
            )
            .select_from(experiments)
            .join(model_definitions, model_definitions.c.experiment_id == experiments.c.id)
            .join(projects, projects.c.id == experiments.c.project_id)
            .join(workspaces, workspaces.c.id == projects.c.workspace_id)
            .where(experiments.c.id == experiment_id)
        )
    ).one_or_none()
    if row is None:
        raise NotFound("experiment", experiment_id)
    if row.archived:
        raise FailedPrecondition("forking an experiment in an archived workspace/project")
    return Parent(row.id, row.tgz, frozenset(labels_of(row.config)))


async def model_definition_of(request: CreateExperimentRequest, parent: Parent | None) -> bytes:
    """The files of a new experiment, as tar.gz: its parent's, or those that came with the request."""
    if parent is not None:
        return parent.model_definition
    return await computed(are_few(request.model_definition), pack_context, request.model_definition)
