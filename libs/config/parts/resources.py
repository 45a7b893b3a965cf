"""Resources that a task asks of its pool: slots, shared memory, devices, and its priority in the queue.

Source: docs/reference/experiments.md 1.3 (resources); docs/reference/scheduling.md 1 (task-level resources).
"""

from __future__ import annotations

from typing import Final

from libs.config.parts.mounts import devices
from libs.shapes.fallback_pools import fallback_pools
from libs.shapes.shape import MOST_COUNTED, Fields, flag, number, record, text, whole
from libs.shapes.sizes import memory_size
from libs.shapes.time_limits import time_limit
from libs.shapes.topology import topology

COMMON_FIELDS: Final[Fields] = {
    "max_slots": whole(0, MOST_COUNTED),
    "weight": number(above=0),
    "priority": whole(1, 99),
    "resource_pool": text,
    "is_single_node": flag,
    "native_parallel": flag,
    "shm_size": memory_size,
    "devices": devices,
    "time_limit": time_limit,
    "fallback_pools": fallback_pools,
    "topology": topology,
}
"""Fields that every kind of task has; an experiment counts its slots per trial, other tasks have ``slots``."""

experiment_resources: Final = record(
    {"slots_per_trial": whole(0, MOST_COUNTED), **COMMON_FIELDS}, ignored=("agent_label",)
)
