"""Where updates of each kind are read: rows that a subscriber follows and may see, and how they look in messages."""

from __future__ import annotations

from collections.abc import Collection, Mapping
from dataclasses import dataclass
from typing import Any, Final

from sqlalchemy import ColumnElement, FromClause, Select, and_, cast, false, func, literal, or_, select
from sqlalchemy import Float as SqlFloat
from sqlalchemy import Text as SqlText

from libs.db.any_of import any_of
from libs.db.tables.models import model_versions, models
from libs.db.tables.workspaces import projects, workspaces
from services.api.access.rights.actions import Action
from services.api.access.rights.rights import UserRights
from services.api.updates.messages import UpdateKind


def _seconds(moment: ColumnElement[Any]) -> ColumnElement[Any]:
    return cast(func.extract("epoch", moment), SqlFloat)


@dataclass(frozen=True, slots=True)
class UpdateSource:
    """Rows of one kind.

    rows       the tables that they are in
    seqs       numbers of changes, of which the highest is that of a row
    columns    key in messages -> value, without ``id`` and ``seq``
    fields     field of a subscription -> column with the ids that it names
    view       the action that seeing a row is, in the workspace of ``workspace``
    """

    rows: FromClause
    ident: ColumnElement[int]
    seqs: tuple[ColumnElement[int], ...]
    columns: Mapping[str, ColumnElement[Any]]
    fields: Mapping[str, ColumnElement[int]]
    view: Action
    workspace: ColumnElement[int]

    @property
    def seq(self) -> ColumnElement[int]:
        return self.seqs[0] if len(self.seqs) == 1 else func.greatest(*self.seqs)

    def followed(self, ids: Mapping[str, tuple[int, ...]], rights: UserRights) -> ColumnElement[bool]:
        """Condition on rows: the subscription names it, and the subscriber may see it."""
        named = or_(false(), *(any_of(self.fields[field], found) for field, found in ids.items()))
        return and_(named, rights.where(self.view, self.workspace))

    def newest(self) -> Select[int]:
        """The highest number of a change so far."""
        highest = [select(func.max(seq)).scalar_subquery() for seq in self.seqs]
        return select(func.coalesce(func.greatest(*highest), 0))

    def numbers(self, condition: ColumnElement[bool]) -> Select[int, int]:
        """``id`` and ``seq`` of rows, by id."""
        found = select(self.ident.label("id"), self.seq.label("seq")).select_from(self.rows)
        return found.where(condition).order_by(self.ident)

    def changed(self, followed: ColumnElement[bool], *, after: int, until: int) -> Select[int, bool]:
        """``id`` of rows that have changed in between, by id, and whether they are ``followed``."""
        found = select(self.ident.label("id"), followed.label("followed")).select_from(self.rows)
        news = or_(*(seq > after for seq in self.seqs))
        return found.where(news, self.seq <= until).order_by(self.ident)

    def whole(self, followed: ColumnElement[bool], idents: Collection[int]) -> Select[Any]:
        """Those of these rows that are ``followed``, as messages have them."""
        columns = [column.label(name) for name, column in self.columns.items()]
        found = select(self.ident.label("id"), *columns, self.seq.label("seq")).select_from(self.rows)
        return found.where(followed, any_of(self.ident, idents)).order_by(self.ident)


SOURCES: Final[Mapping[UpdateKind, UpdateSource]] = {
    UpdateKind.PROJECTS: UpdateSource(
        rows=projects.join(workspaces, workspaces.c.id == projects.c.workspace_id),
        ident=projects.c.id,
        seqs=(projects.c.seq, workspaces.c.seq),
        columns={
            "name": projects.c.name,
            "description": projects.c.description,
            "archived": or_(projects.c.archived, workspaces.c.archived),
            "created_at": _seconds(projects.c.created_at),
            "notes": projects.c.notes,
            "workspace_id": projects.c.workspace_id,
            "user_id": projects.c.owner_id,
            "immutable": projects.c.immutable,
            "state": func.coalesce(func.nullif(projects.c.state, ""), "UNSPECIFIED"),
            "key": projects.c.key,
        },
        fields={"workspace_ids": projects.c.workspace_id, "project_ids": projects.c.id},
        view=Action.VIEW_PROJECT,
        workspace=projects.c.workspace_id,
    ),
    UpdateKind.MODELS: UpdateSource(
        rows=models,
        ident=models.c.id,
        seqs=(models.c.seq,),
        columns={
            "name": models.c.name,
            "description": models.c.description,
            "archived": models.c.archived,
            "creation_time": _seconds(models.c.created_at),
            "notes": models.c.notes,
            "workspace_id": models.c.workspace_id,
            "user_id": models.c.owner_id,
            "last_updated_time": _seconds(models.c.updated_at),
            "metadata": models.c.metadata,
            "labels": models.c.labels,
        },
        fields={"workspace_ids": models.c.workspace_id, "model_ids": models.c.id, "user_ids": models.c.owner_id},
        view=Action.VIEW_MODEL,
        workspace=models.c.workspace_id,
    ),
    UpdateKind.MODEL_VERSIONS: UpdateSource(
        rows=model_versions.join(models, models.c.id == model_versions.c.model_id),
        ident=model_versions.c.id,
        seqs=(model_versions.c.seq,),
        columns={
            "name": model_versions.c.name,
            "version": model_versions.c.version,
            "checkpoint_uuid": model_versions.c.checkpoint_uuid,
            "creation_time": _seconds(model_versions.c.created_at),
            "last_updated_time": _seconds(model_versions.c.updated_at),
            "metadata": model_versions.c.metadata,
            "model_id": model_versions.c.model_id,
            "user_id": func.coalesce(model_versions.c.owner_id, 0),
            "comment": model_versions.c.comment,
            "labels": model_versions.c.labels,
            "notes": model_versions.c.notes,
            "workspace_id": literal("", SqlText),
        },
        fields={
            "model_ids": model_versions.c.model_id,
            "model_version_ids": model_versions.c.id,
            "user_ids": model_versions.c.owner_id,
            "workspace_ids": model_versions.c.id,
        },
        view=Action.VIEW_MODEL,
        workspace=models.c.workspace_id,
    ),
}
