"""Alerts name metrics, labels and reasons that exist, and say what to do."""

from __future__ import annotations

from pathlib import Path
from typing import Any, Final

import pytest
import yaml

from libs.events.subjects import LOG_SHARDS
from services.scheduler.plan.reasons import WaitReason
from tests.unit.deploy.observability.promql import labels_in, labels_left, matched, problems, samples

FILE: Final = Path(__file__).resolve().parents[4] / "deploy" / "helm" / "files" / "observability" / "alerts.yaml"
RULES: Final[list[dict[str, Any]]] = [
    rule for group in yaml.safe_load(FILE.read_text())["groups"] for rule in group["rules"]
]


@pytest.mark.parametrize("rule", RULES, ids=lambda rule: str(rule["alert"]))
def test_an_alert_names_what_exists_and_says_what_to_do(rule: dict[str, Any]) -> None:
    assert problems(rule["expr"], samples()) == []
    assert matched(rule["expr"], "reason") <= {reason.name.lower() for reason in WaitReason}
    assert rule["labels"]["severity"] in ("critical", "warning", "info")
    texts = rule["annotations"]
    assert texts.keys() == {"summary", "description"}
    assert labels_in(f"{texts['summary']} {texts['description']}") <= labels_left(rule["expr"])


def test_names_of_alerts_are_their_own() -> None:
    names = [rule["alert"] for rule in RULES]
    assert len(set(names)) == len(names)


def test_every_shard_of_the_log_is_watched() -> None:
    (rule,) = (rule for rule in RULES if rule["alert"] == "ResoluteLogShardsWithoutWriter")
    assert rule["expr"].endswith(f"< {LOG_SHARDS}")
