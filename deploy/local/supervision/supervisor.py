"""Keeps the processes of one state folder running: starts them, restarts what dies, stops them in reverse order.

It reads ``run/plan.json``, a list of ``{"name", "argv", "cwd", "log", "user", "stop_signal", "stop_timeout_s",
"needed_by_others", "storage_check", "listener", "directory"}`` in the order of starting. What has a ``storage_check``
is started anew when it does not store although its disk can; what has a ``listener`` gets a socket that stays open
meanwhile; what has a ``directory`` stores there, and the log says when the file system of that is full.
SIGHUP makes it look for hold files again, SIGTERM ends it and all that it started.

No failure of one service or of a file ends it: whatever could not be done is said, and tried again. Standard library
only: on an idle machine it is one small process that sleeps.
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
from collections.abc import Callable
from functools import partial
from pathlib import Path
from types import FrameType
from typing import Any, Final

from deploy import process_records as records
from deploy.file_systems import FileSystem, full_file_systems
from deploy.local.log_files import open_descriptor
from deploy.local.supervision.bus_check import StorageCheck, disk_can_store, refused
from deploy.local.supervision.environment import service_environment
from deploy.local.supervision.kept_listener import KeptListener
from deploy.local.supervision.steady_log import SteadyLog
from deploy.process_records import HEALTHY_AFTER_S, LONGEST_DELAY_S, ProcessRecord, start_time

FIRST_DELAY_S: Final = 0.2
CHECK_EVERY_S: Final = 5.0
REFUSALS: Final = 2
"""So many checks in a row have to fail before a process is started anew."""


class Service:
    # No dataclass: their module brings a third of what this process would take without it.
    def __init__(self, plan: dict[str, Any], run: Path, log: SteadyLog) -> None:
        self.plan = plan
        self.run = run
        self.log = log
        self.process: subprocess.Popen[bytes] | None = None
        self.started_at = 0.0
        self.restarts = -1
        self.failures = 0
        self.delay_s = FIRST_DELAY_S
        self.start_after = 0.0
        self.check_at = 0.0
        self.refusals = 0
        self.unrecorded: ProcessRecord | None = None
        """Of the running process, until it is written down."""
        self.listener = KeptListener(plan.get("listener"))

    @property
    def name(self) -> str:
        return str(self.plan["name"])

    @property
    def record(self) -> Path:
        return self.run / f"{self.name}.json"

    @property
    def held(self) -> bool:
        return (self.run / f"{self.name}.hold").exists()

    def start(self) -> None:
        """Raises OSError when no process could be started."""
        user = self.plan.get("user")
        descriptors, variables = self.listener.handed_over()
        output = self._open_output()
        try:
            self.process = subprocess.Popen(
                self.plan["argv"],
                env=service_environment(self.name, os.environ) | variables,
                cwd=self.plan["cwd"],
                stdin=subprocess.DEVNULL,
                stdout=output,
                stderr=output,
                start_new_session=True,
                pass_fds=descriptors,
                user=user,
                group=user,
                extra_groups=[] if user is not None else None,
            )
        finally:
            if output is not None:
                os.close(output)
        self.started_at = time.monotonic()
        self.check_at = self.started_at + CHECK_EVERY_S
        self.refusals = 0
        self.restarts += 1
        self.unrecorded = ProcessRecord(
            pid=self.process.pid,
            start_time=start_time(self.process.pid),
            restarts=self.restarts,
            since=time.time(),
            failures=self.failures,
        )

    def _open_output(self) -> int | None:
        """The log of the service; None, our own, when that cannot be opened."""
        try:
            return open_descriptor(Path(self.plan["log"]))
        except OSError as error:
            self.log.say(f"{self.name} logs here: {self.plan['log']} cannot be opened: {error.strerror}")
            return None

    def write_record(self) -> None:
        """Write down which process it is, unless that was done. Raises OSError."""
        if self.unrecorded is not None:
            records.write(self.record, self.unrecorded)
            self.unrecorded = None

    def died(self, now: float) -> None:
        self.process = None
        self.unrecorded = None
        self.failures += 1
        if now - self.started_at > HEALTHY_AFTER_S:
            self.delay_s = FIRST_DELAY_S
            self.failures = 0
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
            self.log.say(f"{self.name} does not store {', '.join(missing)}, and its disk has space: starting it anew")
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
        self.unrecorded = None
        # Whoever waited for its end to take the service over may have written its own by now.
        recorded = records.read(self.record)
        if recorded is not None and recorded.pid == pid:
            records.clear(self.record)


class SystemSupervisor:
    def __init__(self, state: Path) -> None:
        self._run = state / "run"
        self._log = SteadyLog()
        plan = json.loads((self._run / "plan.json").read_text())
        self._services = [Service(entry, self._run, self._log) for entry in plan]
        self._directories = [state, *(Path(entry["directory"]) for entry in plan if "directory" in entry)]
        self._full: dict[str, FileSystem] = {}
        """By where they are mounted: what the log says to be full."""
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
        self._keep_space()
        while not self._ending:
            self._sleep(self._look())
        # Services end at the same time; what they need ends after them.
        for service in self._services:
            if not service.plan.get("needed_by_others"):
                service.ask()
        for service in reversed(self._services):
            self._attempt(f"the end of {service.name}", service.stop)
        self._log.flush()

    def _end(self, _number: int, _frame: FrameType | None) -> None:
        self._ending = True

    def _look(self) -> float:
        """One look at everything. Returns seconds until the next one is due."""
        now = time.monotonic()
        self._log.flush()
        self._attempt("a look at the disks", self._look_at_disks)
        due = [CHECK_EVERY_S]
        for service in self._services:
            self._attempt(service.name, lambda: due.append(self._keep_running(service, now)))  # noqa: B023  called here
            if service.unrecorded is not None:
                self._attempt(f"the record of {service.name}", service.write_record)
        return min(due)

    def _keep_running(self, service: Service, now: float) -> float:
        """Returns seconds until the next start or check is due. Raises OSError when it could not be started."""
        if service.process is not None and service.process.poll() is not None:
            self._log.say(f"{service.name} ended with {service.process.returncode}")
            service.died(now)
        if service.held:
            # Whoever takes it over listens for himself.
            service.listener.close()
            service.stop()
            service.start_after = 0.0
        elif service.process is None:
            if service.start_after > now:
                return service.start_after - now
            try:
                service.start()
            except OSError:
                service.died(now)
                raise
        check_at = service.check_storage(now)
        return CHECK_EVERY_S if check_at is None else max(0.0, check_at - time.monotonic())

    def _attempt(self, what: str, act: Callable[[], object]) -> None:
        """Do it; a failure is said, and the next look tries again."""
        try:
            act()
        except Exception as error:  # noqa: BLE001  the rim: whatever fails for one must not end what runs the others
            self._log.say(f"{what} failed: {error!r}")

    def _keep_space(self) -> None:
        self._log.keep_space()
        for service in self._services:
            self._attempt(f"the record of {service.name}", partial(records.keep_space, service.record))

    def _look_at_disks(self) -> None:
        """Say which file system is full, and when it has space again."""
        full = {each.mount_point: each for each in full_file_systems(self._directories)}
        for mount_point in full.keys() - self._full.keys():
            self._log.say(f"the file system {full[mount_point]} is full: services that store there wait for space")
        for mount_point in self._full.keys() - full.keys():
            self._log.say(f"the file system {mount_point} has space again")
        if self._full and not full:
            self._log.keep_space()
        self._full = full

    def _sleep(self, timeout_s: float) -> None:
        select.select([self._wake_read], [], [], timeout_s)
        with contextlib.suppress(BlockingIOError):
            while os.read(self._wake_read, 1024):
                pass


def main() -> None:
    SystemSupervisor(Path(sys.argv[1])).serve()


if __name__ == "__main__":
    main()
