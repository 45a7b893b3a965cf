"""By which labels the chart selects pods: none that a user's pod may bear, and always the pods that are meant."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any, Final

import pytest
import yaml

from libs.podspec.reserved_labels import ALLOWED, reserved
from tests.harness.helm import Manifest, Release, at, render
from tests.integration.helm.conftest import VALUES, Rendered, options_for

FILE: Final = "own_selectors"
OWN: Final = {"resolute/release", "resolute/component", "resolute/pool"}
WORKLOADS: Final = ("Deployment", "StatefulSet", "Job")
SELECTING: Final = ("Service", "NetworkPolicy", "PodDisruptionBudget", "PodMonitor")
PEERS: Final = ("RESOLUTE_KUBERNETES__TASK_NETWORK__API", "RESOLUTE_KUBERNETES__TASK_NETWORK__LOG_INTAKE")
"""Variables of launchers with peers of the policies that these make."""

Labels = Mapping[str, str]


def selectors(release: Release, *kinds: str) -> Iterator[tuple[str, Manifest]]:
    """Label selectors of pods in objects of these kinds, each with a name of the place where it is."""
    for found in release.manifests:
        where = f"{found['kind']}/{found['metadata']['name']}"
        if found["kind"] not in kinds:
            continue
        if found["kind"] == "Service":
            yield where, {"matchLabels": found["spec"]["selector"]}
        else:
            yield from label_selectors(found["spec"], where)


def label_selectors(part: Any, where: str) -> Iterator[tuple[str, Manifest]]:
    for key, value in part.items() if isinstance(part, dict) else enumerate(part if isinstance(part, list) else ()):
        path = f"{where}/{key}"
        if key in ("selector", "podSelector", "labelSelector"):
            yield path, value
        elif key == "value" and part["name"] in PEERS:
            yield from label_selectors(yaml.safe_load(value), path)
        else:
            yield from label_selectors(value, path)


def keys_of(selector: Manifest) -> set[str]:
    return {*selector.get("matchLabels", {}), *(each["key"] for each in selector.get("matchExpressions", ()))}


def matches(selector: Manifest, labels: Labels) -> bool:
    expressions = selector.get("matchExpressions", ())
    assert {each["operator"] for each in expressions} <= {"In"}
    return selector.get("matchLabels", {}).items() <= labels.items() and all(
        labels.get(each["key"]) in each["values"] for each in expressions
    )


def rendered_with(selected_by: str) -> Release:
    return render(VALUES / f"{FILE}.yaml", *options_for(FILE), "--set", f"podSelectors={selected_by}")


def test_no_pod_of_a_user_bears_a_label_by_which_the_chart_selects(any_values: str, rendered: Rendered) -> None:
    found = list(selectors(rendered(any_values), *WORKLOADS, *SELECTING))
    assert len(found) >= 4
    for where, selector in found:
        for key in keys_of(selector):
            assert [*reserved({"metadata": {"labels": {key: "a"}}}, ALLOWED)], f"{where} selects by {key}"


def test_own_labels_select_the_pods_that_the_former_ones_select() -> None:
    own, former = rendered_with("own"), rendered_with("former")
    pods = {name: template["metadata"]["labels"] for name, template in own.pods()}
    assert pods == {name: template["metadata"]["labels"] for name, template in former.pods()}
    # Pods of tasks are selected by what launchers give them.
    by_own, by_former = (
        [each for each in selectors(found, *SELECTING) if "task_id" not in str(each)] for found in (own, former)
    )
    assert [where for where, _ in by_own] == [where for where, _ in by_former]
    for (where, selector), (_, as_before) in zip(by_own, by_former, strict=True):
        selected = {name for name, labels in pods.items() if matches(selector, labels)}
        assert selected == {name for name, labels in pods.items() if matches(as_before, labels)}, where
        # The Job that shrinks the bus is there in an upgrade from three servers only.
        assert selected or "shrink" in str(selector), where
        monitored = {"app.kubernetes.io/name"} if where.startswith("PodMonitor") else set()
        assert keys_of(selector) <= OWN | monitored, where
        assert not keys_of(as_before) & OWN, where


def test_selectors_of_workloads_stay() -> None:
    """They cannot be changed."""
    for selected_by in ("own", "former"):
        for (kind, name), found in rendered_with(selected_by).by_name.items():
            if kind in ("Deployment", "StatefulSet"):
                assert set(at(found, "spec/selector/matchLabels")) == {"app"}, name


@pytest.mark.parametrize("asked", ["auto", "former"])
def test_without_a_cluster_to_ask_services_select_by_what_all_releases_bear(asked: str) -> None:
    release = rendered_with(asked)
    assert at(release.get("Service", "resolute-logs"), "spec/selector") == {"app": "resolute-logs-rel"}
    assert release.secret("resolute-generated", "pod-selectors") == "former"
