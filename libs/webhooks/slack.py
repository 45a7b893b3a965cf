"""Messages for Slack. Pure. Source: docs/reference/platform.md 11; docs/reference/logs.md 8."""

from __future__ import annotations

from typing import Any, Final

from libs.webhooks.events import ExperimentFacts, TaskLogFacts, TriggerType, WebhookEvent

_COMPLETED: Final = ("Your experiment completed successfully 🎉", "#13B670", "✅")
_ERROR: Final = ("Your experiment has stopped with errors", "#DD5040", "❌")
_OTHER_COLOUR: Final = "#009bde"
_LONGEST_TEXT: Final = 2900
"""Characters; Slack refuses a text of more than 3000."""


def slack_body(event: WebhookEvent, *, base_url: str) -> dict[str, Any]:
    """The message. ``base_url`` is where users find this installation; empty when nobody said."""
    if event.test:
        return {"blocks": [_section("plain_text", "test")]}
    if event.task_log is not None:
        return {"blocks": [_section("mrkdwn", _about_line(event, event.task_log, base_url))]}
    if event.experiment is None:
        raise ValueError(f"there is no Slack message for events of type {event.event_type}")
    status, colour, mark = _status(event, event.experiment)
    attached = _section("mrkdwn", _title(event.experiment, mark, base_url))
    attached["fields"] = [
        {"type": "mrkdwn", "text": _shortened(f"*{name}*: {value}")} for name, value in _fields(event, event.experiment)
    ]
    return {"blocks": [_section("plain_text", status)], "attachments": [{"color": colour, "blocks": [attached]}]}


def _section(kind: str, text: str) -> dict[str, Any]:
    return {"type": "section", "text": {"type": kind, "text": _shortened(text)}}


def _shortened(text: str) -> str:
    return text if len(text) <= _LONGEST_TEXT else f"{text[:_LONGEST_TEXT]}…"


def _status(event: WebhookEvent, experiment: ExperimentFacts) -> tuple[str, str, str]:
    if event.event_type == TriggerType.CUSTOM:
        return "Your experiment sent an alert", _OTHER_COLOUR, ""
    if event.metric is not None:
        text = f"The metric {event.metric.name} of your experiment is {event.metric.value:g}"
        return text, _OTHER_COLOUR, ""
    if experiment.state == "COMPLETED":
        return _COMPLETED
    if experiment.state == "ERROR":
        return _ERROR
    return f"The status of your experiment is {experiment.state}", _OTHER_COLOUR, ""


def _title(experiment: ExperimentFacts, mark: str, base_url: str) -> str:
    name = f"{_escaped(experiment.name)} (#{experiment.id})"
    linked = f"<{base_url}/det/experiments/{experiment.id}/overview | {name}>" if base_url else name
    return f"{mark} {linked}".strip()


def _fields(event: WebhookEvent, experiment: ExperimentFacts) -> list[tuple[str, str]]:
    hours, minutes = experiment.duration // 3600, experiment.duration // 60 % 60
    fields = [
        ("Status", experiment.state.capitalize()),
        ("Duration", f"{hours}h {minutes}min"),
        ("Workspace", _escaped(experiment.workspace)),
        ("Project", _escaped(experiment.project)),
        ("Trial ID", "" if experiment.trial_id is None else str(experiment.trial_id)),
    ]
    if event.custom is not None:
        fields += [
            ("Level", event.custom.level),
            ("Title", _escaped(event.custom.title)),
            ("Description", _escaped(event.custom.description)),
        ]
    return [(name, value) for name, value in fields if value]


def _about_line(event: WebhookEvent, line: TaskLogFacts, base_url: str) -> str:
    regex = str((event.condition or {}).get("regex", ""))
    if line.experiment_id is not None and line.trial_id is not None:
        whose = f"Experiment ID: `{line.experiment_id}`, Trial ID: `{line.trial_id}`"
        path = f"/det/experiments/{line.experiment_id}/trials/{line.trial_id}/logs"
    else:
        whose = f"Task ID: `{line.task_id}`, task type: {line.task_type.lower().replace('_', ' ')}"
        path = f"/det/tasks/{line.task_id}/logs"
    link = f"<{base_url}{path} | View full logs here>" if base_url else f"View full logs at {path}"
    # What is variable is cut, so that the link is always there.
    quoted = (_escaped(text)[: _LONGEST_TEXT // 3] for text in (line.triggering_log, regex))
    text, pattern = (f"```{part}```" for part in quoted)
    reported = f"{whose}, running on node `{line.node_name}`, reported a log"
    return "\n".join((reported, text, "This log matched the regex", pattern, link))


def _escaped(text: str) -> str:
    """Text as Slack's markup means it literally. Source: https://docs.slack.dev/messaging/formatting-message-text"""
    return text.replace("&", "&amp;").replace("<", "&lt;").replace(">", "&gt;")
