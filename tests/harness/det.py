"""The unmodified client as a user has it: ``det`` and its Python, with a home and a login of their own."""

from __future__ import annotations

import json
import os
import re
import subprocess
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final

from tests.harness.processes import REPOSITORY

DET_VARIABLE: Final = "RESOLUTE_DET"
_RESULT: Final = "\x1eresult "
_SDK_PRELUDE: Final = f"""
import json, sys
from determined.experimental import client

def result(value):
    print({_RESULT!r} + json.dumps(value), flush=True)

"""


def find_det() -> Path:
    """The client that ``make setup`` installs, unless the environment names another."""
    return Path(os.environ.get(DET_VARIABLE) or REPOSITORY / ".venv-client" / "bin" / "det")


def client_python() -> Path:
    """The interpreter beside ``det``: the SDK runs in it, and so do tasks."""
    return find_det().with_name("python")


@dataclass(frozen=True)
class Ended:
    code: int
    output: str
    errors: str


class Det:
    """Runs ``det`` against one master.

    home  where the client keeps its login; two clients with one home share it
    """

    def __init__(self, master_url: str, home: Path) -> None:
        self.master_url = master_url
        self.home = home
        home.mkdir(parents=True, exist_ok=True)
        kept = {name: value for name, value in os.environ.items() if not name.startswith("DET_")}
        self._environment = {
            **kept,
            "DET_MASTER": master_url,
            "HOME": str(home),
            "XDG_CONFIG_HOME": str(home),
            "COLUMNS": "400",
        }

    def __call__(self, *arguments: str, timeout_s: float = 60, stdin: str = "") -> str:
        """What ``det`` printed. AssertionError with everything it said when it did not exit with 0."""
        ended = self.run(*arguments, timeout_s=timeout_s, stdin=stdin)
        assert ended.code == 0, f"det {' '.join(arguments)} ended with {ended.code}\n{ended.output}{ended.errors}"
        return ended.output

    def fails(self, *arguments: str, code: int = 1, timeout_s: float = 60, stdin: str = "") -> str:
        """What ``det`` printed, errors too; AssertionError unless it exited with ``code``."""
        ended = self.run(*arguments, timeout_s=timeout_s, stdin=stdin)
        assert ended.code == code, f"det {' '.join(arguments)} ended with {ended.code}\n{ended.output}{ended.errors}"
        assert "Traceback" not in ended.errors, ended.errors
        return ended.output + ended.errors

    def run(self, *arguments: str, timeout_s: float = 60, stdin: str = "") -> Ended:
        return self._run([str(find_det()), *arguments], timeout_s, stdin)

    def start(self, *arguments: str) -> subprocess.Popen[str]:
        """``det`` in the background, with its output and errors in one pipe."""
        return subprocess.Popen(
            [str(find_det()), *arguments],
            env=self._environment,
            cwd=self.home,
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            text=True,
        )

    def sdk(self, code: str, *arguments: object, timeout_s: float = 60) -> Any:
        """Run ``code`` with the client's Python, with ``client`` imported; returns what it passes to ``result``.

        ``arguments`` are in ``sys.argv[1:]``, as text.
        """
        argv = [str(client_python()), "-c", _SDK_PRELUDE + code, *map(str, arguments)]
        ended = self._run(argv, timeout_s, "")
        assert ended.code == 0, f"{code}\nended with {ended.code}\n{ended.output}{ended.errors}"
        found = re.findall(f"{_RESULT}(.*)", ended.output)
        assert found, f"no result in {ended.output!r}"
        return json.loads(found[-1])

    def _run(self, argv: list[str], timeout_s: float, stdin: str) -> Ended:
        done = subprocess.run(
            argv,
            env=self._environment,
            cwd=self.home,
            input=stdin,
            capture_output=True,
            text=True,
            timeout=timeout_s,
            check=False,
            # Without a terminal the client reads passwords from its input.
            start_new_session=True,
        )
        return Ended(done.returncode, done.stdout, done.stderr)
