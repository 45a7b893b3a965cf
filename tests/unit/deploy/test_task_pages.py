from __future__ import annotations

import pytest

from deploy.operations.doctor.tasks.pages import check_task_pages
from libs.cluster.config import ClusterConfig, TasksConfig

MAIN = "https://det.example.com"


@pytest.mark.parametrize(
    ("address", "main_address", "level", "says"),
    [
        ("", "", "warning", "unprotected"),
        ("https://tasks.det.example.com", MAIN, "ok", "https://tasks.det.example.com"),
        ("http://tasks.det.example.com", MAIN, "warning", "https"),
        ("https://tasks.example.org", MAIN, "warning", "different domains"),
    ],
)
def test_one_host_name_for_everything_is_called_unprotected(
    address: str, main_address: str, level: str, says: str
) -> None:
    cluster = ClusterConfig(tasks=TasksConfig(address=address, main_address=main_address))
    found = check_task_pages(cluster)
    assert (found.level, says in found.says) == (level, True)
