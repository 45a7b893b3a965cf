"""Which webhooks hear of what (docs/reference/platform.md 11)."""

from __future__ import annotations

from dataclasses import dataclass, field
from operator import attrgetter
from typing import Any

import pytest

from libs.webhooks.scope import EventOrigin, WebhookScope, hears, integration_of


@dataclass(frozen=True, kw_only=True)
class Case:
    name: str
    hears: bool
    mode: Any = "WORKSPACE"
    workspace: int | None = None
    config: dict[str, Any] | None = field(default_factory=dict)
    """What the experiment says; None for a task of none."""


NAMES = {"webhook_name": ["hook"]}
CASES = [
    Case(name="of all workspaces", hears=True),
    Case(name="of the workspace", workspace=3, hears=True),
    Case(name="of another workspace", workspace=4, hears=False),
    Case(name="of another workspace, named", workspace=4, mode="SPECIFIC", config=NAMES, hears=False),
    Case(name="specific, not named", mode="SPECIFIC", hears=False),
    Case(name="specific, by name", mode="SPECIFIC", config=NAMES, hears=True),
    Case(name="specific, by id", mode="SPECIFIC", config={"webhook_id": [1, 7]}, hears=True),
    Case(name="specific, of other ids", mode="SPECIFIC", config={"webhook_id": [1]}, hears=False),
    Case(name="specific, a task of no experiment", mode="SPECIFIC", config=None, hears=False),
    Case(name="a task of no experiment", config=None, hears=True),
    Case(name="excluded", config={"exclude": True}, hears=False),
    Case(name="excluded, though named", mode="SPECIFIC", config={"exclude": True, **NAMES}, hears=False),
    Case(name="says nothing of use", config={"webhook_id": None, "webhook_name": None, "exclude": None}, hears=True),
]


@pytest.mark.parametrize("case", CASES, ids=attrgetter("name"))
def test_webhook_hears(case: Case) -> None:
    webhook = WebhookScope(id=7, name="hook", mode=case.mode, workspace_id=case.workspace)
    integration = None if case.config is None else integration_of({"integrations": {"webhooks": case.config}})
    assert hears(webhook, EventOrigin(workspace_id=3, integration=integration)) == case.hears


@pytest.mark.parametrize("config", [{}, {"integrations": None}, {"integrations": {"webhooks": None}}])
def test_configuration_without_webhooks_excludes_nothing(config: dict[str, Any]) -> None:
    assert hears(WebhookScope(id=7, name="hook"), EventOrigin(workspace_id=3, integration=integration_of(config)))
