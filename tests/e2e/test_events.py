"""The subscriber in the documentation works as it stands there."""

from __future__ import annotations

import os
import re
import subprocess
import sys
import threading
from pathlib import Path

from tests.harness.client import Client
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
