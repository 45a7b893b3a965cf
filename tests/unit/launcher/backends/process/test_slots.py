"""Devices of this machine are given out lowest first, and the capacity says who holds them."""

from __future__ import annotations

import pytest

from services.launcher.backends.process.slots import device_ids, node_capacity, take_devices


@pytest.mark.parametrize(
    ("held", "num_pods", "per_pod", "expected"),
    [
        ((), 1, 2, (("000", "001"),)),
        (("000", "002"), 1, 1, (("001",),)),
        (("001",), 2, 1, (("000",), ("002",))),
        ((), 1, 0, ((),)),
        ((), 3, 0, ((), (), ())),
        (("000", "001", "002"), 2, 1, (("003",), ())),
    ],
)
def test_devices_are_taken_lowest_first(
    held: tuple[str, ...], num_pods: int, per_pod: int, expected: tuple[tuple[str, ...], ...]
) -> None:
    assert take_devices(device_ids(4), held, pod_slots=(per_pod,) * num_pods) == expected


def test_capacity_names_holders_and_auxiliary_tasks() -> None:
    node = node_capacity(
        name="n",
        address="127.0.0.1",
        registered_at="",
        slots=3,
        holders=[("a.1", ("pod-0", "pod-1"), (("000",), ("001",))), ("b.1", ("pod",), ((),))],
    )
    assert [(device.id, device.allocation, device.container) for device in node.devices] == [
        ("000", "a.1", "pod-0"),
        ("001", "a.1", "pod-1"),
        ("002", None, None),
    ]
    assert node.aux_containers == ("b.1",)
