"""Runs the unmodified client as users have it: a program that knows our address and nothing else of us."""

from __future__ import annotations

import json
import os
import subprocess
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import pytest

from tests.harness.processes import REPOSITORY


def det_path() -> Path:
    """The client to test with. Skips the test when there is none."""
    path = Path(os.environ.get("RESOLUTE_DET") or REPOSITORY / ".venv-client" / "bin" / "det")
    if not path.exists():
        pytest.skip("needs the client: `make setup` installs it, RESOLUTE_DET=/path/to/det names another")
    return path


@dataclass(frozen=True)
class Ended:
    """How a command ended."""

    argv: Sequence[str]
    code: int
    out: str
    err: str

    def json(self) -> Any:
        return json.loads(self.out)

    def __str__(self) -> str:
        return f"det {' '.join(self.argv)} ended with {self.code}\n--- out\n{self.out}\n--- err\n{self.err}"


@dataclass(frozen=True, kw_only=True)
class Det:
    """Commands of one person at one machine.

    home      what the client remembers (tokens, certificates) is kept here and nowhere else
    username  "" for whoever logged in last, which is ``determined`` at first
    env       added to the few variables that commands get
    """

    url: str
    home: Path
    username: str = ""
    env: Mapping[str, str] = field(default_factory=dict)

    def __call__(self, *arguments: str, answers: Sequence[str] = (), timeout_s: float = 180) -> Ended:
        """Run a command that must succeed; ``answers`` are typed at its prompts."""
        ended = self.run(*arguments, answers=answers, timeout_s=timeout_s)
        assert ended.code == 0, str(ended)
        return ended

    def fails(self, *arguments: str, answers: Sequence[str] = (), timeout_s: float = 180) -> Ended:
        """Run a command that must fail."""
        ended = self.run(*arguments, answers=answers, timeout_s=timeout_s)
        assert ended.code != 0, str(ended)
        return ended

    def run(self, *arguments: str, answers: Sequence[str] = (), timeout_s: float = 180) -> Ended:
        """Run a command, however it ends."""
        self.home.mkdir(parents=True, exist_ok=True)
        who = ("-u", self.username) if self.username else ()
        done = subprocess.run(
            [str(det_path()), *who, *arguments],
            input="".join(f"{answer}\n" for answer in answers),
            capture_output=True,
            text=True,
            timeout=timeout_s,
            cwd=self.home,
            # Without a terminal of its own it reads passwords from where we write them.
            start_new_session=True,
            env={
                "PATH": os.environ["PATH"],
                "HOME": str(self.home),
                "DET_DEBUG_CONFIG_PATH": str(self.home),
                "DET_MASTER": self.url,
                "NO_PROXY": "*",
                "LANG": "C.UTF-8",
                "COLUMNS": "400",
                # A server that refuses is an answer here, not a reason to wait.
                "DET_RETRY_CONFIG": '{"total": 0}',
                "PYTHONWARNINGS": "ignore",
                **self.env,
            },
            check=False,
        )
        return Ended(arguments, done.returncode, done.stdout, done.stderr)
