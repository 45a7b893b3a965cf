"""Which tests show the acceptance scenarios of docs/reference/scheduling.md 16. Data.

A test is named by its file and its function; of a table, the name of a row follows in brackets.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final

_SCENARIOS: Final = "tests/scenarios/queue"
_QUEUE: Final = "tests/integration/scheduler/queue"
_CLUSTER: Final = "tests/integration/scheduler/on_cluster"
_API: Final = "tests/integration/api"

ACCEPTANCE: Final[Mapping[str, tuple[str, ...]]] = {
    "B1": (
        f"{_CLUSTER}/test_gangs.py::test_a_gang_that_needs_more_than_there_is_waits_without_a_pod",
        f"{_CLUSTER}/test_gangs.py::test_two_gangs_of_twelve_slots_on_sixteen_run_one_after_the_other",
    ),
    "B2": (
        f"{_SCENARIOS}/test_fair_share.py::test_fair_share",
        f"{_SCENARIOS}/test_nested_shares.py::test_parts_of_a_pool",
    ),
    "B3": (
        "tests/integration/scheduler/tasks/test_preemptible_tasks.py::test_what_opted_in_is_stopped_with_grace_and_starts_again",
    ),
    "B4": (f"{_SCENARIOS}/test_reservations.py::test_a_large_job_among_endless_small_ones_starts_within_the_bound",),
    "B5": (
        f"{_SCENARIOS}/test_uneven_pods.py::test_uneven_pods[six slots of two nodes with four are two pods of three]",
        f"{_SCENARIOS}/test_uneven_pods.py"
        "::test_uneven_pods[and one pod on a node of eight, where a pod may have so many]",
        f"{_CLUSTER}/test_uneven_pods.py::test_any_number_of_slots_starts_whole_or_waits",
    ),
    "B6": (f"{_SCENARIOS}/test_uneven_pods.py::test_uneven_pods[eight slots on nodes of four and eight are one pod]",),
    "B7": (
        f"{_SCENARIOS}/test_priority_queue.py::test_queue[one slot in a pool that has none]",
        "tests/e2e/test_before_submitting.py::test_what_was_checked_is_what_happens",
    ),
    "B8": (
        f"{_QUEUE}/test_fallback_pools.py::test_it_waits_in_its_own_pool_for_as_long_as_it_says",
        "tests/e2e/test_fallback_pools.py::test_a_trial_starts_in_the_pool_that_has_room",
    ),
    "B9": (
        f"{_QUEUE}/test_growing.py::test_an_empty_pool_grows_for_a_gang_and_starts_it_on_what_came",
        f"{_CLUSTER}/test_growing.py::test_the_missing_nodes_are_asked_for_and_the_gang_starts_on_them",
    ),
    "B10": (
        f"{_SCENARIOS}/test_reservations.py::test_a_job_of_the_whole_cluster_starts_in_the_plan_after_the_last_slot_came_free",
    ),
    "B11": (f"{_API}/cluster/test_queue_moves.py::test_a_job_is_moved_ahead_of_another_and_behind_it",),
    "B12": (f"{_QUEUE}/test_preemption.py::test_max_slots_that_is_lowered_lets_trials_leave_though_nothing_waits",),
    "B13": (
        f"{_QUEUE}/test_namespaces.py::test_quota_of_a_workspace_holds_over_all_pools",
        f"{_QUEUE}/test_limits.py::test_a_user_holds_no_more_than_allowed_and_goes_on_when_something_ends",
    ),
    "B14": (f"{_QUEUE}/test_priorities.py::test_a_new_priority_restarts_nothing",),
    "B15": (
        f"{_QUEUE}/test_preemption.py::test_the_scheduler_after_it_changes_neither_victim_nor_deadline",
        f"{_CLUSTER}/test_preemption.py::test_a_scheduler_that_takes_over_changes_neither_victim_nor_deadline",
    ),
    "B16": (
        f"{_QUEUE}/test_nodes.py::test_draining_node_finishes_what_it_has_and_starts_nothing",
        f"{_CLUSTER}/test_gangs.py::test_half_of_a_gang_does_not_start_when_a_node_is_drained",
    ),
    "B17": (f"{_SCENARIOS}/test_priority_queue.py::test_queue[101st aux task waits]",),
    "B18": (
        f"{_QUEUE}/test_waits.py::test_the_log_of_a_task_says_once_why_it_waits",
        f"{_API}/cluster/test_cluster_with_client.py::test_what_waits_says_why",
    ),
    "B19": (f"{_API}/cluster/test_silent_launcher.py::test_lists_show_the_nodes_and_pools_of_others",),
    "B20": (
        f"{_SCENARIOS}/test_topology.py::test_topology[and those of one zone before others]",
        f"{_CLUSTER}/test_topology.py::test_a_gang_runs_in_the_rack_that_has_room",
    ),
}
"""Row of the table -> tests."""
