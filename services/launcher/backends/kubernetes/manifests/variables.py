"""Environment of the main container: what may be read in the pod, and what only in the Secret.

Kubernetes replaces ``$(NAME)`` in values and turns ``$$`` into ``$``. Users may refer to variables that way; in what
is not theirs to write, every ``$`` stands for itself. Values that come out of a Secret are never looked at.
Source: docs/reference/kubernetes.md 3.6;
https://kubernetes.io/docs/tasks/inject-data-application/define-interdependent-environment-variables/.
"""

from __future__ import annotations

import re
from typing import Any, Final

from msgspec import Struct

from libs.errors import InvalidRequest
from libs.events.orders import TaskSpec
from services.launcher.backends.kubernetes.manifests.files.archives import encoded_text
from services.launcher.backends.kubernetes.manifests.traits import PoolTraits
from services.launcher.container.environment import (
    PROTECTED,
    PodIdentity,
    oversized_variables,
    task_environment,
    user_variables,
)

Json = dict[str, Any]

SESSION_TOKEN: Final = "DET_SESSION_TOKEN"  # noqa: S105  the name of a variable

_SECRET: Final = frozenset({SESSION_TOKEN, "DET_USER_TOKEN", "DET_NOTEBOOK_TOKEN", "DET_EXPERIMENT_CONFIG"})
"""Tokens, and the configuration, which holds the credentials of the checkpoint storage."""
_NAME: Final = re.compile(r"[-._a-zA-Z][-._a-zA-Z0-9]*")
_FROM_THE_POD: Final = (
    ("DET_AGENT_ID", "spec.nodeName"),
    ("DET_KUBERNETES_POD_IP", "status.podIP"),
    ("DET_CONTAINER_ID", "metadata.name"),
)


class Variables(Struct, frozen=True, kw_only=True):
    entries: list[Json]
    """``env`` of the container."""
    secrets: dict[str, str]
    """Name -> value in base64, for the Secret."""


def variables(
    spec: TaskSpec, *, allocation: str, traits: PoolTraits, secret: str, user_entries: list[Json]
) -> Variables:
    """The environment of every pod of an allocation.

    user_entries  ``env`` of the user's pod spec, which overrides everything but ids and tokens
    Raises InvalidRequest for variables that Kubernetes or Linux would refuse.
    """
    values = task_environment(
        spec,
        allocation=allocation,
        pool=traits.pool,
        slot_type=traits.slot_type,
        settings=traits.tasks,
        pod=PodIdentity(),
        image=_image(traits),
    )
    if traits.has_gateway:
        values["DET_PROXY_THROUGH_GATEWAY"] = "true"  # the address of the pod helps nobody: do not report it
    _check(values)
    of_user = dict(user_variables(spec.environment.variables))
    passed = {name for name, _ in spec.extra_environment}
    entries: dict[str, Json] = {}
    secrets: dict[str, str] = {}
    for name, value in values.items():
        is_users = of_user.get(name) == value
        if name in _SECRET or name in passed or (is_users and "$" not in value):
            secrets[name] = encoded_text(value)
            entries[name] = {"name": name, "valueFrom": {"secretKeyRef": {"name": secret, "key": name}}}
        else:
            entries[name] = {"name": name, "value": value if is_users else literal(value)}
    for name, path in _FROM_THE_POD:
        entries[name] = field_ref(name, path)
    for entry in user_entries:
        name = str(entry.get("name"))
        if name not in PROTECTED:
            entries.pop(name, None)
            secrets.pop(name, None)
            entries[name] = entry
    return Variables(entries=list(entries.values()), secrets=secrets)


def field_ref(name: str, path: str) -> Json:
    """A variable that the cluster fills in from the pod."""
    return {"name": name, "valueFrom": {"fieldRef": {"fieldPath": path}}}


def literal(text: str) -> str:
    """A text that Kubernetes leaves as it is, in variables as in commands."""
    return text.replace("$", "$$")


def _image(traits: PoolTraits) -> dict[str, str]:
    """Defaults that take the place of what the image sets."""
    found = {}
    if traits.wheels is None:
        found["DET_SKIP_PIP_INSTALL"] = "1"
    if traits.ships == "nothing":
        found["DET_SHIPPER_EMIT_STDOUT_LOGS"] = "1"  # so that kubectl at least has them
    return found


def _check(values: dict[str, str]) -> None:
    if too_long := oversized_variables(values):
        raise InvalidRequest(f"environment variable {too_long[0]} is longer than the 128 KiB that Linux allows")
    for name, value in values.items():
        if not _NAME.fullmatch(name):
            raise InvalidRequest(f"environment variable {name!r} has a name that Kubernetes does not allow")
        if "\0" in value:
            raise InvalidRequest(f"environment variable {name} contains a NUL character")
