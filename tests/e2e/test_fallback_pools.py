"""What has waited long enough in its own pool starts in another one, through the unmodified client and harness
(docs/scheduling.md)."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from tests.harness.looking import Looking
from tests.harness.waiting import wait_until
from tests.harness.whole_system import running_system
from tests.programs import submit

pytestmark = pytest.mark.slow


def test_a_trial_starts_in_the_pool_that_has_room(tmp_path: Path) -> None:
    there = {"environment_variables": ["FROM=on-demand"]}
    config = tmp_path / "cluster.yaml"
    config.write_text(
        json.dumps(
            {
                "resource_manager": {
                    "type": "process",
                    "slot_type": "cpu",
                    "default_compute_resource_pool": "spot",
                    "default_aux_resource_pool": "spot",
                },
                "resource_pools": [
                    {"pool_name": "spot"},
                    {"pool_name": "on-demand", "task_container_defaults": there},
                ],
                "checkpoint_storage": {"type": "shared_fs", "host_path": str(tmp_path)},
            }
        )
    )
    with running_system(slots=1, config=str(config)) as system, system.http() as http:
        det, look = system.det(), Looking(http)
        first = submit(det, "sleep 1000")
        wait_until(lambda: look.state(first) == "STATE_RUNNING", what="the first one runs")
        fallback = {"slots_per_trial": 1, "fallback_pools": [{"pool": "on-demand", "after": "1s"}]}
        second = submit(det, "echo it came from $FROM; sleep 1000", resources=fallback)
        wait_until(lambda: look.state(second) == "STATE_RUNNING", what="the second one runs elsewhere")
        job = look.experiment(second)["jobId"]
        assert job in det("job", "list", "--resource-pool", "on-demand")
        assert job not in det("job", "list", "--resource-pool", "spot")
        wait_until(
            lambda: "it came from on-demand" in det("trial", "logs", str(look.trial(second)["id"])),
            what="it has the defaults of the pool in which it runs",
        )
        said = "".join(line["message"] for line in look.logs(look.trial(second)["id"]))
        assert "Starts in resource pool on-demand instead of spot" in said
        stored = det("experiment", "config", str(second))
        assert "resource_pool: spot" in stored
        assert "pool: on-demand" in stored
        for experiment in (second, first):
            det("experiment", "kill", str(experiment))
