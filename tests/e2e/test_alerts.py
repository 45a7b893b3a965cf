"""What training code says with ``core_context.alert`` reaches who has asked for it (docs/reference/platform.md 11)."""

from __future__ import annotations

import asyncio
import json
from pathlib import Path

import pytest

from tests.harness.looking import Looking
from tests.harness.waiting import eventually
from tests.harness.webhook_receiver import WebhookReceiver, webhook_receiver
from tests.harness.whole_system import WholeSystem, running_system
from tests.programs import submit


@pytest.mark.slow
async def test_an_alert_of_training_code_is_delivered(tmp_path: Path) -> None:
    config = tmp_path / "cluster.yaml"
    config.write_text(
        json.dumps(
            {
                "resource_manager": {"type": "process", "slot_type": "cpu"},
                "resource_pools": [{"pool_name": "default"}],
                "checkpoint_storage": {"type": "shared_fs", "host_path": str(tmp_path)},
                "webhooks": {"allowed_networks": ["127.0.0.0/8"]},
            }
        )
    )
    async with webhook_receiver() as receiver:
        with running_system(slots=1, config=str(config)) as system:
            experiment = await asyncio.to_thread(alerting, system, receiver.url)
            await eventually(lambda: receiver.events, what="the event came")
    check(receiver, experiment)


def alerting(system: WholeSystem, url: str) -> int:
    """An experiment that has said something."""
    trigger = {"triggerType": "TRIGGER_TYPE_CUSTOM"}
    hook = {
        "name": "alerts",
        "url": url,
        "webhookType": "WEBHOOK_TYPE_DEFAULT",
        "mode": "WEBHOOK_MODE_SPECIFIC",
        "triggers": [trigger],
    }
    with system.http() as http:
        administrator = {"Authorization": f"Bearer {system.token('admin')}"}
        http.post("/api/v1/webhooks", json=hook, headers=administrator).raise_for_status()
        look = Looking(http)
        asked = {"webhooks": {"webhook_name": ["alerts"]}}
        experiment = submit(system.det(), "alerting.py", name="alerting", integrations=asked)
        look.wait(experiment)
        return experiment


def check(receiver: WebhookReceiver, experiment: int) -> None:
    [event] = receiver.events
    assert event["event_type"] == "CUSTOM"
    said = event["event_data"]
    assert said["custom_data"] == {"title": "loss fell", "description": "to a tenth", "level": "WARNING"}
    assert said["experiment"]["id"] == experiment
