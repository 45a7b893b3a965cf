"""Several Jobs of one allocation, whose pods differ in slots."""

from __future__ import annotations

import json
from typing import Any

from hypothesis import given
from hypothesis import strategies as st

from libs.events.orders import TaskSpec
from services.launcher.backends.kubernetes.manifests.job_parts import JobPart, job_parts, parts_in, spec_of, written
from services.scheduler.plan.room.demand import Demand
from services.scheduler.plan.room.placing import place_pods
from services.scheduler.plan.room.room import Room
from tests.unit.launcher.backends.kubernetes.builders import build
from tests.unit.launcher.specs import trial

REQUIRED = "requiredDuringSchedulingIgnoredDuringExecution"
UNEVEN = trial(slots=11, num_pods=3, pod_slots=(4, 4, 3), pod_nodes=("a", "b", "c"))


def nodes_of(job: dict[str, Any]) -> set[str]:
    terms = job["spec"]["template"]["spec"]["affinity"]["nodeAffinity"][REQUIRED]["nodeSelectorTerms"]
    return {field["values"][0] for term in terms for field in term.get("matchFields", ()) if field["operator"] == "In"}


def variables(job: dict[str, Any]) -> dict[str, str]:
    main = job["spec"]["template"]["spec"]["containers"][-1]
    return {entry["name"]: entry.get("value", "") for entry in main["env"]}


def test_each_size_has_a_job() -> None:
    made = build(UNEVEN)
    larger, smaller = made.jobs
    assert [job["metadata"]["name"] for job in made.jobs] == ["det-0a1b2c3d-cmd-t-x4", "det-0a1b2c3d-cmd-t-x3"]
    assert [(job["spec"]["parallelism"], job["spec"]["completions"]) for job in made.jobs] == [(2, 2), (1, 1)]
    assert [nodes_of(job) for job in made.jobs] == [{"a", "b"}, {"c"}]
    assert [json.loads(variables(job)["DET_SLOT_IDS"]) for job in made.jobs] == [[0, 1, 2, 3], [0, 1, 2]]
    assert {variables(job)["DET_KUBERNETES_JOB_PARALLELISM"] for job in made.jobs} == {"3"}
    gpus = [
        job["spec"]["template"]["spec"]["containers"][-1]["resources"]["limits"]["nvidia.com/gpu"] for job in made.jobs
    ]
    assert gpus == ["4", "3"]
    for job in made.jobs:
        assert "ttlSecondsAfterFinished" not in job["spec"], "what the first owns is needed as long as any runs"
        for notes in (job["metadata"]["annotations"], job["spec"]["template"]["metadata"]["annotations"]):
            assert parts_in(notes["resolute/jobs"]) == (
                JobPart("det-0a1b2c3d-cmd-t-x4", 2, 4),
                JobPart("det-0a1b2c3d-cmd-t-x3", 1, 3),
            )
    assert (
        larger["metadata"]["annotations"]["resolute/made-of"] != smaller["metadata"]["annotations"]["resolute/made-of"]
    )
    volumes = [job["spec"]["template"]["spec"]["volumes"] for job in made.jobs]
    assert volumes[0] == volumes[1], "they share the ConfigMap and the Secret"


def test_they_are_one_gang_to_a_scheduler_that_starts_gangs() -> None:
    made = build(UNEVEN, default_scheduler="coscheduler")
    labels = [job["spec"]["template"]["metadata"]["labels"] for job in made.jobs]
    for name, value in (("name", "det-0a1b2c3d-cmd-t-x4"), ("min-available", "3")):
        assert {each[f"pod-group.scheduling.sigs.k8s.io/{name}"] for each in labels} == {value}


def test_equal_pods_have_one_job_as_ever() -> None:
    made = build(trial(slots=8, num_pods=2))
    assert len(made.jobs) == 1
    assert "resolute/jobs" not in made.job["metadata"]["annotations"]
    assert nodes_of(made.job) == set()


def test_long_names_keep_their_ends() -> None:
    spec = trial(slots=7, num_pods=2, pod_slots=(4, 3), pod_nodes=("a", "b"), description="x" * 100)
    names = [part.name for part in job_parts(spec, "1.x.1", "0123456789")]
    assert [(len(name), name[-3:]) for name in names] == [(63, "-x4"), (63, "-x3")]


def test_what_is_written_is_read() -> None:
    parts = job_parts(UNEVEN, "1.x.1", "c")
    assert parts_in(written(parts)) == parts
    assert parts_in("") == parts_in("nonsense") == parts_in("a:1x2,b") == parts_in("a:xx2") == ()


@given(
    st.lists(st.integers(0, 9), min_size=1, max_size=6),
    st.integers(1, 5),
    st.integers(2, 24),
    st.sampled_from(("best", "worst")),
    st.randoms(),
)
def test_whatever_node_kubernetes_takes_for_each_pod_all_find_room(
    free: list[int], most: int, slots: int, fitting: Any, rng: Any
) -> None:
    """A pod of one size never takes the last place of another."""
    left = {f"n{number}": count for number, count in enumerate(free)}
    demand = Demand(units=1, pods=slots, most=most)
    placements = place_pods(Room(left, left, fitting), demand, "1.x.1", (1,) * slots)
    if placements is None:
        assert sum(demand.places_in(count) for count in free) < slots
        return
    sizes = tuple(place.slots for place in placements)
    assert sum(sizes) == slots
    if len(set(sizes)) < 2:
        return
    nodes = tuple(place.node for place in placements)
    spec: TaskSpec = trial(slots=slots, num_pods=len(sizes), pod_slots=sizes, pod_nodes=nodes)
    pods = [
        (part.slots, spec_of(part, spec).pod_nodes) for part in job_parts(spec, "1.x.1", "c") for _ in range(part.pods)
    ]
    rng.shuffle(pods)
    for size, allowed in pods:
        having_room = [node for node in allowed if left[node] >= size]
        assert having_room, (placements, left)
        left[rng.choice(having_room)] -= size
