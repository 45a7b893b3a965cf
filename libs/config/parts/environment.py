"""The software a task runs in: image, environment variables, ports, and the pod around it.

Source: docs/reference/experiments.md 1.3 (environment); docs/reference/kubernetes.md 5 (pod_spec).
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Final

from libs import podspec
from libs.shapes.problems import Problem
from libs.shapes.shape import (
    Fields,
    Object,
    Read,
    Shape,
    by_type,
    converted,
    expected,
    flag,
    list_of,
    map_of,
    record,
    text,
    whole,
)

SLOT_TYPES: Final = ("cpu", "cuda", "rocm")

_LEGACY_SLOT_TYPE: Final = "gpu"
REGISTRY_FIELDS: Final = (
    "username",
    "password",
    "auth",
    "email",
    "serveraddress",
    "identitytoken",
    "registrytoken",
)


def per_slot_type(item: Shape, **whole_value: Shape) -> Shape:
    """A value for each type of slot, or one value for all of them; ``gpu`` is an old name of ``cuda``.

    item         the shape for one type of slot
    whole_value  JSON type and shape of a value that holds for every type of slot
    """
    each = record(dict.fromkeys((*SLOT_TYPES, _LEGACY_SLOT_TYPE), item))
    for_all = {kind: converted(shape, _for_all_slot_types) for kind, shape in whole_value.items()}
    return by_type(**for_all, object=converted(each, _without_legacy_name))


def _for_all_slot_types(value: Any) -> Object:
    copy: Callable[[Any], Any] = list if isinstance(value, list) else lambda same: same
    return {slot_type: copy(value) for slot_type in SLOT_TYPES}


def _without_legacy_name(values: Object) -> Object:
    legacy = {"cuda": values[_LEGACY_SLOT_TYPE]} if _LEGACY_SLOT_TYPE in values else {}
    return {**legacy, **{key: value for key, value in values.items() if key != _LEGACY_SLOT_TYPE}}


image: Final = per_slot_type(text, string=text)
environment_variables: Final = per_slot_type(list_of(text), array=list_of(text))
proxy_port_fields: Final[Fields] = {
    "proxy_port": whole(),
    "proxy_tcp": flag,
    "unauthenticated": flag,
    "default_service_id": flag,
}
proxy_port: Final = record(
    proxy_port_fields,
    required=("proxy_port",),
    defaults={"proxy_tcp": False, "unauthenticated": False, "default_service_id": False},
)
registry_auth: Final = record(dict.fromkeys(REGISTRY_FIELDS, text))


def pod_spec(value: Any, path: str) -> Read:
    """A Kubernetes Pod as its author wrote it, nulls and patch directives included: merging gives them meaning.

    Directives that make no sense are left out, for no experiment fails on one (docs/reference/kubernetes.md 6.3).
    """
    if not isinstance(value, dict):
        return expected("object", value, path)
    refused = tuple(Problem(f"{path}{refusal.path}", refusal.message) for refusal in podspec.refusals(value))
    return Read(podspec.without_senseless_directives(value), (*misshapen_pod(value, path), *refused))


def misshapen_pod(pod: Object, path: str) -> list[Problem]:
    """The parts of a pod that others look into have to be what they are taken for."""
    found = [
        *_not_of_kind(pod, "metadata", dict, "object", path),
        *_not_of_kind(pod, "spec", dict, "object", path),
    ]
    spec = pod.get("spec")
    for field in ("containers", "initContainers", "volumes"):
        holder = spec if isinstance(spec, dict) else {}
        found += _not_of_kind(holder, field, list, "array", f"{path}.spec")
        items = holder.get(field)
        for index, item in enumerate(items if isinstance(items, list) else []):
            if not isinstance(item, dict):
                found += expected("object", item, f"{path}.spec.{field}[{index}]").problems
    return found


def _not_of_kind(holder: Object, field: str, kind: type, name: str, path: str) -> tuple[Problem, ...]:
    value = holder.get(field)
    return () if value is None or isinstance(value, kind) else expected(name, value, f"{path}.{field}").problems


environment: Final = record(
    {
        "image": image,
        "environment_variables": environment_variables,
        "proxy_ports": list_of(proxy_port),
        "ports": map_of(whole()),
        "force_pull_image": flag,
        "registry_auth": registry_auth,
        "add_capabilities": list_of(text),
        "drop_capabilities": list_of(text),
        "pod_spec": pod_spec,
    }
)
