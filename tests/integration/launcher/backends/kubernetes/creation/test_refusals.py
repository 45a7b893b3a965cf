"""What cannot be made leaves nothing behind, and says why in the words of the API server: acceptance item A9."""

from __future__ import annotations

import msgspec
import pytest

from libs.cluster.config import SecurityConfig
from libs.events.orders import Environment, Owner, UsersPod
from tests.harness.waiting import eventually
from tests.integration.launcher.backends.kubernetes.allocations.test_life import limit
from tests.integration.launcher.backends.kubernetes.launcher_harness import RBAC, LauncherHarness, account_of, task

pytestmark = pytest.mark.cluster


async def refused(harness: LauncherHarness, allocation: str) -> str:
    """The words of an allocation that was refused, after which nothing of it is there."""
    ended = await harness.until_ended(allocation, timeout_s=60)
    assert (ended.failure, ended.pods) == ("LAUNCH_ERROR", ())
    await harness.namespace.until_empty()
    return ended.message


async def test_a_user_id_that_there_cannot_be(harness: LauncherHarness) -> None:
    words = await refused(harness, await harness.run(task(owner=Owner(username="alice", uid=-1))))
    assert "runAsUser: Invalid value: -1: must be between 0 and 2147483647, inclusive" in words


async def test_a_namespace_in_which_nothing_may_be_made_any_more(harness: LauncherHarness) -> None:
    account = account_of(harness)["name"]
    await harness.namespace.api.delete(f"{RBAC}/namespaces/{harness.namespace.name}/rolebindings/{account}")

    async def is_forbidden() -> bool:
        body = {
            "apiVersion": "authorization.k8s.io/v1",
            "kind": "SubjectAccessReview",
            "spec": {
                "user": f"system:serviceaccount:{harness.namespace.name}:{account}",
                "resourceAttributes": {
                    "namespace": harness.namespace.name,
                    "verb": "create",
                    "group": "batch",
                    "resource": "jobs",
                },
            },
        }
        answer = await harness.namespace.create("/apis/authorization.k8s.io/v1/subjectaccessreviews", body)
        return not answer["status"]["allowed"]

    await eventually(is_forbidden, every_s=0.1)
    words = await refused(harness, await harness.run(task()))
    assert 'cannot create resource "jobs" in API group "batch"' in words


async def test_a_job_that_is_not_one(harness: LauncherHarness) -> None:
    pod_spec = {"spec": {"containers": [{"name": "No Name", "image": "i"}]}}
    words = await refused(harness, await harness.run(task(environment=Environment(image="i", pod_spec=pod_spec))))
    assert 'Invalid value: "No Name"' in words


async def test_a_quota_that_refuses_secrets_takes_the_job_back(harness: LauncherHarness) -> None:
    await limit(harness, {"metadata": {"name": "q"}, "spec": {"hard": {"count/secrets": "0"}}})
    assert "exceeded quota: q" in await refused(harness, await harness.run(task()))


async def test_a_reference_in_a_namespace_that_has_become_that_of_a_release(idle: LauncherHarness) -> None:
    name = idle.namespace.name
    idle.cluster = msgspec.structs.replace(idle.cluster, security=SecurityConfig(release_namespace=name))
    await idle.start()
    pod = {"spec": {"volumes": [{"name": "v", "secret": {"secretName": "resolute-generated-det"}}]}}
    spec = task(environment=Environment(image="i", pod_spec=pod), users_pod=UsersPod(pod=pod))
    words = await refused(idle, await idle.run(spec))
    assert words.startswith(
        "environment.pod_spec.spec.volumes[0].secret.secretName refers to Secret/resolute-generated"
    )
    assert words.endswith(
        f"in the namespace {name}, where the services of this installation run; security.references can allow it"
    )
