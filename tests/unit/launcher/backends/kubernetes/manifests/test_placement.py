from __future__ import annotations

from typing import Any

import pytest

from services.launcher.backends.kubernetes.manifests.placement import placed

PREFERRED = "preferredDuringSchedulingIgnoredDuringExecution"
REQUIRED = "requiredDuringSchedulingIgnoredDuringExecution"
DISABLED = {"key": "determined.ai/cluster-id-c", "operator": "DoesNotExist"}


def terms(spec: dict[str, Any], *blocked: str) -> list[dict[str, Any]]:
    found: list[dict[str, Any]] = placed(spec, cluster_id="c", blocked_nodes=blocked)["nodeAffinity"][REQUIRED][
        "nodeSelectorTerms"
    ]
    return found


def affinity(*nodes: dict[str, Any], **others: Any) -> dict[str, Any]:
    return {"affinity": {"nodeAffinity": {REQUIRED: {"nodeSelectorTerms": list(nodes)}}, **others}}


def test_two_blocked_nodes_are_two_requirements_of_one_value() -> None:
    assert terms({}, "a", "b", "a") == [
        {
            "matchExpressions": [DISABLED],
            "matchFields": [
                {"key": "metadata.name", "operator": "NotIn", "values": ["a"]},
                {"key": "metadata.name", "operator": "NotIn", "values": ["b"]},
            ],
        }
    ]


def test_every_alternative_of_the_user_is_restricted() -> None:
    zone = {"key": "zone", "operator": "In", "values": ["a"]}
    found = terms(affinity({"matchExpressions": [zone]}, {"matchFields": [{"key": "metadata.name"}]}), "x")
    assert [term["matchExpressions"][-1] for term in found] == [DISABLED, DISABLED]
    assert all({"key": "metadata.name", "operator": "NotIn", "values": ["x"]} in term["matchFields"] for term in found)
    assert found[0]["matchExpressions"][0] == zone


def test_the_restriction_stands_there_once() -> None:
    assert terms(affinity({"matchExpressions": [DISABLED]})) == [{"matchExpressions": [DISABLED]}]


def test_a_term_that_matches_nothing_does_not_come_to_match_everything() -> None:
    spec = affinity({}, {"matchExpressions": []})
    assert placed(spec, cluster_id="c", blocked_nodes=()) == spec["affinity"]
    zone = {"key": "zone", "operator": "Exists"}
    assert len(terms(affinity({}, {"matchExpressions": [zone]}))) == 1


@pytest.mark.parametrize("other", ["podAffinity", "podAntiAffinity"])
def test_other_affinity_is_kept_and_nothing_is_changed_in_place(other: str) -> None:
    spec = affinity({"matchExpressions": [{"key": "k", "operator": "Exists"}]}, **{other: {"x": 1}})
    before = repr(spec)
    found = placed(spec, cluster_id="c", blocked_nodes=("n",))
    assert found[other] == {"x": 1}
    assert repr(spec) == before


def test_a_pod_that_was_given_nodes_runs_on_no_other() -> None:
    zone = {"key": "zone", "operator": "Exists"}
    spec = affinity({"matchExpressions": [zone]})
    found = placed(spec, cluster_id="c", blocked_nodes=("x",), nodes=("a", "b"))["nodeAffinity"][REQUIRED]
    assert [(term["matchExpressions"], term["matchFields"]) for term in found["nodeSelectorTerms"]] == [
        (
            [zone, DISABLED],
            [
                {"key": "metadata.name", "operator": "NotIn", "values": ["x"]},
                {"key": "metadata.name", "operator": "In", "values": [node]},
            ],
        )
        for node in ("a", "b")
    ]


def test_where_the_planner_saw_room_is_preferred() -> None:
    found = placed({}, cluster_id="c", blocked_nodes=(), preferred=("a", "b"))["nodeAffinity"]
    assert found[REQUIRED]["nodeSelectorTerms"] == [{"matchExpressions": [DISABLED]}]
    assert found[PREFERRED] == [
        {
            "weight": 100,
            "preference": {"matchFields": [{"key": "metadata.name", "operator": "In", "values": [node]}]},
        }
        for node in ("a", "b")
    ]


def test_many_nodes_are_preferred_in_one_term() -> None:
    """Each pod of a gang has the terms, and is as large as they are."""
    names = tuple(f"n{number}" for number in range(500))
    # A label has 63 characters at most, a name 253.
    found = placed({}, cluster_id="c", blocked_nodes=(), preferred=(*names, "n" * 64))["nodeAffinity"][PREFERRED]
    hosts = {"key": "kubernetes.io/hostname", "operator": "In", "values": list(names)}
    assert found == [{"weight": 100, "preference": {"matchExpressions": [hosts]}}]


def test_what_the_user_prefers_is_left_alone() -> None:
    own = [{"weight": 1, "preference": {"matchExpressions": [{"key": "zone", "operator": "Exists"}]}}]
    spec = {"affinity": {"nodeAffinity": {PREFERRED: own}}}
    assert placed(spec, cluster_id="c", blocked_nodes=(), preferred=("a",))["nodeAffinity"][PREFERRED] == own
