"""What webhooks are told of what the bus says (docs/reference/platform.md 11)."""

from __future__ import annotations

from typing import Any

from sqlalchemy import text

from libs.events.changes import JobChanged, TrialChanged
from tests.builders import insert_experiment, insert_project, insert_workspace
from tests.harness import eventually
from tests.harness.webhook_receiver import WebhookReceiver, webhook_receiver
from tests.integration.scheduler.webhooks.conftest import Hooks

COMPLETED = ("EXPERIMENT_STATE_CHANGE", {"state": "COMPLETED"})
ERROR = ("EXPERIMENT_STATE_CHANGE", {"state": "ERROR"})


async def experiment(hooks: Hooks, *, project_id: int = 1, webhooks: dict[str, Any] | None = None) -> int:
    config: dict[str, Any] = {"name": "mnist", "resources": {"resource_pool": "gpus", "slots_per_trial": 2}}
    if webhooks is not None:
        config["integrations"] = {"webhooks": webhooks}
    async with hooks.db.transaction() as connection:
        return await insert_experiment(connection, config=config, state="COMPLETED", project_id=project_id)


async def test_webhook_hears_of_the_states_that_it_names(hooks: Hooks) -> None:
    async with webhook_receiver() as receiver:
        await hooks.add(receiver.url, COMPLETED, ERROR)
        known = await experiment(hooks)
        async with hooks.sending():
            for state in ("ACTIVE", "STOPPING_COMPLETED", "COMPLETED"):
                await hooks.change(known, state)
            await hooks.change(known, "ERROR")
            await eventually(lambda: len(receiver.received) == 2)
        assert {event["condition"]["state"] for event in receiver.events} == {"COMPLETED", "ERROR"}
        [completed] = [event for event in receiver.events if event["condition"] == {"state": "COMPLETED"}]
        facts = completed["event_data"]["experiment"]
        assert facts.pop("duration") >= 0
        assert facts == {
            "id": known,
            "state": "COMPLETED",
            "name": "mnist",
            "resource_pool": "gpus",
            "slots_per_trial": 2,
            "workspace": "Uncategorized",
            "project": "Uncategorized",
        }
        assert set(completed) == {"event_id", "event_type", "timestamp", "condition", "event_data"}


async def test_scope_of_a_webhook_is_its_workspace_and_its_mode(hooks: Hooks) -> None:
    async with hooks.db.transaction() as connection:
        workspace = await insert_workspace(connection, name="theirs")
        project = await insert_project(connection, workspace_id=workspace, name="p")
    async with webhook_receiver() as everywhere, webhook_receiver() as theirs, webhook_receiver() as named:
        await hooks.add(everywhere.url, COMPLETED)
        await hooks.add(theirs.url, COMPLETED, workspace_id=workspace)
        await hooks.add(named.url, COMPLETED, mode="SPECIFIC", name="mine")
        plain = await experiment(hooks)
        in_theirs = await experiment(hooks, project_id=project)
        naming = await experiment(hooks, webhooks={"webhook_name": ["mine", "nobody"], "webhook_id": [10**9]})
        excluding = await experiment(hooks, webhooks={"exclude": True, "webhook_name": ["mine"]})
        async with hooks.sending():
            for each in (excluding, plain, in_theirs, naming):
                await hooks.change(each, "COMPLETED")
            await eventually(
                lambda: (
                    (heard(everywhere), heard(theirs), heard(named))
                    == (
                        {plain, in_theirs, naming},
                        {in_theirs},
                        {naming},
                    )
                )
            )
        assert len(everywhere.received) == 3


def heard(receiver: WebhookReceiver) -> set[int]:
    return {event["event_data"]["experiment"]["id"] for event in receiver.events}


async def test_what_happened_while_no_scheduler_was_there_is_told_later(hooks: Hooks) -> None:
    async with webhook_receiver() as receiver:
        await hooks.add(receiver.url, COMPLETED)
        known = await experiment(hooks)
        async with hooks.sending():
            await hooks.change(known, "COMPLETED")
            await eventually(lambda: len(receiver.received) == 1)
        await hooks.change(known, "COMPLETED")
        async with hooks.sending():
            await eventually(lambda: len(receiver.received) == 2)


async def test_what_happened_before_a_webhook_was_made_does_not_concern_it(hooks: Hooks) -> None:
    async with webhook_receiver() as receiver:
        await hooks.add(receiver.url, COMPLETED)
        known = await experiment(hooks)
        async with hooks.db.transaction() as connection:
            await connection.execute(text("UPDATE webhooks SET created_at = now() + interval '1 hour'"))
        async with hooks.sending():
            await hooks.change(known, "COMPLETED")
            await eventually(lambda: nothing_is_in_the_outbox(hooks))
            async with hooks.db.transaction() as connection:
                await connection.execute(text("UPDATE webhooks SET created_at = now() - interval '1 hour'"))
            other = await experiment(hooks)
            await hooks.change(other, "COMPLETED")
            await eventually(lambda: other in heard(receiver))


async def nothing_is_in_the_outbox(hooks: Hooks) -> bool:
    async with hooks.db.read() as connection:
        return (await connection.execute(text("SELECT count(*) FROM outbox"))).scalar_one() == 0


async def test_event_webhook_gets_cloud_events_of_its_types(hooks: Hooks) -> None:
    async with webhook_receiver() as receiver, webhook_receiver() as other:
        await hooks.add(
            receiver.url,
            ("EVENT", {"type": "resolute.v1.experiment.*"}),
            ("EVENT", {"type": "resolute.v1.*.state"}),
            webhook_type="CLOUDEVENTS",
        )
        await hooks.add(other.url, ("EVENT", {"type": "resolute.v1.user.*"}), webhook_type="CLOUDEVENTS")
        async with hooks.sending():
            await hooks.announce(JobChanged(job_id="j", what="submitted"))
            await hooks.change(7, "ACTIVE")
            await hooks.announce(TrialChanged(trial_id=3, experiment_id=7, what="state", state="ACTIVE"))
            await eventually(lambda: len(receiver.received) == 2)
        assert other.received == []
        [event] = [each for each in receiver.events if each["type"] == "resolute.v1.experiment.state"]
        assert event["specversion"] == "1.0"
        assert event["subject"] == "7"
        assert event["source"].startswith("/resolute/")
        assert event["data"]["experiment_id"] == 7
        assert {each.headers["Content-Type"] for each in receiver.received} == {
            "application/cloudevents+json; charset=UTF-8"
        }


async def test_metric_over_its_threshold_is_told_once_for_a_trial(hooks: Hooks) -> None:
    async with webhook_receiver() as receiver:
        await hooks.add(receiver.url, ("METRIC_THRESHOLD_EXCEEDED", {"metric": "loss", "threshold": 5}))
        known = await experiment(hooks)

        def report(trial: int, **metrics: Any) -> TrialChanged:
            return TrialChanged(
                trial_id=trial, experiment_id=known, what="metrics", group="validation", metrics=metrics
            )

        async with hooks.sending():
            await hooks.announce(report(1, loss=5), report(1, loss=6.5), report(1, loss=7), report(2, other=9))
            await hooks.announce(report(1, loss=8), report(2, loss=9))
            await eventually(lambda: len(receiver.received) == 2)
        assert {event["event_data"]["metric"]["value"] for event in receiver.events} == {6.5, 9}
        assert {event["event_data"]["experiment"]["trial_id"] for event in receiver.events} == {1, 2}


async def test_slack_is_told_in_its_own_words_and_unsigned(hooks: Hooks) -> None:
    async with webhook_receiver() as receiver:
        await hooks.add(receiver.url, COMPLETED, webhook_type="SLACK")
        known = await experiment(hooks)
        async with hooks.sending():
            await hooks.change(known, "COMPLETED")
            await eventually(lambda: len(receiver.received) == 1)
        [message] = receiver.received
        assert message.json["blocks"][0]["text"]["text"] == "Your experiment completed successfully 🎉"
        assert not [name for name in message.headers if "Signature" in name]
