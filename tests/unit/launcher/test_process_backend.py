"""The pure parts of the process backend: slots, views, observations."""

from __future__ import annotations

import os
import pwd
from pathlib import Path

import pytest

from libs.events.orders import BindMount, Order
from services.launcher.backends.process.observing import observed, status_without_supervisor
from services.launcher.backends.process.prepare import home_of
from services.launcher.backends.process.records import Assignment, PodFiles, PodStatus, Status, Stop
from services.launcher.backends.process.references import resolve_references
from services.launcher.backends.process.slots import device_ids, node_capacity, take_devices
from services.launcher.backends.process.supervise import describe
from services.launcher.backends.process.view import image_environment, pod_mounts, pod_name
from tests.unit.launcher.specs import task


@pytest.mark.parametrize(
    ("held", "num_pods", "per_pod", "expected"),
    [
        ((), 1, 2, (("000", "001"),)),
        (("000", "002"), 1, 1, (("001",),)),
        (("001",), 2, 1, (("000",), ("002",))),
        ((), 1, 0, ((),)),
        ((), 3, 0, ((), (), ())),
        (("000", "001", "002"), 2, 1, (("003",), ())),
    ],
)
def test_devices_are_taken_lowest_first(
    held: tuple[str, ...], num_pods: int, per_pod: int, expected: tuple[tuple[str, ...], ...]
) -> None:
    assert take_devices(device_ids(4), held, num_pods=num_pods, slots_per_pod=per_pod) == expected


def test_capacity_names_holders_and_auxiliary_tasks() -> None:
    node = node_capacity(
        name="n",
        address="127.0.0.1",
        registered_at="",
        slots=3,
        holders=[("a.1", ("pod-0", "pod-1"), (("000",), ("001",))), ("b.1", ("pod",), ((),))],
    )
    assert [(device.id, device.allocation, device.container) for device in node.devices] == [
        ("000", "a.1", "pod-0"),
        ("001", "a.1", "pod-1"),
        ("002", None, None),
    ]
    assert node.aux_containers == ("b.1",)


def test_pods_have_names_of_their_own_from_the_first_eight_characters_on() -> None:
    names = [pod_name(allocation, rank, "cmd") for allocation in ("a.1", "a.2", "b.1") for rank in range(3)]
    assert len({name[:8] for name in names}) == 9
    assert names == [pod_name(allocation, rank, "cmd") for allocation in ("a.1", "a.2", "b.1") for rank in range(3)]


def test_little_of_the_launchers_environment_gets_through() -> None:
    environ = {
        "PATH": "/usr/bin",
        "HOME": "/home/al",
        "LC_ALL": "C.UTF-8",
        "https_proxy": "http://proxy",
        "RESOLUTE_BUS__PASSWORD": "secret",
        "DET_MASTER": "http://other",
        "DATASETS": "/data",
    }
    assert image_environment(environ, python="/venv/bin/python", passed=("DATASETS",)) == {
        "PATH": "/venv/bin:/usr/bin",
        "HOME": "/home/al",
        "LC_ALL": "C.UTF-8",
        "https_proxy": "http://proxy",
        "DATASETS": "/data",
        "DET_PYTHON_EXECUTABLE": "/venv/bin/python",
        "DET_SKIP_PIP_INSTALL": "1",
    }


def test_home_of_a_linked_user_is_his() -> None:
    other = next(entry for entry in pwd.getpwall() if entry.pw_uid != os.geteuid())
    assert home_of(other.pw_uid) == {"HOME": pwd.getpwuid(other.pw_uid).pw_dir}
    # The entrypoint looks for another home when it is this one.
    assert home_of(54321) == {"HOME": "/"}
    assert home_of(None) == home_of(os.geteuid()) == {}


@pytest.mark.parametrize(
    ("passed", "has_certificate", "kept"),
    [
        ((), False, {"SSL_CERT_FILE", "REQUESTS_CA_BUNDLE", "CURL_CA_BUNDLE"}),
        ((), True, {"SSL_CERT_FILE"}),
        (("CURL_CA_BUNDLE",), True, {"SSL_CERT_FILE", "CURL_CA_BUNDLE"}),
    ],
)
def test_nothing_hides_the_certificate_of_the_master(
    passed: tuple[str, ...], has_certificate: bool, kept: set[str]
) -> None:
    environ = dict.fromkeys(("SSL_CERT_FILE", "REQUESTS_CA_BUNDLE", "CURL_CA_BUNDLE"), "/etc/bundle")
    found = image_environment(environ, python="/bin/python", passed=passed, has_certificate=has_certificate)
    assert found.keys() & environ.keys() == kept


def mounts(state_dir: str = "/var/lib/state", visible: tuple[str, ...] = ()) -> list[tuple[str, str | None, bool]]:
    spec = task(
        shared_fs_host_path="/host/fs",
        bind_mounts=(
            BindMount(host_path="/h", container_path="/c", read_only=True),
            BindMount(host_path="/r", container_path="rel"),
        ),
    )
    found = pod_mounts(
        spec,
        files=PodFiles(Path(f"{state_dir}/allocations/a/pods/0")),
        hidden=(state_dir,),
        wheels_dir="/wheels",
        visible=visible,
        placed={"/etc/ssh/ssh_config": "/x"},
        missing_work_dir=None,
    )
    return [(mount.target, mount.source, mount.read_only) for mount in found]


def test_pod_sees_its_own_places_and_what_the_order_gives_it() -> None:
    pod = "/var/lib/state/allocations/a/pods/0"
    assert mounts() == [
        ("/run/determined", f"{pod}/run", False),
        ("/run/determined/logs", f"{pod}/logs", False),
        ("/opt/determined", f"{pod}/opt", False),
        ("/dev/shm", None, False),
        ("/tmp", f"{pod}/tmp", False),
        ("/var/lib/state", None, False),
        ("/opt/determined/wheels", "/wheels", True),
        ("/etc/ssh/ssh_config", "/x", True),
        ("/determined_shared_fs", "/host/fs", False),
        ("/c", "/h", True),
        ("/run/determined/workdir/rel", "/r", False),
    ]


def test_what_is_hidden_can_be_made_visible() -> None:
    visible = ("/tmp/venv", "/usr", "/var/lib/state/env", "/tmpfiles")
    targets = [target for target, _, _ in mounts(visible=visible)]
    assert [path for path in visible if path in targets] == ["/tmp/venv", "/var/lib/state/env"]
    assert "/tmp/state" not in [target for target, _, _ in mounts(state_dir="/tmp/state")]


ASSIGNMENT = Assignment(
    order=Order(allocation="a.1", pool="p", desired="run"), pods=("x", "y"), devices=(("000",), ("001",))
)
RUNNING = PodStatus(state="RUNNING")
DONE = PodStatus(state="TERMINATED", exit_code=0)


def test_pods_of_which_nothing_is_known_have_begun() -> None:
    seen = observed(ASSIGNMENT, None, begun="PULLING", node="n", address="addr")
    assert [(pod.name, pod.state, pod.devices, pod.node) for pod in seen.pods] == [
        ("x", "PULLING", ("000",), "n"),
        ("y", "PULLING", ("001",), "n"),
    ]
    assert not seen.gone


@pytest.mark.parametrize(
    ("status", "stop", "failures", "stopped"),
    [
        (None, None, ["ABORTED", "ABORTED"], False),
        (None, Stop(deadline=0, ordered=True), ["ABORTED", "ABORTED"], True),
        (Status(pods=(RUNNING, RUNNING), stopped=False, ended=False), None, ["NODE_LOST", "NODE_LOST"], False),
        (Status(pods=(DONE, RUNNING), stopped=False, ended=False), None, ["", "NODE_LOST"], False),
        (
            Status(pods=(RUNNING, RUNNING), stopped=False, ended=False),
            Stop(deadline=0, ordered=True),
            ["NODE_LOST", "NODE_LOST"],
            True,
        ),
        (
            Status(pods=(DONE, RUNNING), stopped=False, ended=False),
            Stop(deadline=0, ordered=True),
            ["", "NODE_LOST"],
            False,
        ),
    ],
)
def test_end_without_a_supervisor(status: Status | None, stop: Stop | None, failures: list[str], stopped: bool) -> None:
    found = status_without_supervisor(ASSIGNMENT, status, stop, "Traceback")
    assert [pod.failure for pod in found.pods] == failures
    assert (found.stopped, found.ended) == (stopped, True)


@pytest.mark.parametrize(
    ("code", "words"),
    [(3, "exited with code 3"), (137, "ended by signal 9 (SIGKILL)"), (255, "exited with code 255")],
)
def test_exit_codes_in_words(code: int, words: str) -> None:
    assert describe(code) == words


@pytest.mark.parametrize(
    ("value", "expected"),
    [
        ("$(DATA)/x", "/data/x"),
        ("$(HOME)$(DATA)", "/root/data"),
        ("$(LATER) $(NOWHERE)", "$(LATER) $(NOWHERE)"),
        ("$$(DATA) a$$b", "$(DATA) a$b"),
        ("$DATA ${DATA} $(DATA $", "$DATA ${DATA} $(DATA $"),
    ],
)
def test_users_refer_to_variables_as_on_kubernetes(value: str, expected: str) -> None:
    of_user = {"DATA": "/data", "VALUE": value, "LATER": "late"}
    variables = {"HOME": "/root", "DET_HPARAMS": "$(HOME)", **of_user}
    resolved = resolve_references(variables, of_user=of_user)
    assert resolved == {**variables, "VALUE": expected}
    assert list(resolved) == list(variables)
