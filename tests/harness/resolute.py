"""The command ``resolute`` on a state folder of its own, as a user types it."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path

from deploy.local.layout import Layout, Options
from tests.harness.installed_client import client_python
from tests.harness.processes import REPOSITORY
from tests.harness.whole_system import WholeSystem

NOT_RUNNING = 3


class Resolute:
    def __init__(self, state: Path) -> None:
        self.state = state
        self._argv = [sys.executable, "-m", "deploy.cli", "--state", str(state)]

    def __call__(self, *arguments: str, code: int = 0) -> str:
        done = subprocess.run(
            [*self._argv, *arguments], cwd=REPOSITORY, capture_output=True, text=True, timeout=200, check=False
        )
        assert done.returncode == code, f"{arguments} ended with {done.returncode}\n{done.stdout}{done.stderr}"
        return done.stdout + done.stderr

    def up(self, *options: str) -> str:
        blank = () if "--passwords" in options else ("--passwords", "blank")
        return self(
            "up", "--port", "0", "--slots", "2", "--standby", "no", "--python", str(client_python()), *blank, *options
        )

    def start(self, *arguments: str) -> subprocess.Popen[str]:
        # Shells start what runs in the background with SIGINT ignored, and the tests may run there.
        return subprocess.Popen(
            ["env", "--default-signal=INT", *self._argv, *arguments],
            cwd=REPOSITORY,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
        )

    def status(self, code: int = 0) -> dict[str, object]:
        found: dict[str, object] = json.loads(self("status", "--json", code=code))
        return found

    def system(self) -> WholeSystem:
        layout = Layout(self.state)
        options = Options.load(layout)
        assert options is not None
        return WholeSystem(layout, options, self.state.parent / "homes")
