"""``registry_auth`` of a task as a Secret that the cluster can pull its image with.

Source: docs/reference/kubernetes.md 3.12;
https://kubernetes.io/docs/tasks/configure-pod-container/pull-image-private-registry/.
"""

from __future__ import annotations

import base64
import json
from collections.abc import Mapping
from typing import Final

from libs.errors import InvalidRequest

KEY: Final = ".dockerconfigjson"
TYPE: Final = "kubernetes.io/dockerconfigjson"
_KEPT: Final = ("username", "password", "email", "identitytoken", "registrytoken")
_DOCKER_HUB: Final = "https://index.docker.io/v1/"


def docker_config(auth: Mapping[str, str], image: str) -> str:
    """The value of the Secret, in base64. Raises InvalidRequest when there are no credentials in ``auth``."""
    entry = {key: auth[key] for key in _KEPT if key in auth}
    if auth.get("auth"):
        entry["auth"] = auth["auth"]
    elif "username" in auth and "password" in auth:
        entry["auth"] = base64.b64encode(f"{auth['username']}:{auth['password']}".encode()).decode()
    if not entry.keys() - {"email"}:
        raise InvalidRequest("environment.registry_auth has neither a user name and password nor a token")
    server = auth.get("serveraddress") or registry_of(image)
    return base64.b64encode(json.dumps({"auths": {server: entry}}).encode()).decode()


def registry_of(image: str) -> str:
    """The registry of an image: what stands before the first slash, if it can be a host, else Docker Hub."""
    host, slash, _ = image.partition("/")
    is_host = bool(slash) and ("." in host or ":" in host or host == "localhost")
    return host if is_host and host not in ("docker.io", "index.docker.io") else _DOCKER_HUB
