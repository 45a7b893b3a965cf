"""Names of namespaces: the rule for valid ones, and the name of one that is made for a workspace. Pure."""

from __future__ import annotations

import re
from typing import Final

_LABEL: Final = re.compile(r"[a-z0-9]([-a-z0-9]{0,61}[a-z0-9])?")
_FORBIDDEN: Final = re.compile(r"[^a-z0-9]")


def is_namespace_name(name: str) -> bool:
    """Whether a namespace could be called that: a label of RFC 1123 (Kubernetes, object names)."""
    return _LABEL.fullmatch(name) is not None


def own_namespace_name(*, workspace: str, workspace_id: int, installation: str, cluster_id: str) -> str:
    """The namespace that is made for a workspace: ``<workspace>-<installation>-<cluster id>-<workspace id>``.

    workspace     its name; letters and digits of it are kept, ``null`` stands for a name without any
    installation  namespace of the installation; left out when it has none
    cluster_id    of the installation, of which four characters tell it from others
    At most 63 characters. Source: docs/reference/kubernetes.md 8.3, docs/reference/platform.md 7.2.
    """
    parts = (
        _FORBIDDEN.sub("", workspace.lower())[:31] or "null",
        installation.lower()[:19].strip("-"),
        cluster_id[:4],
        str(workspace_id)[:6],
    )
    return "-".join(part for part in parts if part)
