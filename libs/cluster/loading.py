"""Reads the cluster configuration file, and says in the log what it does not take as it is written there."""

from __future__ import annotations

from pathlib import Path

import msgspec
import structlog
import yaml

from libs.cluster.checks import check
from libs.cluster.config import ClusterConfig
from libs.cluster.legacy_config import ConfigWarning, upgrade
from libs.errors import InvalidRequest

log = structlog.get_logger()


def load_cluster_config(path: Path | None) -> ClusterConfig:
    """The configuration in ``path``, or that of a single process pool when there is no file; warnings are logged.

    Raises InvalidRequest that names the key.
    """
    config, warnings = read_cluster_config(path)
    for warning in warnings:
        log.warning("cluster_config.not_as_written", key=warning.key, says=warning.says)
    return config


def read_cluster_config(path: Path | None) -> tuple[ClusterConfig, tuple[ConfigWarning, ...]]:
    """As ``load_cluster_config``, with the warnings for the caller to tell."""
    if path is None:
        return ClusterConfig(), ()
    try:
        document = yaml.safe_load(path.read_text()) or {}
    except yaml.YAMLError as error:
        raise InvalidRequest(f"{path} is not valid YAML: {' '.join(str(error).split())}") from error
    except OSError as error:
        raise InvalidRequest(f"cannot read the cluster configuration: {error}") from error
    warnings: tuple[ConfigWarning, ...] = ()
    if isinstance(document, dict):
        document, warnings = upgrade(document)
    try:
        config = msgspec.convert(document, ClusterConfig, strict=False)
    except msgspec.ValidationError as error:
        raise InvalidRequest(f"{path}: {error}") from error
    check(config)
    return config, warnings
