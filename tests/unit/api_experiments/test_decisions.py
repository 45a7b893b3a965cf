"""Small decisions about experiments, made without any database."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from typing import Any

import pytest
from cryptography.hazmat.primitives.serialization import (
    load_pem_private_key,
    load_ssh_private_key,
    load_ssh_public_key,
)

from libs.cluster.config import ClusterConfig, ResourceManagerConfig, SshConfig
from libs.errors import InvalidRequest
from libs.events.capacity import Device, NodeCapacity, PoolCapacity
from libs.ssh_keys import new_key_pair
from libs.states.experiment import ExperimentState
from libs.states.trial import TrialState
from services.api.actions.experiments.bulk import DEFAULT_STATES
from services.api.actions.experiments.edit import changed_resources, changed_storage
from services.api.actions.experiments.resource_request import check_resources
from services.api.http.routing import shape_of
from services.api.queries.experiments.job_summary import NO_LINE, QueuedJob, summarise
from services.api.queries.experiments.original_config import mask_original_config
from services.api.queries.trials.validation_history import Point, improvements
from services.api.routes.checkpoints import checkpoints
from services.api.routes.experiments import actions as experiment_actions
from services.api.routes.experiments import experiments, model_definitions, searches
from services.api.routes.trials import trials
from services.api.routes.unimplemented import reference_endpoints
from services.api.wire.experiments.experiments import (
    ExperimentState as WireState,
)
from services.api.wire.experiments.experiments import (
    JobState,
    LaunchWarning,
    PatchCheckpointStorage,
    PatchResources,
)
from services.api.wire.trials.trials import TrialState as WireTrialState


def pool(*slots: int, backend: str = "process") -> PoolCapacity:
    nodes = (
        NodeCapacity(name=f"n{number}", devices=tuple(Device(id=str(device)) for device in range(count)), enabled=False)
        for number, count in enumerate(slots)
    )
    return PoolCapacity(pool="default", backend=backend, nodes=tuple(nodes))


@pytest.mark.parametrize(
    ("capacity", "per_pod", "slots", "single", "message"),
    [
        (pool(4, 4), None, 4, False, ""),
        (pool(4, 4), None, 8, False, "exceeds cluster capacity"),
        (pool(4, 4), 4, 8, False, ""),
        (pool(2, 4), None, 4, True, ""),
        (pool(2, 4), None, 5, True, "request unfulfillable, please try requesting less slots"),
        (pool(4, 4), 4, 12, False, "exceeds cluster capacity"),
        (pool(8), 4, 8, False, ""),
        (pool(8), 4, 7, False, "multiple of max_slots_per_pod"),
        (pool(8), 4, 8, True, "on single pod"),
        (pool(), None, 0, False, ""),
        (pool(), None, 1, False, "exceeds cluster capacity"),
        (pool(backend="kubernetes"), None, 99, False, ""),
        (None, None, 99, False, ""),
    ],
)
def test_request_that_can_never_run(
    capacity: PoolCapacity | None, per_pod: int | None, slots: int, single: bool, message: str
) -> None:
    strict = ClusterConfig(resource_manager=ResourceManagerConfig(max_slots_per_pod=per_pod))
    if not message:
        assert check_resources(strict, capacity, pool="default", slots=slots, single_pod=single) == []
        return
    with pytest.raises(InvalidRequest, match=message):
        check_resources(strict, capacity, pool="default", slots=slots, single_pod=single)


def test_request_that_may_never_run_is_a_warning_where_the_cluster_wants_that() -> None:
    warnings = check_resources(ClusterConfig(launch_error=False), pool(1), pool="default", slots=2)
    assert warnings == [LaunchWarning.CURRENT_SLOTS_EXCEEDED]
    with pytest.raises(InvalidRequest, match="request unfulfillable"):
        check_resources(ClusterConfig(launch_error=False), pool(1), pool="default", slots=2, single_pod=True)


RESOURCES: dict[str, Any] = {"slots_per_trial": 2, "max_slots": 4, "priority": 42, "weight": 1}


@pytest.mark.parametrize(
    ("patch", "changed"),
    [
        (PatchResources(), {}),
        (PatchResources(max_slots=None), {"max_slots": None}),
        (PatchResources(max_slots=8, priority=1, weight=2.5), {"max_slots": 8, "priority": 1, "weight": 2.5}),
    ],
)
def test_changed_resources(patch: PatchResources, changed: dict[str, Any]) -> None:
    assert changed_resources(RESOURCES, patch) == {**RESOURCES, **changed}


@pytest.mark.parametrize(
    "patch",
    [
        PatchResources(priority=0),
        PatchResources(priority=100),
        PatchResources(weight=0),
        PatchResources(weight=float("nan")),
        PatchResources(weight=float("inf")),
        PatchResources(max_slots=1),
    ],
)
def test_resources_no_configuration_may_have(patch: PatchResources) -> None:
    with pytest.raises(InvalidRequest):
        changed_resources(RESOURCES, patch)


def test_changed_storage_keeps_what_is_not_mentioned() -> None:
    storage = {"type": "s3", "bucket": "b", "save_trial_best": 1}
    assert changed_storage(storage, PatchCheckpointStorage(save_trial_best=0, save_experiment_best=3)) == {
        "type": "s3",
        "bucket": "b",
        "save_trial_best": 0,
        "save_experiment_best": 3,
    }


def test_place_in_the_queue() -> None:
    queue = [
        QueuedJob(name, (priority, at, name), at == 0) for name, priority, at in (("a", 5, 0), ("b", 5, 1), ("c", 1, 2))
    ]
    places = {job.job_id: summarise(queue, job.job_id) for job in queue}
    assert {name: summary and (summary.state, summary.jobs_ahead) for name, summary in places.items()} == {
        "a": (JobState.SCHEDULED, 1),
        "b": (JobState.QUEUED, 2),
        "c": (JobState.QUEUED, 0),
    }
    assert summarise(queue, "d") is None
    unordered = summarise(queue, "a", lines_up=False)
    assert unordered is not None
    assert unordered.jobs_ahead == NO_LINE


@pytest.mark.parametrize(
    ("smaller_is_better", "expected"), [(True, [3.0, 2.0, 1.0]), (False, [3.0, 4.0])], ids=["smaller", "larger"]
)
def test_history_has_strict_improvements_only(smaller_is_better: bool, expected: list[float]) -> None:
    start = datetime(2030, 1, 1, tzinfo=UTC)
    values = [float("nan"), 3.0, 3.0, 4.0, 2.0, float("nan"), 1.0]
    points = [Point(1, start + timedelta(seconds=number), value) for number, value in enumerate(values)]
    better = [point.value for point in improvements(points, smaller_is_better=smaller_is_better)]
    assert better[1:] == expected  # NaN is better than nothing
    assert better[0] != better[0]


@pytest.mark.parametrize(
    ("text", "hidden"),
    [
        ("data: {secrets: {k: hunter2}}  # mine", True),
        ('{"data": {"\\u0073ecrets": {"k": "hunter2"}}}', True),
        ("name: no secrets here  # comment", False),
        ("name: plain", False),
        ("- not\n- a mapping of secrets", False),
    ],
)
def test_secrets_in_submitted_text(text: str, hidden: bool) -> None:
    for to_owner in (True, False):
        masked = mask_original_config(text, to_owner=to_owner)
        assert "hunter2" not in masked
        assert (masked != text) == hidden


@pytest.mark.parametrize(
    "text",
    [
        "environment: {registry_auth: {username: u, password: hunter2}}",
        "checkpoint_storage: {type: s3, bucket: b, access_key: a, secret_key: hunter2}",
        '{"checkpoint_storage": {"type": "azure", "connection_str\\u0069ng": "hunter2"}}',
    ],
)
def test_credentials_in_submitted_text_are_for_its_owner(text: str) -> None:
    assert mask_original_config(text, to_owner=True).count("hunter2") == 1
    masked = mask_original_config(text, to_owner=False)
    assert "hunter2" not in masked
    assert "********" in masked


@pytest.mark.parametrize(
    "settings", [SshConfig(), SshConfig(key_type="ECDSA"), SshConfig(key_type="RSA", rsa_key_size=1024)]
)
def test_key_pairs_belong_together(settings: SshConfig) -> None:
    pair = new_key_pair(settings)
    load = load_ssh_private_key if "OPENSSH" in pair.private else load_pem_private_key
    private = load(pair.private.encode(), None)
    public = load_ssh_public_key(pair.public.encode())
    assert (
        private.public_key().public_numbers() == public.public_numbers()
        if settings.key_type != "ED25519"
        else (private.public_key().public_bytes_raw() == public.public_bytes_raw())
    )
    assert pair.public.endswith("\n")


def test_every_stored_state_can_be_shown() -> None:
    assert {state.value for state in ExperimentState} <= set(WireState.__members__)
    assert {state.value for state in TrialState} <= set(WireTrialState.__members__)


def test_bulk_actions_never_start_from_a_state_that_must_not_be_left() -> None:
    assert all(ExperimentState.DELETING not in states for states in DEFAULT_STATES.values())


def test_routes_are_those_of_the_reference() -> None:
    known = {(endpoint.method, shape_of(endpoint.path)) for endpoint in reference_endpoints()}
    modules = (experiments, experiment_actions, trials, checkpoints, model_definitions, searches)
    routes = [route for module in modules for route in module.ROUTES if not route.raw]
    assert {(route.method, shape_of(route.path)) for route in routes} <= known
    assert len(routes) == 40
