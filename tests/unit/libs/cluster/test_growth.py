"""How a pool grows, as files say it."""

from __future__ import annotations

from typing import Any

import pytest

from libs.errors import InvalidRequest
from tests.unit.libs.cluster.reading import read


def reading(**pool: Any) -> Any:
    manager = {"type": "kubernetes", "max_slots_per_pod": 8}
    config, _ = read({"resource_manager": manager, "resource_pools": [{"pool_name": "default", **pool}]})
    return config.resource_pools[0].growth


def test_processes_do_not_grow() -> None:
    with pytest.raises(InvalidRequest, match="growth needs a resource_manager of type kubernetes"):
        read({"resource_pools": [{"pool_name": "default", "growth": {}}]})


def test_a_pool_asks_for_nothing_unless_it_says_so() -> None:
    assert reading() is None


def test_an_empty_section_is_enough() -> None:
    growth = reading(growth={})
    assert (growth.deadline, growth.max_nodes, growth.node_template) == (900, None, None)
    assert (growth.autoscaler, growth.priority_class, growth.image) == ("auto", "", "registry.k8s.io/pause:3.10")


@pytest.mark.parametrize(
    ("pool", "said"),
    [
        ({"growth": {}, "can_grow": False}, "can_grow: false"),
        ({"growth": {"node_template": {"slots": 8, "memory": "lots"}}}, "memory: 'lots' is no amount"),
        ({"growth": {"node_template": {}}}, "slots"),
        ({"growth": {"deadline": 0}}, "deadline"),
        ({"growth": {"grow_deadline": 60}}, "grow_deadline"),
    ],
)
def test_what_cannot_be_meant_is_refused(pool: dict[str, Any], said: str) -> None:
    with pytest.raises(InvalidRequest) as refused:
        reading(**pool)
    assert said in str(refused.value)
