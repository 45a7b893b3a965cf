"""``internal_task_gateway``: what is refused at the start, in the words that administrators know."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
import yaml

from libs.cluster.config import TaskGatewayConfig
from libs.cluster.loading import load_cluster_config
from libs.errors import InvalidRequest

GOOD: dict[str, Any] = {"gateway_name": "tasks", "gateway_namespace": "gateways", "gateway_ip": "10.0.0.1"}
ORDER = "gateway_port_range_start must be less than or equal to gateway_port_range_end"


def load(tmp_path: Path, **fields: Any) -> TaskGatewayConfig | None:
    path = tmp_path / "cluster.yaml"
    path.write_text(yaml.safe_dump({"resource_manager": {"internal_task_gateway": {**GOOD, **fields}}}))
    return load_cluster_config(path).resource_manager.internal_task_gateway


def test_what_is_not_said_has_defaults(tmp_path: Path) -> None:
    config = load(tmp_path)
    assert config is not None
    assert (config.gateway_port_range_start, config.gateway_port_range_end) == (32768, 65535)


@pytest.mark.parametrize(
    "fields",
    [
        {"gateway_name": "a"},
        {"gateway_name": "a" * 63},
        {"gateway_name": "My_gate.way-1"},
        {"gateway_ip": "gateway.example.com"},
        {"gateway_port_range_start": 1025, "gateway_port_range_end": 1026},
        {"gateway_port_range_start": "2000", "gateway_port_range_end": 65535},
    ],
)
def test_these_are_fine(tmp_path: Path, fields: dict[str, Any]) -> None:
    assert load(tmp_path, **fields) is not None


@pytest.mark.parametrize(
    ("fields", "begins"),
    [
        ({"gateway_name": ""}, "invalid gateway_name: "),
        ({"gateway_name": "a" * 64}, "invalid gateway_name: "),
        ({"gateway_name": "../x"}, "invalid gateway_name: "),
        ({"gateway_namespace": ""}, "invalid gateway_namespace: "),
        ({"gateway_namespace": "-x"}, "invalid gateway_namespace: "),
        ({"gateway_namespace": "x\n"}, "invalid gateway_namespace: "),
        ({"gateway_ip": ""}, "invalid gateway_ip: "),
        ({"gateway_ip": " "}, "invalid gateway_ip: "),
        ({"gateway_port_range_start": 1024}, "invalid gateway_port_range_start: "),
        ({"gateway_port_range_end": 65536}, "invalid gateway_port_range_end: "),
        ({"gateway_port_range_start": 40000, "gateway_port_range_end": 39999}, ORDER),
        ({"gateway_port_range_start": 40000, "gateway_port_range_end": 40000}, ORDER),
    ],
)
def test_these_are_refused(tmp_path: Path, fields: dict[str, Any], begins: str) -> None:
    with pytest.raises(InvalidRequest) as raised:
        load(tmp_path, **fields)
    assert str(raised.value).startswith(f"resource_manager.internal_task_gateway: {begins}")


def test_everything_that_is_wrong_is_said_at_once(tmp_path: Path) -> None:
    with pytest.raises(InvalidRequest) as raised:
        load(tmp_path, gateway_name="", gateway_ip="", gateway_port_range_end=1)
    words = str(raised.value)
    assert [
        part for part in ("gateway_name", "gateway_ip", "gateway_port_range_end: 1", ORDER) if part not in words
    ] == []


def test_unknown_keys_are_refused(tmp_path: Path) -> None:
    with pytest.raises(InvalidRequest, match="nonsense"):
        load(tmp_path, nonsense=1)
