"""A pod sees its own places, and little of the machine and of the launcher's environment."""

from __future__ import annotations

from pathlib import Path

import pytest

from libs.events.orders import BindMount
from services.launcher.backends.process.preparation.pod_view import image_environment, pod_mounts, pod_name
from services.launcher.backends.process.records import PodFiles
from tests.unit.launcher.specs import task


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
