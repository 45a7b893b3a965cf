"""``resolute events`` on a system that runs."""

from __future__ import annotations

import json
import signal
from uuid import uuid4

from tests.harness.resolute import Resolute
from tests.harness.whole_system import WholeSystem


def test_kept_events_come_first_and_then_those_that_happen(whole_system: WholeSystem) -> None:
    def make(name: str) -> str:
        with whole_system.http() as http:
            reply = http.post("/api/v1/workspaces", json={"name": name}).raise_for_status()
        return str(reply.json()["workspace"]["id"])

    kept, name = make(f"kept {uuid4()}"), f"later {uuid4()}"
    printing = Resolute(whole_system.layout.root).start(
        "events", "resolute.v1.workspace.*.created", "--since", "1h", "--json"
    )
    try:
        assert printing.stdout is not None
        while (event := json.loads(printing.stdout.readline()))["subject"] != kept:
            assert event["type"] == "resolute.v1.workspace.created"
        later = make(name)
        while (event := json.loads(printing.stdout.readline()))["subject"] != later:
            pass
        assert event["data"]["name"] == name
    finally:
        printing.send_signal(signal.SIGINT)
        printing.communicate(timeout=200)
    assert printing.returncode == 130
