"""Runs the unmodified client as users have it: a program that knows our address and nothing else of us."""

from __future__ import annotations

import json
import os
import subprocess
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from tests.harness.forked_client import run_forked
from tests.harness.installed_client import det_path


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
    forked    from a process that has imported the client, which takes half of the time; False starts the program
    """

    url: str
    home: Path
    username: str = ""
    env: Mapping[str, str] = field(default_factory=dict)
    forked: bool = True

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
        argv = ["-u", self.username, *arguments] if self.username else list(arguments)
        typed = "".join(f"{answer}\n" for answer in answers)
        run = run_forked if self.forked else _run_program
        code, out, err = run(argv, env=self._environment(), cwd=self.home, typed=typed, timeout_s=timeout_s)
        return Ended(arguments, code, out, err)

    def _environment(self) -> dict[str, str]:
        return {
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
        }


def _run_program(
    arguments: Sequence[str], *, env: Mapping[str, str], cwd: Path, typed: str, timeout_s: float
) -> tuple[int, str, str]:
    done = subprocess.run(
        [str(det_path()), *arguments],
        input=typed,
        capture_output=True,
        text=True,
        timeout=timeout_s,
        cwd=cwd,
        # Without a terminal of its own it reads passwords from where we write them.
        start_new_session=True,
        env=env,
        check=False,
    )
    return done.returncode, done.stdout, done.stderr
