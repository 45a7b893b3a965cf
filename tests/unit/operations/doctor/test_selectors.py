"""What it means by which labels Services of a release select pods."""

from __future__ import annotations

from typing import Any

import pytest

from deploy.operations.doctor.tasks.selectors import about_selectors, check_selectors
from libs.cluster.config import ClusterConfig, SecurityConfig


def service(name: str, selector: dict[str, str] | None) -> dict[str, Any]:
    return {"metadata": {"name": name}, "spec": {} if selector is None else {"selector": selector}}


def test_services_that_select_by_labels_from_before_are_named_with_the_way_out() -> None:
    own = service("logs", {"resolute/release": "det", "resolute/component": "logs"})
    found = about_selectors([own, service("nats", {"app": "n"}), service("db", {"app": "d"}), service("outside", None)])
    assert found.level == "warning"
    assert found.says.startswith("db, nats: pods are found by labels from before")
    assert "helm upgrade again" in found.remedy
    assert about_selectors([own, service("outside", None)]).level == "ok"


def test_without_a_release_of_the_chart_there_is_nothing_to_look_at() -> None:
    assert check_selectors(ClusterConfig()) == []


def test_without_kubectl_the_line_says_how_to_look(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PATH", "")
    (found,) = check_selectors(ClusterConfig(security=SecurityConfig(release_namespace="det")))
    assert found.level == "warning"
    assert "kubectl --namespace det get services" in found.remedy
