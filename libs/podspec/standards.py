"""What a user's pod spec asks of the node, judged by the Pod Security Standards. Pure.

``baseline`` keeps a pod from what is known to lead out of its container; ``restricted`` also from what it does not
need. Only what is said is judged: what a pod leaves out is for its administrator to set. Beside the standards stand the
fields that take a pod out of the hands of the scheduler, of the launcher or of other users' priorities.
Source: https://kubernetes.io/docs/concepts/security/pod-security-standards/.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping
from fnmatch import fnmatchcase
from typing import Any, Final, Literal, NamedTuple

from libs.podspec.traversal import Json, containers_in, object_in, objects_in

PodSpecMode = Literal["free", "warn", "baseline", "restricted"]
Level = Literal["baseline", "restricted"]

ADD_CAPABILITIES: Final = "environment.add_capabilities"
LONGEST_GRACE_S: Final = 3600
"""Longest ``terminationGracePeriodSeconds`` of a user: so long may a pod hold its slots against an order to leave."""
CAPABILITIES: Final = frozenset(
    {
        "AUDIT_WRITE",
        "CHOWN",
        "DAC_OVERRIDE",
        "FOWNER",
        "FSETID",
        "KILL",
        "MKNOD",
        "NET_BIND_SERVICE",
        "SETFCAP",
        "SETGID",
        "SETPCAP",
        "SETUID",
        "SYS_CHROOT",
    }
)
"""Those that ``baseline`` lets be added."""
_SYSCTLS: Final = frozenset(
    {
        "kernel.shm_rmid_forced",
        "net.ipv4.ip_local_port_range",
        "net.ipv4.ip_local_reserved_ports",
        "net.ipv4.ip_unprivileged_port_start",
        "net.ipv4.ping_group_range",
        "net.ipv4.tcp_fin_timeout",
        "net.ipv4.tcp_keepalive_intvl",
        "net.ipv4.tcp_keepalive_probes",
        "net.ipv4.tcp_keepalive_time",
        "net.ipv4.tcp_rmem",
        "net.ipv4.tcp_syncookies",
        "net.ipv4.tcp_wmem",
    }
)
_SELINUX_TYPES: Final = frozenset({"", "container_t", "container_init_t", "container_kvm_t", "container_engine_t"})
_RESTRICTED_VOLUMES: Final = frozenset(
    {
        "configMap",
        "csi",
        "downwardAPI",
        "emptyDir",
        "ephemeral",
        "hostPath",
        "image",
        "name",
        "persistentVolumeClaim",
        "projected",
        "secret",
    }
)
"""Kinds of volumes, and their name; of directories of the node, ``security.host_paths`` decides at every level."""
_NAMESPACES_OF_THE_NODE: Final = ("hostNetwork", "hostPID", "hostIPC")
_SCHEDULERS: Final = frozenset({"", "default-scheduler", "coscheduler"})
_OUR_CLASSES: Final = "determined-"


class NodeRules(NamedTuple):
    """What an administrator lets users ask of nodes."""

    level: Level
    fields: tuple[str, ...] = ()
    """Patterns of fields that are allowed nevertheless, such as ``spec.runtimeClassName``."""
    host_paths: tuple[str, ...] = ()
    """Directories of nodes that may be mounted, with what is below them."""


class _Finding(NamedTuple):
    path: str
    message: str

    @property
    def field(self) -> str:
        """The path as administrators write it, without places in lists: ``spec.containers.ports``."""
        return ".".join(part.partition("[")[0] for part in self.path.split("."))


def asked_of_nodes(pod: Json, rules: NodeRules) -> list[str]:
    """A sentence for everything in a user's ``pod`` that breaks the rules: the field, why, and the setting.

    pod  without directives
    """
    spec = object_in(pod, "spec")
    found = [
        *_pod(spec, rules.level),
        *_beside_the_standards(pod, spec),
        *(each for path, container in containers_in(spec) for each in _container(path, container, rules.level)),
    ]
    refused = [each for each in found if not is_allowed_field(each.field, rules.fields)]
    return [
        *_host_paths(spec, rules),
        *(f"{each.path} {each.message}; security.pod_fields can allow {each.field}" for each in refused),
    ]


def host_path_refusal(directory: str, rules: NodeRules) -> str | None:
    """Why a directory of the node may not be mounted, as a clause; None for one that may be."""
    if is_below(directory, rules.host_paths):
        return None
    return f"mounts {directory} of the node; security.host_paths can allow it"


def capability_refusals(capabilities: Iterable[str], rules: NodeRules) -> list[str]:
    """A clause for each capability that may not be added."""
    if is_allowed_field(ADD_CAPABILITIES, rules.fields):
        return []
    return [
        f"adds the capability {each}; security.pod_fields can allow {ADD_CAPABILITIES}"
        for each in capabilities
        if each.removeprefix("CAP_") not in _permitted(rules.level)
    ]


def is_below(path: str, directories: Iterable[str]) -> bool:
    """Whether an absolute path is one of the directories or below one, as it is written: with ``..`` it never is."""
    parts = _parts(path)
    return ".." not in parts and any(parts[: len(given)] == given for given in map(_parts, directories))


def _parts(path: str) -> list[str]:
    return [part for part in path.split("/") if part not in ("", ".")]


def is_allowed_field(field: str, patterns: tuple[str, ...]) -> bool:
    return any(fnmatchcase(field, pattern) for pattern in patterns)


def _permitted(level: Level) -> frozenset[str]:
    return CAPABILITIES if level == "baseline" else frozenset({"NET_BIND_SERVICE"})


def _host_paths(spec: Json, rules: NodeRules) -> Iterator[str]:
    for index, volume in objects_in(spec, "volumes"):
        if "hostPath" in volume:
            said = host_path_refusal(str(object_in(volume, "hostPath").get("path", "")), rules)
            if said is not None:
                yield f"spec.volumes[{index}].hostPath {said}"


def _pod(spec: Json, level: Level) -> Iterator[_Finding]:
    for field in _NAMESPACES_OF_THE_NODE:
        if spec.get(field):
            yield _Finding(f"spec.{field}", "shares a namespace of the node")
    for index, volume in objects_in(spec, "volumes"):
        path = f"spec.volumes[{index}]"
        if level == "restricted" and (kinds := sorted({*volume} - _RESTRICTED_VOLUMES)):
            yield _Finding(f"{path}.{kinds[0]}", "is no kind of volume that restricted pods have")
    security = object_in(spec, "securityContext")
    for index, sysctl in objects_in(security, "sysctls"):
        if str(sysctl.get("name")) not in _SYSCTLS:
            yield _Finding(f"spec.securityContext.sysctls[{index}]", f"sets {sysctl.get('name')} of the kernel")
    yield from _context("spec.securityContext", security, level)


def _container(path: str, container: Json, level: Level) -> Iterator[_Finding]:
    security = object_in(container, "securityContext")
    place = f"{path}.securityContext"
    if security.get("privileged"):
        yield _Finding(f"{place}.privileged", "has all rights on the node")
    if str(security.get("procMount") or "Default") != "Default":
        yield _Finding(f"{place}.procMount", "unmasks files of the kernel")
    added = object_in(security, "capabilities").get("add")
    for capability in added if isinstance(added, list) else ():
        if str(capability) not in _permitted(level):
            yield _Finding(f"{place}.capabilities.add", f"adds the capability {capability}")
    if level == "restricted" and security.get("allowPrivilegeEscalation"):
        yield _Finding(f"{place}.allowPrivilegeEscalation", "lets processes gain rights")
    for index, port in objects_in(container, "ports"):
        if port.get("hostPort"):
            yield _Finding(f"{path}.ports[{index}].hostPort", "takes a port of the node")
    if object_in(container, "resources").get("claims"):
        yield _Finding(f"{path}.resources.claims", "claims devices that the plan does not know of")
    yield from _context(place, security, level)


def _context(path: str, security: Json, level: Level) -> Iterator[_Finding]:
    """What pods and containers say alike."""
    if object_in(security, "windowsOptions").get("hostProcess"):
        yield _Finding(f"{path}.windowsOptions.hostProcess", "has all rights on the node")
    for field in ("appArmorProfile", "seccompProfile"):
        if object_in(security, field).get("type") == "Unconfined":
            yield _Finding(f"{path}.{field}", "takes the confinement away")
    options = object_in(security, "seLinuxOptions")
    if options.get("user") or options.get("role") or str(options.get("type") or "") not in _SELINUX_TYPES:
        yield _Finding(f"{path}.seLinuxOptions", "takes the confinement away")
    if level == "restricted":
        if security.get("runAsNonRoot") is False:
            yield _Finding(f"{path}.runAsNonRoot", "lets the container run as root")
        if security.get("runAsUser") == 0:
            yield _Finding(f"{path}.runAsUser", "runs as root")


_BESIDE: Final[Mapping[str, tuple[Callable[[Any], bool], str]]] = {
    "nodeName": (bool, "passes the scheduler by"),
    "schedulerName": (lambda value: str(value or "") not in _SCHEDULERS, "is no scheduler of this installation"),
    "priorityClassName": (
        lambda value: bool(value) and not str(value).startswith(_OUR_CLASSES),
        "may displace what is more important",
    ),
    "runtimeClassName": (bool, "chooses the runtime of the node"),
    "resourceClaims": (bool, "claims devices that the plan does not know of"),
    "terminationGracePeriodSeconds": (
        lambda value: isinstance(value, int | float) and value > LONGEST_GRACE_S,
        f"holds slots for more than {LONGEST_GRACE_S} s against an order to leave",
    ),
}


def _beside_the_standards(pod: Json, spec: Json) -> Iterator[_Finding]:
    for field, (is_refused, message) in _BESIDE.items():
        if field in spec and is_refused(spec[field]):
            yield _Finding(f"spec.{field}", message)
    metadata = object_in(pod, "metadata")
    for field in ("finalizers", "ownerReferences", "generateName"):
        if metadata.get(field):
            yield _Finding(f"metadata.{field}", "is for the launcher to set")
