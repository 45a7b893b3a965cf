"""Rights to delete from the model registry: what is one's own, or also what others have made
(docs/reference/platform.md 6)."""

from __future__ import annotations

from typing import Any

from services.api.access.rights.actions import Action
from services.api.access.rights.rights import UserRights
from services.api.queries.models.models import Row


def check_may_delete_model(rights: UserRights, model: Row) -> None:
    """Raises PermissionDenied."""
    _check(rights, model, {model["owner_id"]}, own=Action.DELETE_MODEL, others=Action.DELETE_OTHERS_MODEL)


def check_may_delete_version(rights: UserRights, model: Row, version: Row) -> None:
    """Who owns the model may delete it whole, so also each version. Raises PermissionDenied."""
    owners = {model["owner_id"], version["owner_id"]}
    _check(rights, model, owners, own=Action.DELETE_MODEL_VERSION, others=Action.DELETE_OTHERS_MODEL_VERSION)


def _check(rights: UserRights, model: Row, owners: set[Any], *, own: Action, others: Action) -> None:
    action = own if rights.principal.user_id in owners else others
    rights.require(action, workspace_id=model["workspace_id"], owner_ids=owners - {None})
