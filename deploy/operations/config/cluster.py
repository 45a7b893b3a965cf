"""Mistakes in a cluster configuration (``master.yaml``), in the words with which services refuse it."""

from __future__ import annotations

from pathlib import Path

from deploy.operations.config.mistakes import Mistake
from libs.cluster.loading import read_cluster_config
from libs.cluster.refusals import explain_refusal
from libs.cluster.web_root import problem_of_root
from libs.errors import InvalidRequest


def cluster_mistakes(path: Path) -> list[Mistake]:
    """Warnings for keys that are not taken as written, or the error that keeps services from starting."""
    try:
        config, warnings = read_cluster_config(path)
    except InvalidRequest as error:
        return [Mistake("error", *explain_refusal(str(error).removeprefix(f"{path}: ")))]
    found = [Mistake("warning", warning.key, warning.says) for warning in warnings]
    if config.web.root and (problem := problem_of_root(config.web.root)) is not None:
        # The file may be for another machine.
        found.append(Mistake("warning", "web.root", f"{problem}; an api on this machine does not start with it"))
    return found
