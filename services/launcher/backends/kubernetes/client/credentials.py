"""Credentials for a cluster: a kubeconfig, or the service account of the pod that we run in."""

from __future__ import annotations

import asyncio
import os
from typing import Final

import yaml
from kubernetes.aio.client.configuration import Configuration
from kubernetes.aio.config import ConfigException, load_incluster_config, load_kube_config

from libs.errors import InvalidRequest

_SETTING: Final = "kubernetes.kubeconfig"


async def read_configuration(kubeconfig: str | None, context: str | None) -> Configuration:
    """Address and credentials, read anew every time. Raises InvalidRequest that says what is wrong with them."""
    configuration = Configuration()
    if kubeconfig is None:
        try:
            load_incluster_config(client_configuration=configuration)  # type: ignore[no-untyped-call]
        except ConfigException as error:
            raise InvalidRequest(
                f"this process does not run in a pod of a cluster ({error}): set {_SETTING} to a kubeconfig file"
            ) from error
        return configuration
    path = await asyncio.to_thread(_readable, kubeconfig)
    try:
        await load_kube_config(  # type: ignore[no-untyped-call]
            config_file=path, context=context, client_configuration=configuration
        )
    except yaml.YAMLError as error:
        raise InvalidRequest(f"{_SETTING} {path} is not YAML: {_words(error)}") from error
    except (ConfigException, ValueError, TypeError, KeyError, AttributeError, OSError) as error:
        # The loader of the client library fails in whatever way the content of the file happens to break it.
        raise InvalidRequest(f"{_SETTING} {path} is not a usable kubeconfig: {_words(error)}") from error
    if not configuration.host.startswith(("http://", "https://")):
        raise InvalidRequest(f"{_SETTING} {path} names no server")
    return configuration


def _readable(kubeconfig: str) -> str:
    path = os.path.expanduser(kubeconfig)
    try:
        with open(path, "rb"):
            return path
    except OSError as error:
        raise InvalidRequest(f"{_SETTING} {path} cannot be read: {error.strerror}") from error


def _words(error: Exception) -> str:
    return " ".join(str(error).split()) or type(error).__name__
