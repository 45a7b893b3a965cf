"""What a user's pod spec adds to a task: volumes, init containers, sidecars, sizes..

All tasks are submitted at once and run side by side; each test looks at its own.
"""

from __future__ import annotations

from operator import attrgetter
from typing import Any

import pytest
from msgspec import Struct

from tests.harness.client import Client
from tests.harness.kubectl import Kubectl
from tests.harness.looking import Looking
from tests.harness.waiting import wait_until
from tests.programs import submit

pytestmark = [pytest.mark.cluster, pytest.mark.kubelet]

Json = dict[str, Any]

EMPTY_DIR = {"name": "mine", "emptyDir": {}}
MOUNT = {"name": "mine", "mountPath": "/mine"}
MAIN = {"name": "determined-container", "volumeMounts": [MOUNT]}


def shell(name: str, script: str, **fields: Any) -> Json:
    """A container that runs ``script`` in the image of the task."""
    return {"name": name, "image": "IMAGE", "command": ["sh", "-c", script], **fields}


class Case(Struct, frozen=True, kw_only=True):
    name: str
    spec: Json
    entrypoint: str = "true"
    slots: int = 0
    state: str = "STATE_COMPLETED"
    says: str = ""
    """A line of the task's log, of the task itself or about it."""


CASES = [
    Case(
        name="an empty directory",
        spec={"volumes": [EMPTY_DIR], "containers": [MAIN]},
        entrypoint="touch /mine/file && df --output=target /mine",
        says="/mine",
    ),
    Case(
        name="an empty directory, with a sidecar first",
        spec={"volumes": [EMPTY_DIR], "containers": [shell("first", "sleep 1000"), MAIN]},
        entrypoint="touch /mine/file && df --output=target /mine",
        says="/mine",
    ),
    Case(
        name="an init container that ends well",
        spec={
            "volumes": [EMPTY_DIR],
            "initContainers": [shell("before", "echo prepared > /mine/file", volumeMounts=[MOUNT])],
            "containers": [MAIN],
        },
        entrypoint="cat /mine/file",
        says="prepared",
    ),
    Case(
        name="an init container that fails",
        spec={"initContainers": [shell("before", "exit 1")]},
        entrypoint="echo never seen",
        state="STATE_ERROR",
        says="container before: Error (exit code 1)",
    ),
    Case(name="a sidecar that fails", spec={"containers": [shell("beside", "exit 1")]}),
    Case(name="a sidecar without an end", spec={"containers": [shell("beside", "while :; do sleep 1; done")]}),
    Case(
        name="a sidecar without an end beside a task that fails",
        spec={"containers": [shell("beside", "while :; do sleep 1; done")]},
        entrypoint="exit 3",
        state="STATE_ERROR",
        says="exit code 3",
    ),
    *(
        Case(
            name=f"memory and CPU, slots_per_trial {slots}",
            spec={"containers": [{"name": "determined-container", "resources": {"requests": size, "limits": size}}]},
            slots=slots,
        )
        for slots, size in ((0, {"memory": "256Mi", "cpu": "100m"}), (1, {"memory": "256Mi"}))
    ),
]


def with_image(value: Any, image: str) -> Any:
    """``value`` with the image of the task where it says IMAGE."""
    if isinstance(value, dict):
        return {key: with_image(item, image) for key, item in value.items()}
    if isinstance(value, list):
        return [with_image(item, image) for item in value]
    return image if value == "IMAGE" else value


@pytest.fixture(scope="module")
def submitted(det: Client, task_image: str) -> dict[str, int]:
    """Name of the case -> its experiment."""
    return {
        case.name: submit(
            det,
            case.entrypoint,
            resources={"slots_per_trial": case.slots},
            environment={"pod_spec": {"apiVersion": "v1", "kind": "Pod", "spec": with_image(case.spec, task_image)}},
        )
        for case in CASES
    }


@pytest.mark.parametrize("case", CASES, ids=attrgetter("name"))
def test_pod_specs_of_users(case: Case, look: Looking, kubectl: Kubectl, submitted: dict[str, int]) -> None:
    experiment = submitted[case.name]
    look.wait(experiment, case.state)
    log = [line["log"] for line in look.logs(look.trial(experiment)["id"])]
    assert any(case.says in line for line in log), "".join(log)
    assert not any("never seen" in line for line in log)
    # Whatever a sidecar still does ends with the task.
    selector = f"determined.ai/experiment_id={experiment}"
    wait_until(lambda: not kubectl.names("pods", selector), timeout_s=120, every_s=0.5, what="its pods are gone")
