"""Answers what the api asks of a launcher: namespaces, their quotas, marks on nodes (``libs/events/places.py``)."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Mapping
from functools import partial
from typing import Any, Final, Literal, Protocol

from msgspec import Struct

from libs.errors import FailedPrecondition
from libs.events import places
from libs.events.places import Done, NamespaceAsked, NodeMarkAsked, Quota, QuotaAsked
from services.launcher.questions import Verbs

Mark = Literal["no-execute", "no-schedule", ""]


class Places(Protocol):
    """What a backend has of namespaces and nodes. Everything may be asked again; all raise ``libs/errors.py`` only."""

    async def find_namespace(self, name: str) -> None:
        """Raises NotFound, and PermissionDenied where tasks could not be run."""
        ...

    async def create_namespace(self, name: str) -> None:
        """Returns also when it existed."""
        ...

    async def delete_namespace(self, name: str) -> None:
        """Returns also when it did not exist. Raises FailedPrecondition for one that was not made for a workspace."""
        ...

    async def quota_of(self, namespace: str) -> float | None:
        """The smallest limit on slots; None where there is none."""
        ...

    async def limit(self, namespace: str, slots: int) -> None:
        """Raises FailedPrecondition where that is not ours to say, or where another limit is smaller."""
        ...

    async def mark_node(self, node: str, mark: Mark) -> None: ...


class NoPlaces:
    """For backends without a cluster."""

    def __init__(self, pool: str) -> None:
        self._refusal = f"resource pool {pool} does not run on Kubernetes"

    async def find_namespace(self, name: str) -> None:
        raise FailedPrecondition(self._refusal)

    async def create_namespace(self, name: str) -> None:
        raise FailedPrecondition(self._refusal)

    async def delete_namespace(self, name: str) -> None:
        raise FailedPrecondition(self._refusal)

    async def quota_of(self, namespace: str) -> float | None:
        raise FailedPrecondition(self._refusal)

    async def limit(self, namespace: str, slots: int) -> None:
        raise FailedPrecondition(self._refusal)

    async def mark_node(self, node: str, mark: Mark) -> None:
        raise FailedPrecondition(self._refusal)


def verbs_of(has: Places) -> Verbs:
    """What a launcher with these places can be asked about them."""
    return {verb: (kind, partial(do, has)) for verb, (kind, do) in _VERBS.items()}


async def _find(has: Places, asked: NamespaceAsked) -> Done:
    await has.find_namespace(asked.namespace)
    return Done()


async def _create(has: Places, asked: NamespaceAsked) -> Done:
    await has.create_namespace(asked.namespace)
    return Done()


async def _delete(has: Places, asked: NamespaceAsked) -> Done:
    await has.delete_namespace(asked.namespace)
    return Done()


async def _quota(has: Places, asked: NamespaceAsked) -> Quota:
    return Quota(slots=await has.quota_of(asked.namespace))


async def _limit(has: Places, asked: QuotaAsked) -> Done:
    await has.limit(asked.namespace, asked.slots)
    return Done()


async def _mark(has: Places, asked: NodeMarkAsked) -> Done:
    await has.mark_node(asked.node, asked.mark)
    return Done()


_VERBS: Final[Mapping[str, tuple[type[Struct], Callable[[Places, Any], Awaitable[Struct]]]]] = {
    places.FIND_NAMESPACE: (NamespaceAsked, _find),
    places.CREATE_NAMESPACE: (NamespaceAsked, _create),
    places.DELETE_NAMESPACE: (NamespaceAsked, _delete),
    places.GET_QUOTA: (NamespaceAsked, _quota),
    places.SET_QUOTA: (QuotaAsked, _limit),
    places.MARK_NODE: (NodeMarkAsked, _mark),
}
