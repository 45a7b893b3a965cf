"""The client as people and scripts use it: ``det`` for what it prints, the SDK for what it returns."""

from __future__ import annotations

import json
import re
import subprocess
from collections.abc import Mapping
from pathlib import Path
from typing import Any, Final

from tests.harness.det import Det, Ended
from tests.harness.installed_client import client_python

_RESULT: Final = "\x1eresult "
_PRELUDE: Final = f"""
import json, sys
from determined.experimental import client

def result(value):
    print({_RESULT!r} + json.dumps(value), flush=True)

"""


class Client:
    """One person's client.

    home    where it remembers logins; its working directory too
    env     added to the few variables that it gets
    forked  see ``Det``
    """

    def __init__(
        self, master_url: str, home: Path, *, env: Mapping[str, str] | None = None, forked: bool = False
    ) -> None:
        self.home = home
        home.mkdir(parents=True, exist_ok=True)
        self._det = Det(url=master_url, home=home, env=env or {}, forked=forked)

    def __call__(self, *arguments: str, answers: tuple[str, ...] = (), timeout_s: float = 180) -> str:
        """What ``det`` printed. AssertionError with everything it said when it did not exit with 0."""
        return self._det(*arguments, answers=answers, timeout_s=timeout_s).out

    def fails(self, *arguments: str, answers: tuple[str, ...] = (), code: int = 1) -> str:
        """What ``det`` printed, errors too; AssertionError unless it exited with ``code`` and without a stack trace."""
        ended = self._det.run(*arguments, answers=answers)
        assert ended.code == code, str(ended)
        assert "Traceback" not in ended.err, str(ended)
        return ended.out + ended.err

    def run(self, *arguments: str) -> Ended:
        return self._det.run(*arguments)

    def sdk(self, code: str, *arguments: object, timeout_s: float = 180) -> Any:
        """Run ``code`` with the client's Python, with ``client`` imported; returns what it passes to ``result``.

        arguments  as text in ``sys.argv[1:]``
        """
        argv = [str(client_python()), "-c", _PRELUDE + code, *map(str, arguments)]
        environment = {
            "PATH": "/usr/bin:/bin",
            "HOME": str(self.home),
            "DET_DEBUG_CONFIG_PATH": str(self.home),
            "DET_MASTER": self._det.url,
            "LANG": "C.UTF-8",
            **self._det.env,
        }
        done = subprocess.run(
            argv, env=environment, cwd=self.home, capture_output=True, text=True, timeout=timeout_s, check=False
        )
        assert done.returncode == 0, f"{code}\nended with {done.returncode}\n{done.stdout}{done.stderr}"
        found = re.findall(f"{_RESULT}(.*)", done.stdout)
        assert found, f"no result in {done.stdout!r}"
        return json.loads(found[-1])
