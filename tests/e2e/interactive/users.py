"""Somebody who works with interactive tasks: through ``det``, ssh, and a browser's requests."""

from __future__ import annotations

import os
import re
import subprocess
from pathlib import Path
from typing import Any, Final

import httpx

from tests.harness.client import Client
from tests.harness.installed_client import det_path, interactive_python, need_ssh
from tests.harness.waiting import wait_until
from tests.harness.whole_system import WholeSystem

_ID: Final = re.compile(r"[0-9a-f]{8}(?:-[0-9a-f]{4}){3}-[0-9a-f]{12}")
KINDS: Final = {"notebook": "notebooks", "shell": "shells", "tensorboard": "tensorboards", "command": "commands"}
READY_S: Final = 90.0


class User:
    """One login, the client of it, and the tasks that were started with it."""

    def __init__(self, system: WholeSystem, http: httpx.Client) -> None:
        self.system = system
        self.http = http
        self.det: Client = system.det("interactive")
        self._started: list[tuple[str, str]] = []

    def start(self, kind: str, *arguments: str) -> str:
        """``det KIND start -d``; returns the id of the task."""
        verb = "run" if kind == "command" else "start"
        printed = self.det(kind, verb, "-d", *arguments)
        found = _ID.findall(printed)
        assert found, printed
        self._started.append((kind, found[-1]))
        return found[-1]

    def open_when_ready(self, kind: str, *arguments: str) -> str:
        """Start, and wait until it says that it is ready; AssertionError with its log when it ends before."""
        task = self.start(kind, *arguments)
        self.wait_until_ready(task)
        return task

    def wait_until_ready(self, task: str) -> None:
        def look() -> bool:
            seen = self.task(task)
            assert seen.get("endTime") is None, self.log(task)
            return any(allocation.get("isReady") for allocation in seen["allocations"])

        try:
            wait_until(look, timeout_s=READY_S, every_s=0.2, what=f"{task} is ready")
        except AssertionError as error:
            raise AssertionError(f"{error}\n{self.log(task)}") from error

    def wait_until_ended(self, task: str, *, timeout_s: float = 60) -> None:
        wait_until(lambda: self.task(task).get("endTime"), timeout_s=timeout_s, every_s=0.2, what=f"{task} has ended")

    def get(self, path: str, **parameters: Any) -> Any:
        return self.http.get(f"/api/v1{path}", params=parameters).raise_for_status().json()

    def task(self, task: str) -> dict[str, Any]:
        found: dict[str, Any] = self.get(f"/tasks/{task}")["task"]
        return found

    def shown(self, kind: str, task: str) -> dict[str, Any]:
        """The notebook, shell, TensorBoard or command, as ``det`` reads it."""
        found: dict[str, Any] = self.get(f"/{KINDS[kind]}/{task}")[kind]
        return found

    def exit_status(self, kind: str, task: str) -> str:
        """How it ended, once it has."""
        self.wait_until_ended(task)
        return str(self.shown(kind, task)["exitStatus"])

    def log(self, task: str) -> str:
        return self.det("task", "logs", task)

    def kill(self, kind: str, task: str) -> None:
        self.det(kind, "kill", task)
        self.wait_until_ended(task)
        self._started.remove((kind, task))

    def kill_all(self) -> None:
        for kind, task in self._started:
            self.http.post(f"/api/v1/{KINDS[kind]}/{task}/kill").raise_for_status()
        self._started.clear()

    def in_shell(self, task: str, *command: str, typed: str = "", timeout_s: float = 60) -> str:
        """What ``det shell open TASK COMMAND`` printed; ssh finds its home and its settings in ours."""
        need_ssh()
        return self.program(str(det_path()), "shell", "open", task, *command, typed=typed, timeout_s=timeout_s)

    @property
    def environment(self) -> dict[str, str]:
        """For programs of this user that are not ``det``."""
        return {
            "PATH": os.environ["PATH"],
            "HOME": str(self.det.home),
            "DET_DEBUG_CONFIG_PATH": str(self.det.home),
            "DET_MASTER": self.system.url,
            "NO_PROXY": "*",
            "LANG": "C.UTF-8",
            "PYTHONWARNINGS": "ignore",
        }

    def ssh_options(self, task: str, directory: Path) -> list[str]:
        """Options with which ssh, scp and rsync go through the proxy, as ``det shell show-ssh-command`` prints them."""
        need_ssh()
        key = directory / f"key-{task}"
        if not key.exists():
            key.write_text(self.shown("shell", task)["privateKey"])
            key.chmod(0o600)
        proxy = f"{det_path().with_name('python')} -m determined.cli.tunnel {self.system.url} %h"
        return [
            *("-o", f"ProxyCommand={proxy}", "-o", "StrictHostKeyChecking=no", "-o", "UserKnownHostsFile=/dev/null"),
            *("-o", "LogLevel=ERROR", "-o", "IdentitiesOnly=yes", "-i", str(key)),
        ]

    def program(self, *argv: str, timeout_s: float = 120, typed: str = "") -> str:
        """What a program printed that must succeed."""
        done = subprocess.run(
            argv,
            input=typed,
            capture_output=True,
            text=True,
            timeout=timeout_s,
            env=self.environment,
            cwd=self.det.home,
            check=False,
        )
        assert done.returncode == 0, f"{argv}\n{done.stdout}\n{done.stderr}"
        return done.stdout

    def kernel(self, task: str, of: Kernel | None = None) -> Kernel:
        """A new kernel of a notebook, or a new connection to that of ``of``."""
        return Kernel(f"{self.system.url}{self.shown('notebook', task)['serviceAddress']}", of.id if of else "")


class Kernel:
    """A kernel of a notebook, with a websocket to it through the proxy, in a process of its own."""

    def __init__(self, address: str, kernel: str = "") -> None:
        program = str(Path(__file__).with_name("kernel_client.py"))
        self._process = subprocess.Popen(
            [str(interactive_python()), program, address, kernel],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
        )
        self.id = self.answer()

    def run(self, code: str) -> str:
        """What a cell of one line printed."""
        self.begin(code)
        return self.answer()

    def begin(self, code: str) -> None:
        """Run a cell; ``answer`` waits for its end."""
        assert self._process.stdin is not None
        self._process.stdin.write(f"{code}\n")
        self._process.stdin.flush()

    def answer(self) -> str:
        assert self._process.stdout is not None
        line = self._process.stdout.readline()
        if not line:
            _, errors = self._process.communicate(timeout=30)
            raise AssertionError(f"the kernel's client ended: {errors}")
        return line.rstrip("\n")

    def close(self) -> None:
        self._process.communicate(timeout=30)

    def kill(self) -> None:
        self._process.kill()
        self.close()
