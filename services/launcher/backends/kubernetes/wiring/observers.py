"""The parts that hear what happens in the cluster: to allocations of the pool, to its nodes, and in events."""

from __future__ import annotations

from dataclasses import dataclass

from libs.clock import Clock
from libs.podspec.pod_requests import Requests
from services.launcher.backends.kubernetes.allocations.task_log.reporters import EventReporter, Reporter
from services.launcher.backends.kubernetes.allocations.tracking import Tracker
from services.launcher.backends.kubernetes.background import Background
from services.launcher.backends.kubernetes.capacity.node_matching import pool_requirements
from services.launcher.backends.kubernetes.capacity.node_parts import BadNodes
from services.launcher.backends.kubernetes.capacity.tracker import CapacityTracker
from services.launcher.backends.kubernetes.client.api import KubeApi
from services.launcher.backends.kubernetes.creation.priority_classes import PriorityClasses
from services.launcher.backends.kubernetes.wiring.configured_pool import ConfiguredPool
from services.launcher.task_lines import Lines


@dataclass(frozen=True, kw_only=True)
class Observers:
    reporter: Reporter
    tracker: Tracker
    capacity_tracker: CapacityTracker
    events: EventReporter


def observers_of(
    pool: ConfiguredPool,
    api: KubeApi,
    *,
    lines: Lines,
    classes: PriorityClasses,
    clock: Clock,
    background: Background,
    launcher_requests: Requests,
) -> Observers:
    """They know nothing until informers tell them.

    lines              takes what they write into the logs of tasks
    launcher_requests  what the launcher's own containers request in each pod
    """
    reporter = Reporter(api, lines=lines, clock=clock, background=background)
    tracker = Tracker(
        pool=pool.name,
        clock=clock,
        stuck_grace_s=pool.settings.stuck_grace_s,
        gang_grace_s=pool.settings.gang_grace_s,
        listener=reporter,
    )
    capacity_tracker = CapacityTracker(
        pool=pool.name,
        namespace=pool.namespace,
        cluster_id=pool.cluster_id,
        kind=pool.slot_kind,
        requirements=pool_requirements(pool.cluster, pool.name),
        max_slots_per_pod=pool.cluster.max_slots_per_pod(pool.name),
        max_aux_per_node=pool.config.max_aux_containers_per_agent,
        assumed_slots=pool.settings.assumed_slots,
        launcher_requests=launcher_requests,
        bad_nodes=BadNodes(conditions=pool.config.bad_node_conditions, taints=pool.config.bad_node_taints),
        tracker=tracker,
        clock=clock,
    )
    events = EventReporter(
        lines=lines,
        clock=clock,
        slot_type=pool.slot_kind.type,
        free_slots_in=capacity_tracker.free_slots_in,
        tracker=tracker,
        no_class=classes.missing,
    )
    return Observers(reporter=reporter, tracker=tracker, capacity_tracker=capacity_tracker, events=events)
