"""Task specs for tests, one line each."""

from __future__ import annotations

from typing import Any

from libs.events.orders import Owner, TaskSpec, TrialTask


def task(task_type: str = "COMMAND", **fields: Any) -> TaskSpec:
    values: dict[str, Any] = {
        "task": "t",
        "task_type": task_type,
        "name": "Task",
        "description": "cmd-t",
        "cluster_id": "c",
        "owner": Owner(username="alice", uid=1000, user="al", gid=1001, group="als"),
        "slots": 0,
        "session_token": "session",
        "user_token": "user",
    }
    return TaskSpec(**{**values, **fields})


def trial(**fields: Any) -> TaskSpec:
    values: dict[str, Any] = {
        "experiment_id": 5,
        "trial_id": 7,
        "trial_run_id": 2,
        "seed": 1234567,
        "config": {"name": "x", "entrypoint": "python3 train.py"},
        "hparams": {"lr": 0.1, "global_batch_size": 32},
        "ssh_private_key": "private",
        "ssh_public_key": "public",
    }
    known = {name: fields.pop(name) for name in list(fields) if name in values or name == "latest_checkpoint"}
    return task("TRIAL", **{"slots": 1, "trial": TrialTask(**{**values, **known}), **fields})
