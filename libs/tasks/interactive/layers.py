"""One layer of configuration, a template or what a user submits, brought into normal form; generic tasks have one only.

What a user submits may have no unknown fields where typing mistakes matter; templates may, for they serve experiments
too. Null is the same as nothing, except for fields that it clears: those keep it.

Source: docs/reference/tasks-and-cli.md 2.3 to 2.5.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping
from typing import Any, Final

import msgspec

from libs import podspec
from libs.config.parts.environment import (
    REGISTRY_FIELDS,
    SLOT_TYPES,
    environment_variables,
    image,
    misshapen_pod,
    proxy_port_fields,
)
from libs.config.parts.mounts import bind_mount_fields, device_shape
from libs.errors import InvalidRequest
from libs.shapes.fallback_pools import fallback_pools
from libs.shapes.problems import Problem, listing
from libs.shapes.shape import (
    MOST_COUNTED,
    Fields,
    Object,
    Read,
    Shape,
    anything,
    by_type,
    converted,
    expected,
    flag,
    list_of,
    map_of,
    number,
    record,
    text,
    whole,
)
from libs.shapes.sizes import memory_size
from libs.shapes.time_limits import time_limit
from libs.shapes.topology import topology
from libs.tasks.interactive.durations import duration

CLEARED_BY_NULL: Final = frozenset(
    {
        "add_capabilities",
        "drop_capabilities",
        "entrypoint",
        "idle_timeout",
        "max_slots",
        "pod_spec",
        "priority",
        "proxy_ports",
        "registry_auth",
        "shm_size",
        "tensorboard_args",
        "time_limit",
        "topology",
        "work_dir",
    }
)
"""Fields for which null is a value."""

_ROOT: Final = "config"
_UNKNOWN: Final = "json: unknown field"
_LONGEST_QUOTED: Final = 10_000
_IN_EXAMPLES: Final = {podspec.UnknownField(".spec.affinity", "nodeSelectorTerms")}
"""Keys that are no fields of a pod, but stand in examples of Determined's documentation, which users have copied.
Kubernetes passes over them, as in pods of experiments. Source: docs/reference/kubernetes.md 5.2."""
_PER_SLOT_TYPE: Final = (*SLOT_TYPES, "gpu")
_MAX_PORT: Final = 65535


def read_submitted(config: Mapping[str, Any]) -> Object:
    """What a user submits, in normal form. Raises InvalidRequest, also for unknown fields."""
    return _read(config, _STRICT, f"unable to decode the merged config: {_quoted(config)}: ")


def read_template(name: str, config: Mapping[str, Any]) -> Object:
    """A template in normal form; its unknown fields are passed over. Raises InvalidRequest."""
    return _read(config, _LENIENT, f"template '{name}': ")


def read_generic(config: Mapping[str, Any]) -> Object:
    """What a user submits for a generic task, in normal form. Raises InvalidRequest, also for unknown fields."""
    return _read(config, _GENERIC, "yaml unmarshaling generic task config: ")


def _read(config: Mapping[str, Any], shape: Shape, context: str) -> Object:
    read = shape(dict(config), _ROOT)
    if read.problems:
        unknown = [problem for problem in read.problems if problem.message.startswith(_UNKNOWN)]
        says = _says(unknown[0]) if unknown else listing(read.problems)
        raise InvalidRequest(f"{context}{says}")
    layer: Object = read.value
    return layer


def _says(unknown: Problem) -> str:
    where = unknown.path.removeprefix(_ROOT).removeprefix(".")
    return f"{unknown.message} in {where}" if where else unknown.message


def _quoted(config: Mapping[str, Any]) -> str:
    quoted = msgspec.json.encode(config).decode()
    return quoted if len(quoted) <= _LONGEST_QUOTED else f"{quoted[:_LONGEST_QUOTED]}..."


def _section(fields: Fields, *, strict: bool, required: Collection[str] = (), defaults: Object | None = None) -> Shape:
    """An object whose unknown keys are mistakes, or nothing at all."""
    nullable = CLEARED_BY_NULL & fields.keys()
    shapes = {key: _or_null(shape) if key in nullable else shape for key, shape in fields.items()}
    known = record(shapes, required=required, defaults=defaults, nullable=nullable)

    def read(value: Any, path: str) -> Read:
        if not isinstance(value, dict):
            return expected("object", value, path)
        unknown = [Problem(path, f'{_UNKNOWN} "{key}"') for key in value if key not in fields] if strict else []
        found = known({key: item for key, item in value.items() if key in fields}, path)
        return Read(found.value, (*unknown, *found.problems))

    return read


def _or_null(shape: Shape) -> Shape:
    return lambda value, path: Read(None) if value is None else shape(value, path)


def _lenient(shape: Shape, keys: Collection[str]) -> Shape:
    """``shape``, blind for other keys."""
    return lambda value, path: shape(
        {key: item for key, item in value.items() if key in keys} if isinstance(value, dict) else value, path
    )


def _pod(*, strict: bool) -> Shape:
    """A pod as it was written: nulls in it mean something to the pod below, and so do directives of templates."""

    def read(value: Any, path: str) -> Read:
        if not isinstance(value, dict):
            return expected("object", value, path)
        unknown = podspec.unknown_fields(value) if strict else []
        mistakes = [
            Problem(f"{path}{field.path}", f'{_UNKNOWN} "{field.name}"')
            for field in unknown
            if field not in _IN_EXAMPLES
        ]
        return Read(value, (*mistakes, *misshapen_pod(value, path)))

    return read


def _one_server(auth: Object) -> Object:
    server = auth.get("serveraddress") or auth.get("server")
    others = {key: value for key, value in auth.items() if key not in ("server", "serveraddress")}
    return {**others, "serveraddress": server} if server else others


_bind_mount: Final = _section(
    bind_mount_fields,
    strict=False,
    required=("host_path", "container_path"),
    defaults={"read_only": False, "propagation": "rprivate"},
)


def _environment(*, strict: bool) -> Shape:
    proxy_port = _section(
        {**proxy_port_fields, "proxy_port": whole(1, _MAX_PORT)},
        strict=strict,
        required=("proxy_port",),
        defaults={"proxy_tcp": False, "unauthenticated": False, "default_service_id": False},
    )
    registry = _section(dict.fromkeys((*REGISTRY_FIELDS, "server"), text), strict=strict)
    return _section(
        {
            "image": _lenient(image, _PER_SLOT_TYPE),
            "environment_variables": _lenient(environment_variables, _PER_SLOT_TYPE),
            "proxy_ports": list_of(proxy_port),
            "ports": anything,
            "registry_auth": converted(registry, _one_server),
            "force_pull_image": flag,
            "pod_spec": _pod(strict=strict),
            "add_capabilities": list_of(text),
            "drop_capabilities": list_of(text),
        },
        strict=strict,
    )


def _resources(*, strict: bool) -> Shape:
    """Limits of the numbers are those of the columns; which make sense is for ``validation`` to say."""
    count = whole(-MOST_COUNTED, MOST_COUNTED)
    return _section(
        {
            "slots": count,
            "max_slots": count,
            "weight": number(),
            "priority": count,
            "resource_pool": text,
            "shm_size": memory_size,
            "devices": list_of(device_shape(lenient=True)),
            "native_parallel": flag,
            "is_single_node": flag,
            "time_limit": time_limit,
            "fallback_pools": fallback_pools,
            "topology": topology,
            "preemptible": flag,
        },
        strict=strict,
    )


def _of_all_tasks(*, strict: bool) -> Fields:
    return {
        "bind_mounts": list_of(_bind_mount),
        "environment": _environment(strict=strict),
        "resources": _resources(strict=strict),
        "work_dir": text,
        "debug": flag,
        "slurm": map_of(anything),
        "pbs": map_of(anything),
    }


def _config(*, strict: bool) -> Shape:
    return _section(
        {
            **_of_all_tasks(strict=strict),
            "description": text,
            "entrypoint": list_of(text),
            "tensorboard_args": list_of(text),
            "idle_timeout": duration,
            "notebook_idle_type": text,
        },
        strict=strict,
    )


def _one_word(entrypoint: str) -> list[str]:
    return [entrypoint]


_STRICT: Final = _config(strict=True)
_LENIENT: Final = _config(strict=False)
_GENERIC: Final = _section(
    {
        **_of_all_tasks(strict=True),
        # One word is run by a shell, in a list or not.
        "entrypoint": by_type(array=list_of(text), string=converted(text, _one_word)),
        "preemption_timeout": whole(0, MOST_COUNTED),
    },
    strict=True,
)
