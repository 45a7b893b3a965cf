"""Connects to an API server, and finds out first whether a launcher can work in a namespace of it."""

from __future__ import annotations

import re
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from typing import Final

import structlog
from kubernetes.aio.client.configuration import Configuration
from msgspec import Struct

from libs.errors import FailedPrecondition, InvalidRequest, NotFound, PermissionDenied, Unavailable
from libs.retry import every, with_retry
from services.launcher.backends.kubernetes.client.api import KubeApi, Refused
from services.launcher.backends.kubernetes.client.credentials import read_configuration
from services.launcher.backends.kubernetes.client.objects import ListOf, Named, Namespace
from services.launcher.backends.kubernetes.client.paths import VERSION, may_be_namespace, paths_in
from services.launcher.backends.kubernetes.settings import KubernetesSettings

log = structlog.get_logger()

Version = tuple[int, int]

RIGHTS: Final = "What the launcher needs in a namespace is in deploy/helm/rights/role.yaml"

_RETRY_S: Final = 1.0
_NOT_FOUND: Final = 404
_FORBIDDEN: Final = 403


class _VersionInfo(Struct, frozen=True, rename="camel"):
    git_version: str = ""


@asynccontextmanager
async def connect(
    settings: KubernetesSettings, *, may_act: Callable[[], bool] = lambda: True
) -> AsyncIterator[KubeApi]:
    """A client for the duration of the block, which changes nothing unless it ``may_act``.

    Raises InvalidRequest for credentials that cannot be read.
    """

    async def credentials() -> Configuration:
        return await read_configuration(settings.kubeconfig, settings.context)

    api = KubeApi(
        await credentials(),
        credentials=credentials,
        max_requests=settings.max_requests,
        timeout_s=settings.request_timeout_s,
        may_act=may_act,
    )
    try:
        yield api
    finally:
        await api.close()


async def check(api: KubeApi, namespace: str, settings: KubernetesSettings) -> Version:
    """Major and minor version of the server, once it answers and lets us work in the namespace.

    Raises Unavailable when it does not answer for long, PermissionDenied when rights are missing, and
    FailedPrecondition when there is no such namespace.
    """
    place = f"{api.host} (from {settings.kubeconfig or 'the service account of this pod'})"
    try:
        return await with_retry(
            lambda: _version_if_permitted(api, namespace),
            is_transient=lambda error: isinstance(error, Unavailable),
            on_retry=lambda error, attempt: log.warning(
                "kubernetes.not_reachable", server=api.host, error=f"{error}{_policy_hint(settings)}"
            ),
            pause_s=every(_RETRY_S),
            timeout_s=settings.connect_patience_s,
        )
    except Unavailable as error:
        raise Unavailable(f"cannot reach the Kubernetes API server {place}: {error}{_policy_hint(settings)}") from error
    except (Refused, PermissionDenied) as error:
        raise PermissionDenied(
            f"the Kubernetes API server {place} refuses the launcher in namespace {namespace}: {error}"
        ) from error


def _policy_hint(settings: KubernetesSettings) -> str:
    """The network policy in the way, if there may be one: it counts the port of the server, not that of its Service."""
    return f". {settings.unreachable_hint}" if settings.unreachable_hint else ""


async def _version_if_permitted(api: KubeApi, namespace: str) -> Version:
    version = await api.get(VERSION, _VersionInfo)
    await _check_namespace(api, namespace)
    return _major_minor(version.git_version)


async def problem_of(api: KubeApi) -> str | None:
    """Why the API server cannot be relied on now; None when it answers."""
    try:
        await api.get(VERSION, _VersionInfo)
    except (Refused, Unavailable) as error:
        return str(error)
    return None


async def find_namespace(api: KubeApi, name: str) -> Namespace:
    """A namespace in which the launcher may list Jobs; without details where it may not look at the namespace itself.

    Raises NotFound, PermissionDenied, InvalidRequest for what cannot be its name, Refused for credentials that do not
    count any more, and Unavailable.
    """
    if not may_be_namespace(name):
        raise InvalidRequest(f"error finding namespace {name}: no namespace can have this name")
    paths = paths_in(name)
    try:
        try:
            found = await api.get(paths.namespace, Namespace)
        except Refused as error:
            if error.code != _FORBIDDEN:  # whether it exists is not ours to know, as long as we may work in it
                raise
            found = Namespace()
        await api.get(paths.jobs, ListOf[Named], {"limit": "1"})
    except Refused as error:
        if error.code == _FORBIDDEN:
            raise PermissionDenied(f"error finding namespace {name}: {error}. {RIGHTS}") from error
        if error.code == _NOT_FOUND:
            raise not_found(f"error finding namespace {name}: {error}") from error
        raise
    return found


def not_found(words: str) -> NotFound:
    """In the words of somebody else."""
    error = NotFound("namespace", "")
    error.args = (words,)
    return error


async def _check_namespace(api: KubeApi, namespace: str) -> None:
    try:
        await find_namespace(api, namespace)
    except (NotFound, InvalidRequest) as error:
        raise FailedPrecondition(f"error verifying default namespace existence: {error}") from error


def _major_minor(git_version: str) -> Version:
    found = re.match(r"v?(\d+)\.(\d+)", git_version)
    return (int(found[1]), int(found[2])) if found else (0, 0)
