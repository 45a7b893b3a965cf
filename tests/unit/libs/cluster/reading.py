"""A configuration as it comes out of a file."""

from __future__ import annotations

import tempfile
from pathlib import Path
from typing import Any

import pytest
import yaml

from libs.cluster.config import ClusterConfig
from libs.cluster.loading import read_cluster_config
from libs.errors import InvalidRequest


def read(document: Any) -> tuple[ClusterConfig, dict[str, str]]:
    """The configuration in a file with ``document`` in it, and what is said of keys."""
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "cluster.yaml"
        path.write_text(yaml.safe_dump(document))
        config, warnings = read_cluster_config(path)
    return config, {warning.key: warning.says for warning in warnings}


def kubernetes(**manager: Any) -> dict[str, Any]:
    """A document with a resource manager of this type that lacks nothing."""
    return {"resource_manager": {"type": "kubernetes", "max_slots_per_pod": 4, **manager}}


def assert_refused(document: Any, text: str) -> None:
    """With exactly this text."""
    with pytest.raises(InvalidRequest) as raised:
        read(document)
    assert str(raised.value) == text
