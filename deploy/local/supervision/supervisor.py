"""Keeps the processes of one state folder running: starts them, restarts what dies, stops them in reverse order.

It reads ``run/plan.json``, a list of ``{"name", "argv", "env", "cwd", "log", "user", "stop_signal", "stop_timeout_s",
"needed_by_others", "storage_check", "listener"}`` in the order of starting. What has a ``storage_check`` is started
anew when it does not store although its disk can; what has a ``listener`` gets a socket that stays open meanwhile.
SIGHUP makes it look for hold files again, SIGTERM ends it and all that it started. Standard library only: on an idle
machine it is one small process that sleeps.
"""

from __future__ import annotations

import contextlib
import json
import os
import select
import signal
import subprocess
import sys
import time
from dataclasses import dataclass, field
from pathlib import Path
from types import FrameType
from typing import Any, Final

from deploy.local.supervision.bus_check import StorageCheck, disk_can_store, refused
from deploy.local.supervision.kept_listener import KeptListener

FIRST_DELAY_S: Final = 0.2
LONGEST_DELAY_S: Final = 5.0
HEALTHY_AFTER_S: Final = 20.0
"""A process that lived this long is restarted without delay when it dies."""
CHECK_EVERY_S: Final = 5.0
REFUSALS: Final = 2
"""So many checks in a row have to fail before a process is started anew."""


def start_time(pid: int) -> str | None:
    """When a process started, in ticks since boot: with the pid it names one process for good. None: there is none."""
    try:
        stat = Path(f"/proc/{pid}/stat").read_text()
    except (FileNotFoundError, ProcessLookupError):
        return None
    state, *fields = stat.rpartition(")")[2].split()
    return None if state == "Z" else fields[18]


@dataclass
class Service:
    plan: dict[str, Any]
    run: Path
    process: subprocess.Popen[bytes] | None = None
    started_at: float = 0.0
    restarts: int = -1
    delay_s: float = FIRST_DELAY_S
    start_after: float = 0.0
    check_at: float = 0.0
    refusals: int = 0
    listener: KeptListener = field(init=False)

    def __post_init__(self) -> None:
        self.listener = KeptListener(self.plan.get("listener"))

    @property
    def name(self) -> str:
        return str(self.plan["name"])

    @property
    def held(self) -> bool:
        return (self.run / f"{self.name}.hold").exists()

    def start(self) -> None:
        user = self.plan.get("user")
        descriptors, variables = self.listener.handed_over()
        with Path(self.plan["log"]).open("ab") as log:
            self.process = subprocess.Popen(
                self.plan["argv"],
                env=self.plan["env"] | variables,
                cwd=self.plan["cwd"],
                stdin=subprocess.DEVNULL,
                stdout=log,
                stderr=log,
                start_new_session=True,
                pass_fds=descriptors,
                user=user,
                group=user,
                extra_groups=[] if user is not None else None,
            )
        self.started_at = time.monotonic()
        self.check_at = self.started_at + CHECK_EVERY_S
        self.refusals = 0
        self.restarts += 1
        record = {
            "pid": self.process.pid,
            "start_time": start_time(self.process.pid),
            "restarts": self.restarts,
            "since": time.time(),
        }
        partial = self.run / f"{self.name}.json.partial"
        partial.write_text(json.dumps(record))
        partial.replace(self.run / f"{self.name}.json")

    def died(self, now: float) -> None:
        self.process = None
        if now - self.started_at > HEALTHY_AFTER_S:
            self.delay_s = FIRST_DELAY_S
        self.start_after = now + self.delay_s
        self.delay_s = min(self.delay_s * 2, LONGEST_DELAY_S)

    def check_storage(self, now: float) -> float | None:
        """Start it anew when it goes on refusing what its disk could take. Returns when to check again; None: never."""
        if "storage_check" not in self.plan or self.process is None:
            return None
        if now < self.check_at:
            return self.check_at
        check = StorageCheck(**self.plan["storage_check"])
        missing = refused(check)
        self.refusals = self.refusals + 1 if missing else 0
        if self.refusals >= REFUSALS and disk_can_store(check.directory):
            print(
                f"{self.name} does not store {', '.join(missing)}, and its disk has space: starting it anew", flush=True
            )
            self.stop()
            self.start()
        self.check_at = time.monotonic() + CHECK_EVERY_S
        return self.check_at

    def ask(self) -> None:
        """Ask it to end, without waiting for that."""
        if self.process is not None:
            self.process.send_signal(signal.Signals[self.plan.get("stop_signal", "SIGTERM")])

    def stop(self) -> None:
        """Ask, wait, insist."""
        if self.process is None:
            return
        pid = self.process.pid
        self.ask()
        try:
            self.process.wait(self.plan.get("stop_timeout_s", 10))
        except subprocess.TimeoutExpired:
            self.process.kill()
            self.process.wait()
        self.process = None
        record = self.run / f"{self.name}.json"
        # Whoever waited for its end to take the service over may have written its own by now.
        if record.exists() and json.loads(record.read_text())["pid"] == pid:
            record.unlink()


class SystemSupervisor:
    def __init__(self, state: Path) -> None:
        self._run = state / "run"
        plan = json.loads((self._run / "plan.json").read_text())
        self._services = [Service(entry, self._run) for entry in plan]
        self._ending = False
        self._wake_read, self._wake_write = os.pipe()
        for end in (self._wake_read, self._wake_write):
            os.set_blocking(end, False)

    def serve(self) -> None:
        signal.set_wakeup_fd(self._wake_write, warn_on_full_buffer=False)
        for number in (signal.SIGTERM, signal.SIGINT):
            signal.signal(number, self._end)
        for number in (signal.SIGCHLD, signal.SIGHUP):
            signal.signal(number, lambda *_: None)
        while not self._ending:
            self._sleep(self._keep_running())
        # Services end at the same time; what they need ends after them.
        for service in self._services:
            if not service.plan.get("needed_by_others"):
                service.ask()
        for service in reversed(self._services):
            service.stop()

    def _end(self, _number: int, _frame: FrameType | None) -> None:
        self._ending = True

    def _keep_running(self) -> float | None:
        """One look at every service. Returns seconds until the next start or check is due; None: nothing is."""
        now = time.monotonic()
        due: list[float] = []
        for service in self._services:
            if service.process is not None and service.process.poll() is not None:
                print(f"{service.name} ended with {service.process.returncode}", flush=True)
                service.died(now)
            if service.held:
                # Whoever takes it over listens for himself.
                service.listener.close()
                service.stop()
                service.start_after = 0.0
            elif service.process is None:
                if service.start_after > now:
                    due.append(service.start_after - now)
                    continue
                service.start()
            check_at = service.check_storage(now)
            if check_at is not None:
                due.append(max(0.0, check_at - time.monotonic()))
        return min(due, default=None)

    def _sleep(self, timeout_s: float | None) -> None:
        select.select([self._wake_read], [], [], timeout_s)
        with contextlib.suppress(BlockingIOError):
            while os.read(self._wake_read, 1024):
                pass


def main() -> None:
    SystemSupervisor(Path(sys.argv[1])).serve()


if __name__ == "__main__":
    main()
