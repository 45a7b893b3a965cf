"""The subscriber in the documentation works as it stands there, and what it is told are CloudEvents."""

from __future__ import annotations

import asyncio
import json
import os
import re
import subprocess
import sys
import threading
from pathlib import Path

import nats
from nats.aio.msg import Msg
from nats.errors import TimeoutError as NothingLeft

from tests.harness.client import Client
from tests.harness.cloud_events import check_contract, read_cloud_event
from tests.harness.looking import Looking
from tests.harness.waiting import wait_until
from tests.harness.whole_system import WholeSystem
from tests.programs import submit

DOCUMENT = Path(__file__).parents[2] / "docs" / "events.md"


def test_the_subscriber_in_the_documentation_sees_an_experiment(
    det: Client, look: Looking, whole_system: WholeSystem
) -> None:
    found = re.search(r"```python\n(.*?)```", DOCUMENT.read_text(), re.DOTALL)
    assert found is not None
    subscriber = subprocess.Popen(
        [sys.executable, "-c", found.group(1)],
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
