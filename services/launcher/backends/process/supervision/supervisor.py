"""The supervisor of one allocation: starts its pods, ends them, and writes down how they ended.

Detached from the launcher, so that tasks live through its restarts, and the true exit codes with them. It knows the
allocation's directory only:

    plan.json        what to run; written by the launcher before it starts us
    stop.json        ``{"deadline": <unix time>, "ordered": bool}``: end everything, and kill at the deadline
    status.json      what we say about the pods; the first one is written before the first pod starts
    supervisor.lock  held while we live; contains our pid

SIGTERM means that stop.json may have changed; without a stop.json, that the machine is being shut down. The pods of a
gang end together: the first that fails takes the others with it. Only the standard library, for it waits beside every
task. Run with ``python -m``, with the directory as argument.
"""

from __future__ import annotations

import fcntl
import json
import os
import select
import signal
import stat
import sys
import time
from collections.abc import Iterator, Mapping
from typing import Any, Final

from services.launcher.backends.process.isolation.kernel import adopt_orphans
from services.launcher.backends.process.isolation.mount_sources import MountLimits
from services.launcher.backends.process.isolation.namespaces import Way
from services.launcher.backends.process.no_space import TRY_AGAIN_S, is_no_space
from services.launcher.backends.process.replacing import keep_space, replace_file
from services.launcher.backends.process.supervision.pod_start import PodStart
from services.launcher.backends.process.supervision.process_trees import kill_pod, send

GANG_GRACE_S: Final = 15.0
SHUTDOWN_GRACE_S: Final = 15.0
LAST_WORDS_S: Final = 3.0
"""How long the capture wrapper may write down the end after everything below it was killed."""
TERMINATION_LOG: Final = "termination-log"
LAST_WORDS_BYTES: Final = 4096


class SupervisedPod:
    def __init__(self, plan: Mapping[str, Any]) -> None:
        self.plan = plan
        self.pid: int | None = None
        self.state = "STARTING"
        self.exit_code: int | None = None
        self.failure = ""
        self.message = ""

    @property
    def run_dir(self) -> str:
        return str(self.plan["run_dir"])

    @property
    def name(self) -> str:
        return str(self.plan["name"])

    def end(self, *, exit_code: int | None = None, failure: str = "", message: str = "") -> None:
        self.pid = None
        self.state = "TERMINATED"
        self.exit_code, self.failure, self.message = exit_code, failure, message

    def seen(self) -> dict[str, Any]:
        return {
            "state": self.state,
            "exit_code": self.exit_code,
            "failure": self.failure,
            "message": self.message,
        }


class AllocationSupervisor:
    def __init__(self, directory: str, plan: Mapping[str, Any], wake: int) -> None:
        self.directory = directory
        self.way = Way(plan["with_user_namespace"], plan["with_pid_namespace"])
        self.limits = MountLimits(plan["hidden"], plan["mountable"], plan["system_targets"])
        self.changes = str(plan["changes"])
        self.pods = [SupervisedPod(pod) for pod in plan["pods"]]
        self.wake = wake
        self.asked_to_stop = False
        """A signal came; what it means is in stop.json."""
        self.stopped = False
        """An order ended it, before any pod had ended by itself."""
        self.reason = ""
        """Why the remaining pods are being ended; empty while they are not."""
        self.deadline: float | None = None
        self.killed = False
        self.is_written = True
        """Whether the last status could be written."""

    def run(self) -> None:
        self.write_status_at_last()
        # After the first status: whoever writes stop.json either sees it and signals us, or is seen here.
        self.look_for_stop()
        for pod in self.pods:
            if self.reason:
                pod.end(failure="DELETED" if self.stopped else "ABORTED", message=self.reason)
            else:
                self.start(pod)
        self.write_status()
        while self.live():
            self.wait()
            changed = self.reap()
            if self.asked_to_stop:
                self.look_for_stop()
            self.enforce_deadline()
            if (changed or not self.is_written) and self.live():
                self.write_status()
        self.end_strays()
        self.write_status_at_last(ended=True)

    def live(self) -> list[SupervisedPod]:
        return [pod for pod in self.pods if pod.pid is not None]

    def start(self, pod: SupervisedPod) -> None:
        start = PodStart(pod.plan, way=self.way, limits=self.limits)
        if start.problem:
            pod.end(failure="LAUNCH_ERROR", message=start.problem)
            self.end_all(f"pod {pod.name} could not be started", GANG_GRACE_S)
        else:
            pod.pid = start.pid
            pod.state = "RUNNING"

    def wait(self) -> None:
        timeout = None if self.deadline is None else max(0.0, self.deadline - time.monotonic())
        if not self.is_written:
            timeout = TRY_AGAIN_S if timeout is None else min(timeout, TRY_AGAIN_S)
        ready, _, _ = select.select([self.wake], [], [], timeout)
        if ready:
            os.read(self.wake, 4096)

    def reap(self) -> bool:
        """Collect what has ended; True when a pod did."""
        ended = [(pid, status) for pid, status in reap_children() if any(pod.pid == pid for pod in self.pods)]
        for pid, status in ended:
            pod = next(pod for pod in self.pods if pod.pid == pid)
            kill_pod(pod.run_dir)
            code = 128 + os.WTERMSIG(status) if os.WIFSIGNALED(status) else os.WEXITSTATUS(status)
            if self.reason:
                pod.end(exit_code=code, failure="DELETED" if code else "", message=self.reason if code else "")
            elif code:
                pod.end(exit_code=code, failure="FAILED", message=last_words(pod.run_dir) or describe(code))
                self.end_all(f"ended because pod {pod.name} failed", GANG_GRACE_S)
            else:
                pod.end(exit_code=0)
        return bool(ended)

    def look_for_stop(self) -> None:
        """Do what stop.json says; a signal without one comes from the machine."""
        asked, self.asked_to_stop = self.asked_to_stop, False
        try:
            with open(os.path.join(self.directory, "stop.json")) as file:
                stop = json.load(file)
        except FileNotFoundError:
            if asked:
                self.end_all("the machine is being shut down", SHUTDOWN_GRACE_S)
            return
        if not self.reason:
            self.stopped = all(pod.state != "TERMINATED" for pod in self.pods)
        self.end_all("stopped by order" if stop["ordered"] else "order withdrawn", stop["deadline"] - time.time())

    def end_all(self, reason: str, grace_s: float) -> None:
        """Ask the pods to end, and have them killed after ``grace_s``, unless that is to happen sooner already."""
        deadline = time.monotonic() + grace_s
        if not self.reason:
            self.reason = reason
            for pod in self.live():
                assert pod.pid is not None
                send(pod.pid, signal.SIGTERM)
        if not self.killed and (self.deadline is None or deadline < self.deadline):
            self.deadline = deadline

    def enforce_deadline(self) -> None:
        if self.deadline is None or time.monotonic() < self.deadline:
            return
        for pod in self.live():
            assert pod.pid is not None
            # The wrapper is spared at first: it writes down what was printed last, and that this was the end.
            kill_pod(pod.run_dir, spare=() if self.killed else (pod.pid,))
        self.deadline = time.monotonic() + LAST_WORDS_S
        self.killed = True

    def end_strays(self) -> None:
        """Kill what was started in a pod, but left its view of the file system. Orphans become our children."""
        deadline = time.monotonic() + LAST_WORDS_S
        while time.monotonic() < deadline:
            for pid in children():
                send(pid, signal.SIGKILL)
            list(reap_children())
            if not children():
                return
            time.sleep(0.01)

    def write_status(self, *, ended: bool = False) -> None:
        """Write down how it stands, or note that it could not be written because the disk is full."""
        status = {"pods": [pod.seen() for pod in self.pods], "stopped": self.stopped, "ended": ended}
        path = os.path.join(self.directory, "status.json")
        self.is_written = False
        try:
            replace_file(path, json.dumps(status).encode())
            self.is_written = True
            keep_space(path)
        except OSError as error:
            if not is_no_space(error):
                raise
            if not self.is_written:
                return
        self.notify()

    def write_status_at_last(self, *, ended: bool = False) -> None:
        """Return when it is written: nobody else would do it, and nothing runs that has to be watched."""
        self.write_status(ended=ended)
        while not self.is_written:
            time.sleep(TRY_AGAIN_S)
            self.write_status(ended=ended)

    def notify(self) -> None:
        """Tell the launcher to look; when it is away, it looks when it comes back."""
        try:
            fd = os.open(self.changes, os.O_WRONLY | os.O_NONBLOCK | os.O_CLOEXEC)
        except OSError:
            return
        try:
            os.write(fd, os.fsencode(os.path.basename(self.directory)) + b"\n")
        except (BlockingIOError, BrokenPipeError):
            return
        finally:
            os.close(fd)


def last_words(run_dir: str) -> str:
    """What the pod wrote into ``termination-log``, as containers do for the kubelet, which reads as much of it.

    What is there is the task's: neither a link nor a pipe in its place leads anywhere.
    """
    try:
        fd = os.open(os.path.join(run_dir, TERMINATION_LOG), os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC)
    except OSError:
        return ""
    try:
        if not stat.S_ISREG(os.fstat(fd).st_mode):
            return ""
        return os.read(fd, LAST_WORDS_BYTES).decode(errors="replace").replace("\0", "").strip()
    finally:
        os.close(fd)


def describe(code: int) -> str:
    """An exit code in words."""
    if code > 128:
        try:
            return f"ended by signal {code - 128} ({signal.Signals(code - 128).name})"
        except ValueError:
            pass  # a code of the program's own
    return f"exited with code {code}"


def reap_children() -> Iterator[tuple[int, int]]:
    """Pid and wait status of every child that has ended, orphans that were given to us included."""
    while True:
        try:
            pid, status = os.waitpid(-1, os.WNOHANG)
        except ChildProcessError:
            return
        if pid == 0:
            return
        yield pid, status


def children() -> list[int]:
    me = os.getpid()
    found = []
    for name in os.listdir("/proc"):
        if name.isdigit():
            try:
                with open(f"/proc/{name}/stat") as file:
                    parent = int(file.read().rpartition(")")[2].split()[1])
            except OSError:
                continue  # it is over
            if parent == me:
                found.append(int(name))
    return found


def lock(directory: str) -> bool:
    """Become the only supervisor of the allocation; False when its directory has been given up meanwhile."""
    path = os.path.join(directory, "supervisor.lock")
    try:
        fd = os.open(path, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o600)
    except FileNotFoundError:
        return False
    fcntl.flock(fd, fcntl.LOCK_EX)
    try:
        is_current = os.path.samestat(os.fstat(fd), os.stat(path))
    except FileNotFoundError:
        return False
    write_pid(fd)
    return is_current


def write_pid(fd: int) -> None:
    """Say in the lock file who holds it, as soon as there is space for that."""
    pid = b"%d\n" % os.getpid()
    while True:
        try:
            os.pwrite(fd, pid, 0)
            os.ftruncate(fd, len(pid))
        except OSError as error:
            if not is_no_space(error):
                raise
            time.sleep(TRY_AGAIN_S)
        else:
            return


def main(directory: str) -> None:
    if not lock(directory) or os.path.exists(os.path.join(directory, "status.json")):
        return  # given up, or done by a supervisor before us
    with open(os.path.join(directory, "plan.json")) as file:
        plan = json.load(file)
    woken, wake = os.pipe()
    os.set_blocking(wake, False)
    supervisor = AllocationSupervisor(directory, plan, woken)
    signal.set_wakeup_fd(wake, warn_on_full_buffer=False)
    signal.signal(signal.SIGCHLD, lambda *_: None)
    signal.signal(signal.SIGHUP, signal.SIG_IGN)
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    signal.signal(signal.SIGTERM, lambda *_: setattr(supervisor, "asked_to_stop", True))
    adopt_orphans()
    os.chdir("/")
    supervisor.run()


if __name__ == "__main__":
    main(sys.argv[1])
