from __future__ import annotations

import re
from datetime import UTC, datetime

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st

from services.launcher.backends.kubernetes.manifests.label_values import INVALID, label_value
from services.launcher.backends.kubernetes.manifests.names import job_name, labels, launcher_id, system_name
from tests.unit.launcher.backends.kubernetes.builders import CLUSTER_ID
from tests.unit.launcher.specs import task, trial

UUID = "3f0c1a2b-1111-4222-8333-444455556666"

VALUES = [
    ("simple-Characters.With_Other", "simple-Characters.With_Other"),
    ("letters contain *@ other chars -=%", "letters_contain____other_chars"),
    ("-%4-simpleCharacters0", "4-simpleCharacters0"),
    ("simple-Characters4%-.#", "simple-Characters4"),
    (
        "simpleCharactersGoesOnForWayTooLong36384042444648505254565860-_AndThenSome",
        "simpleCharactersGoesOnForWayTooLong36384042444648505254565860",
    ),
    ("name@domain.com", "name_domain.com"),
    ("-.*$%#$...", ""),
    ("", ""),
]


@pytest.mark.parametrize(("text", "value"), VALUES)
def test_label_values_of_the_specification(text: str, value: str) -> None:
    assert label_value(text) == value


@given(st.text())
def test_any_text_becomes_a_label_value_that_kubernetes_takes(text: str) -> None:
    value = label_value(text)
    assert re.fullmatch(r"(([A-Za-z0-9][-A-Za-z0-9_.]*)?[A-Za-z0-9])?", value)
    assert len(value) <= 63
    assert value == INVALID or label_value(value) == value


NAMES = [
    (trial(task="1.x", description="exp-1-trial-2-attempt-1"), "1.x.1", "det-0a1b2c3d-exp-1-trial-2-attempt-1"),
    (task(task=UUID, description=f"cmd-{UUID}"), f"{UUID}.1", f"det-0a1b2c3d-cmd-{UUID}"),
]


@pytest.mark.parametrize(("spec", "allocation", "name"), NAMES)
def test_names_that_users_know(spec, allocation: str, name: str) -> None:  # type: ignore[no-untyped-def]
    assert job_name(spec, allocation, CLUSTER_ID) == name


def test_without_a_cluster_id_there_is_no_prefix() -> None:
    assert job_name(NAMES[0][0], "1.x.1", "") == "exp-1-trial-2-attempt-1"


@pytest.mark.parametrize("description", ["gc-5", "generic-task", f"cmd-{UUID}"])
def test_what_does_not_tell_an_allocation_gets_a_suffix(description: str) -> None:
    names = {job_name(task(task=UUID, description=description), f"{UUID}.{run}", CLUSTER_ID) for run in (2, 3)}
    assert len(names) == 2
    assert all(name.startswith(f"det-0a1b2c3d-{description[:30]}") for name in names)


@given(st.text(min_size=1, max_size=200), st.text(max_size=40))
def test_names_are_dns_labels_and_always_the_same(description: str, allocation: str) -> None:
    spec = task(description=description)
    name = job_name(spec, allocation, CLUSTER_ID)
    assert re.fullmatch(r"[a-z0-9]([-a-z0-9]*[a-z0-9])?", name)
    assert len(name) <= 63
    assert name == job_name(spec, allocation, CLUSTER_ID)


def test_long_descriptions_that_begin_alike_stay_apart() -> None:
    specs = [task(description="x" * 100 + end) for end in "ab"]
    assert len({job_name(spec, "t.1", CLUSTER_ID) for spec in specs}) == 2


def test_pools_and_installations_never_share_a_label_or_a_name() -> None:
    places = [("c1", "a b"), ("c1", "a_b"), ("c2", "a b")]
    assert len({launcher_id(*place) for place in places}) == 3
    assert len({system_name(cluster, pool, "launch-record") for cluster, pool in places[:2]}) == 2


def test_every_label_with_odd_names() -> None:
    submitted_at = datetime(2023, 11, 14, 22, 13, 20, 123_456, tzinfo=UTC)
    spec = trial(task="1.x", workspace="My Team: 1", description="exp-1-trial-2-attempt-1", submitted_at=submitted_at)
    found = labels(spec, "1.x.1", pool="-gpu pool-", cluster_id=CLUSTER_ID)
    assert found == {
        "determined": "1.x.1",
        "determined.ai/allocation_id": "1.x.1",
        "determined.ai/container_id": "1.x.1",
        "determined.ai/task_id": "1.x",
        "determined.ai/task_type": "TRIAL",
        "determined.ai/resource_pool": "gpu_pool",
        "determined.ai/workspace": "My_Team__1",
        "determined.ai/user": "alice",
        "determined.ai/experiment_id": "5",
        "determined.ai/trial_id": "7",
        "determined-queue-position": "1700000000123456" + 30 * "0",
        "resolute/cluster-id": CLUSTER_ID,
        "resolute/launcher": launcher_id(CLUSTER_ID, "-gpu pool-"),
    }


def test_what_no_job_is_known_of_has_no_place_in_the_queue() -> None:
    assert labels(task(), "1.x.1", pool="p", cluster_id=CLUSTER_ID)["determined-queue-position"] == "0"
    moved = msgspec.structs.replace(task(), queue_position="17" + 44 * "1")
    assert labels(moved, "1.x.1", pool="p", cluster_id=CLUSTER_ID)["determined-queue-position"] == "17" + 44 * "1"
