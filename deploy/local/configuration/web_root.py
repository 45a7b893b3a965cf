"""The folder of a built page that the cluster configuration names: looked at before anything is started."""

from __future__ import annotations

from pathlib import Path

from deploy.local.failure import CannotStart
from libs.cluster.loading import read_cluster_config
from libs.cluster.refusals import in_words
from libs.cluster.web_root import problem_of_root
from libs.errors import InvalidRequest


def check_web_root(cluster_file: Path) -> None:
    """Raises CannotStart where the api could not serve it."""
    if not cluster_file.exists():
        return
    try:
        root = read_cluster_config(cluster_file)[0].web.root
    except InvalidRequest as error:
        raise CannotStart(in_words(cluster_file, str(error))) from error
    if root and (problem := problem_of_root(root)) is not None:
        raise CannotStart(f"{cluster_file}: web.root: {problem}")
