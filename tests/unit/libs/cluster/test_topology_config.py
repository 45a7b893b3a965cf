"""The topology of a pool: what its levels may be, and what work may ask of them."""

from __future__ import annotations

from typing import Any

import pytest

from libs.cluster.topology import check_topology
from libs.errors import InvalidRequest
from tests.unit.libs.cluster.reading import assert_refused, kubernetes, read

ZONE, RACK = "topology.kubernetes.io/zone", "example.com/rack"
PLACE = "resource_pools[default].scheduler.topology"


def with_topology(**topology: Any) -> dict[str, Any]:
    pools = [{"pool_name": "default", "scheduler": {"topology": topology}}, {"pool_name": "flat"}]
    return kubernetes() | {"resource_pools": pools}


def test_levels_and_a_default_are_read_as_written() -> None:
    config, _ = read(with_topology(levels=[ZONE, RACK, "kubernetes.io/hostname"], default={"preferred": RACK}))
    topology = config.scheduler_of(config.resource_pools[0]).topology
    assert topology is not None
    assert topology.levels == (ZONE, RACK, "kubernetes.io/hostname")
    assert (topology.default.preferred, topology.default.required) == (RACK, "")


@pytest.mark.parametrize(
    ("topology", "says"),
    [
        ({"levels": []}, "levels: must name a label of nodes, such as topology.kubernetes.io/zone"),
        ({"levels": ["a b"]}, "levels: 'a b' is no key of a label, such as topology.kubernetes.io/zone"),
        ({"levels": ["a/b/c"]}, "levels: 'a/b/c' is no key of a label, such as topology.kubernetes.io/zone"),
        ({"levels": ["/rack"]}, "levels: '/rack' is no key of a label, such as topology.kubernetes.io/zone"),
        ({"levels": [RACK, ZONE, RACK]}, f"levels: {RACK} is there twice"),
        (
            {"levels": [ZONE], "default": {"required": RACK}},
            f"default.required: {RACK} is none of the levels: {ZONE}",
        ),
        (
            {"levels": [ZONE], "default": {"required": ZONE, "preferred": ZONE}},
            "default: must name one level, either as preferred or as required",
        ),
    ],
)
def test_what_makes_no_sense_is_refused_with_its_place(topology: dict[str, Any], says: str) -> None:
    assert_refused(with_topology(**topology), f"{PLACE}.{says}")


def test_nodes_without_labels_have_no_topology() -> None:
    pools = [{"pool_name": "default", "scheduler": {"topology": {"levels": [ZONE]}}}]
    assert_refused({"resource_pools": pools}, f"{PLACE}: only nodes of Kubernetes have labels")


def test_work_may_name_the_levels_of_its_pool() -> None:
    config, _ = read(with_topology(levels=[ZONE, RACK]))
    for resources in ({}, {"topology": None}, {"topology": {"preferred": ZONE}}, {"topology": {"required": RACK}}):
        check_topology(config, "default", resources)


@pytest.mark.parametrize(
    ("pool", "topology", "says"),
    [
        (
            "default",
            {"required": "block"},
            f"resources.topology.required: resource pool default has no level block; it has {ZONE}, {RACK}",
        ),
        (
            "flat",
            {"preferred": RACK},
            f"resources.topology.preferred: resource pool flat has no level {RACK}; it has none",
        ),
    ],
)
def test_work_may_not_name_others(pool: str, topology: dict[str, str], says: str) -> None:
    config, _ = read(with_topology(levels=[ZONE, RACK]))
    with pytest.raises(InvalidRequest) as refused:
        check_topology(config, pool, {"topology": topology})
    assert str(refused.value) == says
