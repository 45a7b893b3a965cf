"""What receivers get, to the letter (docs/reference/platform.md 11; docs/reference/logs.md 8)."""

from __future__ import annotations

import hashlib
import hmac
import json
from typing import Any

import msgspec
import pytest

from libs.webhooks.bodies import default_body, request_of
from libs.webhooks.events import CustomFacts, ExperimentFacts, TaskLogFacts, WebhookEvent, event_id
from libs.webhooks.signatures import signature_headers
from libs.webhooks.slack import slack_body

EXPERIMENT = ExperimentFacts(
    id=5,
    state="COMPLETED",
    name="a <b>",
    duration=7260,
    resource_pool="p",
    slots_per_trial=1,
    workspace="w",
    project="q",
)
LINE = TaskLogFacts(
    task_id="5.x", node_name="n1", triggering_log="CUDA out", task_type="TRIAL", experiment_id=5, trial_id=9
)


def event(kind: str, **fields: Any) -> WebhookEvent:
    return WebhookEvent(event_id="e", event_type=kind, timestamp=1_700_000_000, **fields)


def test_signature_is_what_receivers_compute() -> None:
    headers = signature_headers(b'{"a":1}', key="k", now_s=1_700_000_000)
    expected = hmac.new(b"k", b'1700000000,{"a":1}', hashlib.sha256).hexdigest()
    assert headers == {
        "X-Determined-AI-Signature-Timestamp": "1700000000",
        "X-Determined-AI-Signature": expected,
    }


def test_body_has_only_what_applies() -> None:
    assert default_body(event("TASK_LOG", condition={"regex": "r"}, task_log=LINE)) == {
        "event_id": "e",
        "event_type": "TASK_LOG",
        "timestamp": 1_700_000_000,
        "condition": {"regex": "r"},
        "event_data": {"task_log": {"task_id": "5.x", "node_name": "n1", "triggering_log": "CUDA out"}},
    }
    custom = CustomFacts(title="t", description="d", level="INFO")
    body = default_body(event("CUSTOM", experiment=EXPERIMENT, custom=custom))
    assert "condition" not in body
    assert body["event_data"]["custom_data"] == {"title": "t", "description": "d", "level": "INFO"}
    assert "trial_id" not in body["event_data"]["experiment"]
    assert default_body(event("CUSTOM", test=True))["event_data"] == {"data": "test"}


def test_body_survives_the_database() -> None:
    original = event("TASK_LOG", condition={"regex": "r"}, task_log=LINE)
    assert msgspec.json.decode(msgspec.json.encode(original), type=WebhookEvent) == original


def test_same_cause_has_the_same_id() -> None:
    assert event_id("a-1", 2) == event_id("a-1", 2)
    assert event_id("a-1", 2) != event_id("a-1", 3)


@pytest.mark.parametrize(
    ("state", "status", "color", "title"),
    [
        ("COMPLETED", "Your experiment completed successfully 🎉", "#13B670", "✅ a &lt;b&gt; (#5)"),
        ("ERROR", "Your experiment has stopped with errors", "#DD5040", "❌ a &lt;b&gt; (#5)"),
        ("PAUSED", "The status of your experiment is PAUSED", "#009bde", "a &lt;b&gt; (#5)"),
    ],
)
def test_slack_message_of_a_state(state: str, status: str, color: str, title: str) -> None:
    facts = msgspec.structs.replace(EXPERIMENT, state=state)
    message = slack_body(event("EXPERIMENT_STATE_CHANGE", experiment=facts), base_url="")
    assert message["blocks"] == [{"type": "section", "text": {"type": "plain_text", "text": status}}]
    [attachment] = message["attachments"]
    [section] = attachment["blocks"]
    assert (attachment["color"], section["text"]["text"]) == (color, title)
    assert {"type": "mrkdwn", "text": "*Duration*: 2h 1min"} in section["fields"]


def test_slack_message_links_to_where_users_find_it() -> None:
    message = slack_body(event("EXPERIMENT_STATE_CHANGE", experiment=EXPERIMENT), base_url="https://r.example")
    text = message["attachments"][0]["blocks"][0]["text"]["text"]
    assert text == "✅ <https://r.example/det/experiments/5/overview | a &lt;b&gt; (#5)>"


def test_slack_message_of_a_line_names_task_node_and_pattern() -> None:
    message = slack_body(event("TASK_LOG", condition={"regex": "CUDA.*"}, task_log=LINE), base_url="https://r")
    text = message["blocks"][0]["text"]["text"]
    for part in ("`5`", "`9`", "`n1`", "```CUDA out```", "This log matched the regex", "```CUDA.*```"):
        assert part in text
    assert "https://r/det/experiments/5/trials/9/logs" in text
    huge = msgspec.structs.replace(LINE, triggering_log="x" * 100_000)
    text = slack_body(event("TASK_LOG", condition={"regex": "x"}, task_log=huge), base_url="")["blocks"][0]["text"][
        "text"
    ]
    assert len(text) <= 3000
    assert text.endswith("/det/experiments/5/trials/9/logs")


def test_only_slack_is_not_signed() -> None:
    for webhook_type, signed in (("DEFAULT", True), ("SLACK", False)):
        body, headers = request_of(
            event("CUSTOM", test=True), webhook_type, base_url="", signing_key="k", now_s=1_700_000_000
        )
        assert ("X-Determined-AI-Signature" in headers) == signed
        assert json.loads(body)
