"""Pages of tasks: whether they have a host name of their own, which keeps them from acting as whoever looks at them."""

from __future__ import annotations

from typing import Final
from urllib.parse import urlsplit

from deploy.operations.doctor.findings import Finding, ok, warning
from libs.cluster.config import ClusterConfig

PART: Final = "task pages"
_REMEDY: Final = "set tasks.address and tasks.main_address to two host names that lead to the api: docs/secure.md"


def check_task_pages(cluster: ClusterConfig) -> Finding:
    """Pure."""
    tasks = cluster.tasks
    if not tasks.address:
        says = "unprotected except for users who come by localhost: a page in a task can act as whoever looks at it"
        return warning(PART, says, remedy=_REMEDY)
    if tasks.main_address.startswith("https:") != tasks.address.startswith("https:"):
        says = "one of tasks.address and tasks.main_address is https and the other is not, so browsers keep them apart"
        return warning(PART, says, remedy="serve both by https; frames lose their cookies otherwise")
    names = [urlsplit(address).hostname or "" for address in (tasks.address, tasks.main_address)]
    if names[0].split(".")[-2:] != names[1].split(".")[-2:]:
        says = f"{names[0]} and {names[1]} are of different domains"
        return warning(PART, says, remedy="choose host names of one domain; frames lose their cookies otherwise")
    return ok(PART, f"at {tasks.address}, which is not the address of the api")
