"""What a task is told about ports that are not proxied, without a cluster."""

from __future__ import annotations

from typing import Any

from libs.cluster.config import TaskGatewayConfig
from libs.events.orders import ProxyPort
from services.launcher.backends.kubernetes.allocations.state.allocation import TrackedAllocation
from services.launcher.backends.kubernetes.gateway.task_gateway import TaskGateway
from tests.unit.launcher.backends.kubernetes.builders import run
from tests.unit.launcher.backends.kubernetes.gateway.test_listeners import START, claimed, gateway, wanted
from tests.unit.launcher.specs import task

CONFIG = TaskGatewayConfig(gateway_name="tasks", gateway_namespace="gateways", gateway_ip="192.0.2.7")


class OneGateway:
    """An API server that has a Gateway and nothing else."""

    def __init__(self, found: dict[str, Any]) -> None:
        self._found = found

    async def get(self, path: str, kind: type) -> Any:
        assert path.endswith("/gateways/tasks"), path
        return self._found


def task_gateway(found: dict[str, Any], tracked: TrackedAllocation, said: list[str]) -> TaskGateway:
    return TaskGateway(
        OneGateway(found),
        config=CONFIG,
        launcher="mine",
        allocations={tracked.allocation: tracked},
        say=lambda _, text: said.append(text),
        restored=lambda _: None,
    )


async def test_a_task_of_several_pods_is_told_once_that_its_ports_are_not_proxied() -> None:
    said: list[str] = []
    tracked = run(num_pods=2)
    spec = task(num_pods=2, proxy_ports=(ProxyPort(service_id="1.x", port=8888), ProxyPort(service_id="y", port=6006)))
    starting = task_gateway(gateway(), tracked, said)
    for _ in range(2):
        assert await starting.claim(tracked, spec, ()) == ()
    assert said == [
        "did not proxy as expected 0 (found addrs [], requested 2):"
        " a task of several pods cannot be reached through the gateway"
    ]


async def test_a_launcher_that_starts_says_which_listeners_are_left() -> None:
    whole = claimed(gateway(), wanted("1.x.1", 8888, 6006))
    listeners = [each for each in whole["spec"]["listeners"] if each["port"] != START]
    for found, expected in (
        (whole, []),
        (
            {**whole, "spec": {"listeners": listeners}},
            [
                f"did not proxy as expected 1 (found addrs [192.0.2.7:{START + 1}], requested 2):"
                " somebody has removed listeners from the gateway"
            ],
        ),
    ):
        said: list[str] = []
        assert await task_gateway(found, run(), said).settle()
        assert said == expected
