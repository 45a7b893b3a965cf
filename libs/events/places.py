"""What is asked of a launcher: namespaces, their quotas, and marks on nodes, which only launchers may touch.

The api asks, and the scheduler when a workspace is deleted. Request and reply on ``launcher_rpc(pool, verb)``, never
needed for correctness: what was asked can be asked again. A launcher that refuses answers with an error of
``libs/errors.py``; a pool without a cluster with FailedPrecondition. Questions are tagged, so that no other message
that somebody makes the bus deliver there is taken for one.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final, Literal

from msgspec import Struct

FIND_NAMESPACE: Final = "find-namespace"
"""``NamespaceAsked`` -> ``Done``; NotFound when it does not exist."""
CREATE_NAMESPACE: Final = "create-namespace"
"""``NamespaceAsked`` -> ``Done``, also when it existed."""
DELETE_NAMESPACE: Final = "delete-namespace"
"""``NamespaceAsked`` -> ``Done``, also when it did not exist; FailedPrecondition for one that is not ours."""
GET_QUOTA: Final = "get-quota"
"""``NamespaceAsked`` -> ``Quota``."""
SET_QUOTA: Final = "set-quota"
"""``QuotaAsked`` -> ``Done``; FailedPrecondition for a namespace that is not ours, or that another quota limits
more."""
MARK_NODE: Final = "mark-node"
"""``NodeMarkAsked`` -> ``Done``; NotFound, or PermissionDenied when the launcher may not change nodes."""


class NamespaceAsked(Struct, frozen=True, kw_only=True, tag_field="type", tag="namespace.asked"):
    namespace: str


class QuotaAsked(Struct, frozen=True, kw_only=True, tag_field="type", tag="quota.asked"):
    namespace: str
    slots: int


class Quota(Struct, frozen=True, kw_only=True):
    """The smallest limit on slots of all quotas of a namespace; None where nothing limits them."""

    slots: float | None = None


class NodeMarkAsked(Struct, frozen=True, kw_only=True, tag_field="type", tag="node_mark.asked"):
    node: str
    mark: Literal["no-execute", "no-schedule", ""]
    """Value of the label ``determined.ai/cluster-id-<cluster id>``; empty takes it off."""


class Done(Struct, frozen=True):
    """It is as asked."""


QUESTIONS: Final[Mapping[str, type[Struct]]] = {
    FIND_NAMESPACE: NamespaceAsked,
    CREATE_NAMESPACE: NamespaceAsked,
    DELETE_NAMESPACE: NamespaceAsked,
    GET_QUOTA: NamespaceAsked,
    SET_QUOTA: QuotaAsked,
    MARK_NODE: NodeMarkAsked,
}
"""What is sent with each verb."""
