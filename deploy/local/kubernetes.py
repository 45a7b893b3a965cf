"""Options for running tasks as pods of a cluster while the services run here, and where pods find these."""

from __future__ import annotations

import json
import socket
import subprocess
from argparse import ArgumentParser, Namespace
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final
from urllib.parse import urlsplit

import yaml

from deploy.local.failure import CannotStart

NAMESPACE: Final = "default"
_NOWHERE: Final = "192.0.2.1"
"""An address of the documentation range (RFC 5737): asking the way there sends nothing."""


@dataclass(frozen=True)
class KubernetesOptions:
    """What ``resolute up --kubeconfig`` was told, or found."""

    kubeconfig: str
    address: str
    """Where pods reach this machine."""
    namespace: str = NAMESPACE
    image: str = ""
    """Of tasks that name none; empty takes the client's own default."""
    slot_type: str = "cpu"
    max_slots_per_pod: int = 1
    shipper: str = "fluent-bit"

    def cluster_config(self, checkpoints: str) -> dict[str, Any]:
        """The cluster configuration of a system whose only pool is this namespace."""
        defaults: dict[str, Any] = {}
        if self.image:
            defaults["image"] = {"cpu": self.image, "cuda": self.image, "rocm": self.image}
        manager: dict[str, Any] = {
            "type": "kubernetes",
            "default_namespace": self.namespace,
            "slot_type": self.slot_type,
            "max_slots_per_pod": self.max_slots_per_pod,
        }
        if self.slot_type == "cpu":
            manager["slot_resource_requests"] = {"cpu": 0.5}
        return {
            "cluster_name": "local",
            "resource_manager": manager,
            "resource_pools": [{"pool_name": "default", "kubernetes_namespace": self.namespace}],
            "checkpoint_storage": {"type": "shared_fs", "host_path": checkpoints},
            "task_container_defaults": defaults,
        }

    def launcher_settings(self, cluster_id: str) -> dict[str, Any]:
        """The section ``kubernetes`` of the launcher's settings."""
        return {
            "kubeconfig": self.kubeconfig,
            "cluster_id": cluster_id,
            "shipper": {"kind": self.shipper},
        }


def add_arguments(up: ArgumentParser) -> None:
    group = up.add_argument_group("tasks as pods")
    group.add_argument("--kubeconfig", help="run tasks in this cluster instead of on this machine")
    group.add_argument("--namespace", help=f"where they run (default: {NAMESPACE})")
    group.add_argument("--address", help="where pods reach this machine (default: found by itself)")
    group.add_argument("--image", help="image of tasks that name none")
    group.add_argument("--slot-type", choices=("cpu", "cuda", "rocm"), help="what a slot is (default: cpu)")
    group.add_argument("--max-slots-per-pod", type=int, help="more make a trial of several pods (default: 1)")
    group.add_argument("--shipper", choices=("fluent-bit", "builtin"), help="how log lines leave a pod")


def choose_kubernetes(kept: KubernetesOptions | None, arguments: Namespace) -> KubernetesOptions | None:
    """What was chosen before, with what the command line changes; None when tasks run on this machine."""
    kubeconfig = getattr(arguments, "kubeconfig", None) or (kept.kubeconfig if kept else None)
    if kubeconfig is None:
        return None
    path = Path(kubeconfig).absolute()
    before: dict[str, Any] = dict(vars(kept)) if kept else {}
    asked = {
        name: value
        for name in ("namespace", "address", "image", "slot_type", "max_slots_per_pod", "shipper")
        if (value := getattr(arguments, name, None)) is not None
    }
    values = {**before, **asked, "kubeconfig": str(path)}
    values.setdefault("address", find_address(path))
    return KubernetesOptions(**values)


def find_address(kubeconfig: Path) -> str:
    """An address of this machine that pods of the cluster can reach. Raises CannotStart."""
    server = _server(kubeconfig)
    try:
        ours = _address_towards(server)
    except OSError as error:
        raise CannotStart(f"--kubeconfig {kubeconfig}: its server {server} has no address: {error}") from error
    if not ours.startswith("127."):
        return ours
    # The cluster is on this machine, and loopback means something else inside a pod.
    candidates = [_bridge_address(), _address_towards(_NOWHERE)]
    found = next((address for address in candidates if address and not address.startswith("127.")), None)
    if found is None:
        raise CannotStart("pods need an address of this machine that they can reach: give one with --address")
    return found


def is_on_this_machine(kubeconfig: Path) -> bool:
    """Whether the API server has an address of this machine. Raises CannotStart for what is no kubeconfig."""
    server = _server(kubeconfig)
    try:
        theirs = {str(found[4][0]) for found in socket.getaddrinfo(server, 9, type=socket.SOCK_DGRAM)}
        return _address_towards(server) in theirs
    except OSError as error:
        raise CannotStart(f"--kubeconfig {kubeconfig}: its server {server} has no address: {error}") from error


def _server(kubeconfig: Path) -> str:
    """Host of the API server that the current context names. Raises CannotStart."""
    try:
        config = yaml.safe_load(kubeconfig.read_text())
        contexts = {entry["name"]: entry["context"] for entry in config["contexts"]}
        clusters = {entry["name"]: entry["cluster"] for entry in config["clusters"]}
        url = clusters[contexts[config["current-context"]]["cluster"]]["server"]
        host: str | None = urlsplit(str(url)).hostname
    except OSError as error:
        raise CannotStart(f"--kubeconfig {kubeconfig}: {error.strerror}") from error
    except (yaml.YAMLError, KeyError, TypeError, ValueError) as error:
        raise CannotStart(f"--kubeconfig {kubeconfig} is not a kubeconfig with a current context: {error}") from error
    if not host:
        raise CannotStart(f"--kubeconfig {kubeconfig}: {url!r} is not the URL of a server")
    return host


def _address_towards(host: str) -> str:
    """The address this machine would use to talk to ``host``; nothing is sent. Raises OSError."""
    family, kind, protocol, _, where = socket.getaddrinfo(host, 9, type=socket.SOCK_DGRAM)[0]
    with socket.socket(family, kind, protocol) as probe:
        try:
            probe.connect(where)
        except OSError:
            return "127.0.0.1"  # no way there, so none from there either
        return str(probe.getsockname()[0])


def _bridge_address() -> str | None:
    """Address of Docker's bridge, which containers on this machine can reach."""
    try:
        shown = subprocess.run(
            ["ip", "-j", "-4", "address", "show", "docker0"], capture_output=True, text=True, check=False, timeout=5
        )
        return str(json.loads(shown.stdout)[0]["addr_info"][0]["local"])
    except (OSError, ValueError, LookupError):
        return None
