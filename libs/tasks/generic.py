"""Configuration of a generic task, and the task that is made of it.

Source: docs/reference/tasks-and-cli.md 6.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Final, NamedTuple

from libs.cluster.config import TaskContainerDefaults
from libs.config.checks import FailedCheck, refuse_failed
from libs.config.secrets import masked_secrets
from libs.config.yaml_text import parse_text
from libs.errors import InvalidRequest
from libs.events.orders import UsersPod
from libs.shapes.problems import listing
from libs.shapes.shape import Object, json_type
from libs.tasks.environments import bind_mounts_of, environment_of, proxy_ports_of
from libs.tasks.interactive.assembly import Layers, PoolRequest, assemble, requested
from libs.tasks.interactive.containers import check_size
from libs.tasks.interactive.layers import read_generic
from libs.tasks.interactive.validation import check_config
from libs.tasks.stored import StoredTask

TASK_TYPE: Final = "GENERIC"
NAME: Final = "generic-task"
"""Of its job, for all of them."""


class GenericRequest(NamedTuple):
    """What a task asks of the cluster, before it is known which pool will run it."""

    layers: Layers
    pool: PoolRequest
    single_pod: bool


def submitted_config(text: str, forked: Mapping[str, Any] | None) -> Object:
    """The configuration as it is stored: what is submitted, over that of the task that is forked.

    text    YAML, or nothing at all
    forked  of which a fork changes whole fields of the outermost level
    Raises InvalidRequest when there is neither, or the text is no configuration.
    """
    given = parse_text(text)
    if given is None and forked is None:
        raise InvalidRequest("No config file nor forked task provided")
    if given is not None and not isinstance(given, dict):
        raise InvalidRequest(f"yaml unmarshaling generic task config: expected object, but got {json_type(given)}")
    return {**(forked or {}), **(given or {})}


def read_request(config: Mapping[str, Any]) -> GenericRequest:
    """What a configuration asks for.

    Raises InvalidRequest for unknown fields, values of a wrong type, and secrets that only somebody else knows: whoever
    forks the task of another user sees that there are some.
    """
    layers = Layers(template={}, submitted=read_generic(config))
    if masked := masked_secrets(dict(config)):
        raise InvalidRequest(f"invalid generic task config: {listing(masked)}")
    resources = layers.submitted.get("resources") or {}
    return GenericRequest(layers, requested(layers), resources.get("is_single_node") is not False)


def complete(
    request: GenericRequest,
    *,
    defaults: TaskContainerDefaults,
    pool: str,
    default_priority: int,
    has_files: bool,
) -> Object:
    """The complete configuration.

    pool       that was found for the request
    has_files  whether the task begins with a context
    Raises InvalidRequest for one that makes no sense.
    """
    config = assemble(
        request.layers,
        defaults=defaults,
        granted=PoolRequest(request.pool.slots, pool),
        default_priority=default_priority,
        has_files=has_files,
    )
    if not config["entrypoint"]:
        refuse_failed(TASK_TYPE, [FailedCheck("root", "entrypoint is required", "found none")])
    check_config(TASK_TYPE, {**config, "resources": {**config["resources"], "is_single_node": None}})
    timeout = config.get("preemption_timeout")
    return {**config, "preemption_timeout": defaults.preemption_timeout if timeout is None else timeout}


def stored_generic_task(
    task_id: str, config: Mapping[str, Any], *, slot_type: str, users_pod: UsersPod | None = None
) -> StoredTask:
    """The task as it is stored. Raises InvalidRequest when it is too large to be launched.

    config     complete
    slot_type  cpu, cuda or rocm: what it runs on
    """
    task = StoredTask(
        description=NAME,
        environment=environment_of(config["environment"], slot_type),
        users_pod=users_pod,
        argv=tuple(config["entrypoint"]),
        work_dir=config["work_dir"],
        bind_mounts=bind_mounts_of(config),
        proxy_ports=proxy_ports_of(config["environment"], task_id),
        shm_size_bytes=config["resources"].get("shm_size"),
    )
    check_size(task)
    return task
