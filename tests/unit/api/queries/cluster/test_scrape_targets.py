from __future__ import annotations

import msgspec

from libs.events.capacity import NodeCapacity, PoolCapacity
from services.api.queries.cluster.scrape_targets import scrape_targets


def pool(name: str, **nodes: tuple[str, ...]) -> PoolCapacity:
    seen = tuple(NodeCapacity(name=node, addresses=addresses) for node, addresses in nodes.items())
    return PoolCapacity(pool=name, backend="kubernetes", nodes=seen)


def test_each_node_is_a_group_with_both_exporters() -> None:
    assert [
        msgspec.structs.asdict(group) for group in scrape_targets([pool("gpus", b=("10.0.0.2",), a=("10.0.0.1",))])
    ] == [
        {"targets": (f"{ip}:9400", f"{ip}:8080"), "labels": {"det_agent_id": node, "det_resource_pool": "gpus"}}
        for node, ip in (("a", "10.0.0.1"), ("b", "10.0.0.2"))
    ]


def test_a_node_of_several_pools_is_scraped_once() -> None:
    (group,) = scrape_targets([pool("small", a=("10.0.0.1",)), pool("large", a=("10.0.0.1",))])
    assert group.labels == {"det_agent_id": "a", "det_resource_pool": "large,small"}


def test_an_address_is_one_that_a_prometheus_elsewhere_reaches() -> None:
    groups = scrape_targets([pool("p", a=("node-a", "10.0.0.1"), b=("fd00::1",), c=("node-c",), d=())])
    assert [group.targets[0] for group in groups] == ["10.0.0.1:9400", "[fd00::1]:9400", "node-c:9400"]
