"""Rights to delete from the model registry: what is one's own, or also what others have made
(docs/reference/platform.md 6)."""

from __future__ import annotations

from services.api.access.rights.actions import Action
from services.api.access.rights.rights import UserRights
from services.api.queries.models.models import Row


def check_may_delete_model(rights: UserRights, model: Row) -> None:
    """Raises PermissionDenied."""
    own = model["owner_id"] == rights.principal.user_id
    action = Action.DELETE_MODEL if own else Action.DELETE_OTHERS_MODEL
    rights.require(action, workspace_id=model["workspace_id"], owner_ids=_known(model["owner_id"]))


def check_may_delete_version(rights: UserRights, model: Row, version: Row) -> None:
    """Who owns the model may delete it whole, so also each version. Raises PermissionDenied."""
    own = rights.principal.user_id in (model["owner_id"], version["owner_id"])
    rights.require(
        Action.DELETE_MODEL_VERSION if own else Action.DELETE_OTHERS_MODEL_VERSION,
        workspace_id=model["workspace_id"],
        owner_ids=_known(version["owner_id"]),
        parent_owner_ids=_known(model["owner_id"]),
    )


def _known(owner: int | None) -> tuple[int, ...]:
    """What was imported may have no owner any more."""
    return () if owner is None else (owner,)
