"""What requests say about namespaces, and what is wrong with them."""

from __future__ import annotations

from typing import Any

import pytest

from libs.cluster.config import ResourceManagerConfig
from libs.errors import FailedPrecondition, InvalidRequest, ResoluteError
from services.api.cluster_admin.namespace_requests import NamespaceRequest, read_namespace_requests
from services.api.wire.workspaces.namespaces import NamespaceMeta

CLUSTER = ResourceManagerConfig(type="kubernetes", cluster_name="here")
AUTO = NamespaceMeta(auto_create_namespace=True)
EVERYWHERE = NamespaceMeta(auto_create_namespace_all_clusters=True)


def named(name: str, **more: Any) -> NamespaceMeta:
    return NamespaceMeta(namespace=name, **more)


def limited(quota: int) -> NamespaceMeta:
    return NamespaceMeta(auto_create_namespace=True, resource_quota=quota)


@pytest.mark.parametrize(
    ("meta", "quotas", "namespace", "quota"),
    [
        ({"": named("team")}, {}, "team", None),
        ({"here": named("team")}, {}, "team", None),
        ({"": named("team", cluster_name="here")}, {}, "team", None),
        ({"": AUTO}, {}, None, None),
        ({"": EVERYWHERE}, {}, None, None),
        ({"": AUTO}, {"": 5}, None, 5),
        ({"": AUTO}, {"here": 0}, None, 0),
        ({"here": limited(5)}, {"": 5}, None, 5),
        ({"here": limited(5)}, {}, None, 5),
    ],
)
def test_namespace_request(
    meta: dict[str, NamespaceMeta], quotas: dict[str, int], namespace: str | None, quota: int | None
) -> None:
    assert read_namespace_requests(meta, quotas, manager=CLUSTER) == (
        NamespaceRequest(cluster_name="here", namespace=namespace, quota=quota),
    )


def test_request_as_a_whole_may_ask_for_all_clusters() -> None:
    assert read_namespace_requests({}, manager=CLUSTER) == ()
    everywhere = read_namespace_requests({}, manager=CLUSTER, all_clusters=True)
    assert everywhere == (NamespaceRequest(cluster_name="here", namespace=None),)


@pytest.mark.parametrize(
    ("meta", "quotas", "kind", "text"),
    [
        ({"there": AUTO}, {}, InvalidRequest, "no resource manager with cluster name there"),
        ({"": AUTO}, {"there": 1}, InvalidRequest, "no resource manager with cluster name there"),
        ({"": named("a", auto_create_namespace=True)}, {}, InvalidRequest, "but cannot request both."),
        ({"": NamespaceMeta()}, {}, InvalidRequest, "must either specify a namespace or indicate"),
        ({"here": EVERYWHERE}, {}, InvalidRequest, "cannot specify a cluster name when you request to auto-create"),
        ({"": AUTO, "here": AUTO}, {}, InvalidRequest, "more than once"),
        ({"": AUTO}, {"": 1, "here": 1}, InvalidRequest, "more than once"),
        ({"here": NamespaceMeta(cluster_name="there")}, {}, InvalidRequest, "the entry of cluster here is about there"),
        ({"": named("../x")}, {}, InvalidRequest, "error finding namespace ../x"),
        ({"": named("team")}, {"": 1}, FailedPrecondition, "not bound to an auto-created namespace"),
        ({"": named("team", resource_quota=1)}, {}, FailedPrecondition, "not bound to an auto-created namespace"),
        ({}, {"": 1}, FailedPrecondition, "not bound to an auto-created namespace"),
        ({"": limited(1)}, {"": 2}, InvalidRequest, "two resource quotas"),
        ({"": limited(-1)}, {}, InvalidRequest, "a number of slots"),
    ],
)
def test_what_cannot_be(
    meta: dict[str, NamespaceMeta], quotas: dict[str, int], kind: type[ResoluteError], text: str
) -> None:
    with pytest.raises(kind) as caught:
        read_namespace_requests(meta, quotas, manager=CLUSTER)
    assert text in str(caught.value)


@pytest.mark.parametrize(("meta", "quotas"), [({"": AUTO}, {}), ({}, {"": 1})])
def test_processes_have_no_namespaces(meta: dict[str, NamespaceMeta], quotas: dict[str, int]) -> None:
    with pytest.raises(FailedPrecondition, match="run as processes"):
        read_namespace_requests(meta, quotas, manager=ResourceManagerConfig())
