"""The subscriber in the documentation works as it stands there, and what it is told are CloudEvents."""

from __future__ import annotations

import asyncio
import json
import os
import subprocess
import sys
import threading
from pathlib import Path
from typing import Any

import nats
import pytest
from nats.aio.msg import Msg
from nats.errors import TimeoutError as NothingLeft

from tests.harness.client import Client
from tests.harness.cloud_events import check_contract, read_cloud_event
from tests.harness.looking import Looking
from tests.harness.pages.blocks import blocks_of, document
from tests.harness.waiting import wait_until
from tests.harness.whole_system import WholeSystem
from tests.programs import submit


def test_the_subscriber_in_the_documentation_sees_an_experiment(
    det: Client, look: Looking, whole_system: WholeSystem
) -> None:
    (example,) = blocks_of(document("events"), "python")
    subscriber = subprocess.Popen(
        [sys.executable, "-c", example.text],
        env={**os.environ, "RESOLUTE_STATE": str(whole_system.layout.root)},
        stdout=subprocess.PIPE,
        text=True,
    )
    try:
        assert subscriber.stdout is not None
        seen: list[list[str]] = []
        reader = threading.Thread(
            target=lambda pipe: seen.extend(line.split() for line in pipe), args=(subscriber.stdout,), daemon=True
        )
        reader.start()
        experiment = submit(det, "steps.py")
        look.wait(experiment)
        wait_until(lambda: [str(experiment), "COMPLETED"] in seen, what="the subscriber sees the end")
        states = [state for ident, state in seen if ident == str(experiment)]
        # Its search ended with its only trial, in one step.
        assert states == ["ACTIVE", "COMPLETED"]
    finally:
        subscriber.kill()
        subscriber.wait()


def test_all_that_is_published_of_an_experiment_are_cloud_events_as_described(
    det: Client, look: Looking, whole_system: WholeSystem
) -> None:
    experiment = submit(det, "steps.py")
    look.wait(experiment)
    found = asyncio.run(kept_events(whole_system.layout.root / "subscriber.json"))
    types = set()
    for message in found:
        event = read_cloud_event(message.headers or {}, message.data)
        check_contract(message.headers or {}, event.get_data())
        types.add(event.get_type())
    assert {"resolute.v1.experiment.state", "resolute.v1.trial.metrics", "allocation.observed"} <= types


# What every event of a kind has.
ALWAYS = {
    "experiment": ("state", "name", "job_id", "owner", "project_id"),
    "trial": ("experiment_id", "state", "task_id"),
    "allocation": ("task_id", "state", "pool"),
    "task": ("task_type",),
    "job": ("pool", "weight"),
    "checkpoint": ("state", "trial_id", "steps_completed"),
    "workspace": ("name",),
    "model": ("name", "workspace_id"),
    "user": ("username",),
}
TO_ITS_END = """
model = client.create_model("of events")
model.register_version(sys.argv[1])
model.delete()
result("deleted")
"""


@pytest.mark.slow
def test_each_event_shows_its_whole_object(det: Client, look: Looking, whole_system: WholeSystem) -> None:
    """Through the lives of objects of every kind: made, changed, ended, killed and deleted."""
    experiment = submit(det, "saving.py")
    look.wait(experiment)
    killed = submit(det, "sleep 600")
    look.wait(killed, "STATE_RUNNING")
    det("experiment", "pause", str(killed))
    det("experiment", "activate", str(killed))
    det("experiment", "kill", str(killed))
    look.wait(killed, "STATE_CANCELED")
    det("command", "run", "true")
    checkpoint = look.get(f"/experiments/{experiment}/checkpoints")["checkpoints"][0]["uuid"]
    assert det.sdk(TO_ITS_END, checkpoint) == "deleted"
    admin = whole_system.det("administrator of events")
    admin("user", "login", "admin", answers=("",))
    token = json.loads(admin("token", "create", "--expiration-days", "1", "--json"))["tokenId"]
    admin("token", "revoke", str(token))
    det("workspace", "create", "of events")
    det("project", "create", "of events", "a project")
    det("workspace", "delete", "of events", "--yes")
    objects = {ident: look.experiment(ident) for ident in (experiment, killed)}
    tasks = {trial["id"]: trial["taskIds"] for ident in objects for trial in look.trials(ident)}
    det("experiment", "delete", str(killed), "--yes")
    wait_until(lambda: killed not in {each["id"] for each in look.get("/experiments")["experiments"]})

    found = asyncio.run(kept_events(whole_system.layout.root / "subscriber.json"))
    events = [json.loads(message.data) for message in found]
    changes = [event for event in events if event["type"].endswith(".changed")]
    for event in changes:
        lacking = [field for field in ALWAYS.get(kind_of(event), ()) if event[field] in ("", None)]
        assert not lacking, f"{lacking} of {event}"
    assert {kind_of(event) for event in changes} >= set(ALWAYS)
    for ident, shown in objects.items():
        for event in (one for one in changes if kind_of(one) == "experiment" and one["experiment_id"] == ident):
            expected = (shown["name"], shown["jobId"], shown["username"], shown["projectId"])
            assert (event["name"], event["job_id"], event["owner"], event["project_id"]) == expected
        states = [one["state"] for one in changes if one.get("experiment_id") == ident and one["what"] == "state"]
        assert f"STATE_{states[-1]}" in {shown["state"], "STATE_DELETING"}
    of_trials = [one for one in changes if kind_of(one) == "trial" and one["trial_id"] in tasks]
    assert all(event["task_id"] in tasks[event["trial_id"]] for event in of_trials)
    gone = [one["name"] for one in changes if kind_of(one) == "workspace" and one["what"] == "deleted"]
    assert "of events" in gone


def kind_of(event: dict[str, Any]) -> str:
    return str(event["type"].removesuffix(".changed"))


async def kept_events(subscriber: Path) -> list[Msg]:
    bus = json.loads(subscriber.read_text())
    client = await nats.connect(bus["url"], user=bus["user"], password=bus["password"])
    try:
        events = await client.jetstream().subscribe("resolute.v1.>", stream="PUBLIC_EVENTS", ordered_consumer=True)
        found = []
        while True:
            try:
                found.append(await events.next_msg(timeout=2))
            except NothingLeft:
                return found
    finally:
        await client.close()
