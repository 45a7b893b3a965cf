"""Rows for tests: one line per row."""

from __future__ import annotations

from typing import Any

from services.scheduler.transactions.rows import AllocationRow, TrialRow
from tests.harness import FakeClock


def allocation(**fields: Any) -> AllocationRow:
    """An allocation of a trial that has its slots since the clock began, unless ``fields`` say otherwise."""
    now = FakeClock().now()
    usual: dict[str, Any] = {
        "allocation_id": "1.x.1",
        "task_id": "1.x",
        "job_id": "j",
        "name": "Trial 1 (Experiment 1)",
        "pool": "default",
        "slots": 1,
        "num_pods": 1,
        "preemptible": True,
        "preemption_timeout_s": 60,
        "state": "ASSIGNED",
        "requested_at": now,
        "assigned_at": now,
    }
    return AllocationRow(**usual | fields)


def trial(**fields: Any) -> TrialRow:
    """An active trial, unless ``fields`` say otherwise."""
    usual: dict[str, Any] = {
        "id": 1,
        "experiment_id": 1,
        "request_id": "x",
        "seed": 1,
        "hparams": {},
        "state": "ACTIVE",
        "restarts": 0,
        "run_id": 1,
        "end_time": None,
        "warm_start_checkpoint_uuid": None,
        "stopped_by_searcher": False,
        "early_exit_reason": None,
        "early_exit_deadline": None,
        "blocked_nodes": [],
        "transient_ends": 0,
        "not_before": None,
        "error": None,
        "ran_s": 0.0,
    }
    return TrialRow(**usual | fields)
