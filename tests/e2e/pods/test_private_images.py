"""Images that not everybody may pull, and what owners read when they may not."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import pytest

from tests.harness.client import Client
from tests.harness.kubectl import Kubectl
from tests.harness.looking import Looking
from tests.harness.registry import PASSWORD, USERNAME, Registry, private_registry
from tests.harness.waiting import wait_until
from tests.programs import submit

pytestmark = [pytest.mark.cluster, pytest.mark.kubelet]

AUTH = {"username": USERNAME, "password": PASSWORD}


@pytest.fixture(scope="module")
def registry(task_image: str) -> Iterator[Registry]:
    with private_registry(task_image) as started:
        yield started


def says_where(det: Client, image: str, **environment: Any) -> int:
    """A task of ``image``, pulled every time, that says where it runs."""
    return submit(
        det,
        "echo running on $DET_AGENT_ID",
        resources={"slots_per_trial": 0},
        environment={"image": image, "force_pull_image": True, **environment},
    )


def log_of(look: Looking, experiment: int) -> str:
    return "".join(line["log"] for line in look.logs(look.trial(experiment)["id"]))


def wait_until_nothing_is_left(kubectl: Kubectl, experiment: int) -> None:
    """Its pods outlive the trial by the time that their sidecars need."""

    def has_nothing() -> bool:
        return not [
            name for kind in ("jobs", "secrets") for name in kubectl.names(kind) if f"exp-{experiment}-" in name
        ]

    wait_until(has_nothing, what="neither Job nor Secret is left")


def test_with_a_secret_that_the_pod_spec_names(
    det: Client, look: Looking, kubectl: Kubectl, registry: Registry
) -> None:
    kubectl.shell(
        f"kubectl create secret -n {kubectl.namespace} docker-registry ngccred --docker-server={registry.address}"
        f" --docker-username={USERNAME} --docker-password='{PASSWORD}' --docker-email=ada@example.org"
    )
    pod_spec = {"apiVersion": "v1", "kind": "Pod", "spec": {"imagePullSecrets": [{"name": "ngccred"}]}}
    experiment = says_where(det, registry.image("secret:1"), pod_spec=pod_spec)
    look.wait(experiment)
    assert "running on " in log_of(look, experiment)


def test_with_registry_auth(det: Client, look: Looking, kubectl: Kubectl, registry: Registry) -> None:
    experiment = says_where(det, registry.image("auth:1"), registry_auth=AUTH)
    look.wait(experiment)
    log = log_of(look, experiment)
    assert "running on " in log
    assert PASSWORD not in log, "nor does the configuration that the harness prints have it"

    wait_until_nothing_is_left(kubectl, experiment)


def test_without_credentials_it_ends_and_says_why(
    det: Client, look: Looking, kubectl: Kubectl, registry: Registry
) -> None:
    image = registry.image("refused:1")
    wrong = {**AUTH, "password": "wrong"}
    # What Docker says of it, and what containerd does.
    refusals = {
        says_where(det, image): ("no basic auth credentials", "401 unauthorized"),
        says_where(det, image, registry_auth=wrong): ("unauthorized",),
    }
    for experiment, words in refusals.items():
        look.wait(experiment, "STATE_ERROR")
        log = log_of(look, experiment)
        assert "running on " not in log
        [crash] = [line for line in log.splitlines() if line.startswith("crashed:")]
        assert "unrecoverable image pull errors" in crash
        assert f'"{image}"' in crash
        assert any(each in crash.lower() for each in words), crash
        wait_until_nothing_is_left(kubectl, experiment)
