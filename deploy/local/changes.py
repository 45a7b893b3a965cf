"""What other options mean to a system that exists: which of them are refused, and which its services restart for."""

from __future__ import annotations

from dataclasses import fields
from typing import Final

from deploy.local.configuration import plan
from deploy.local.failure import CannotStart
from deploy.local.layout import Layout, Options
from deploy.local.leftover_tasks import tasks
from deploy.local.supervision import processes

_WORDS: Final = {
    "api_port": "the port of the api",
    "slots": "slots",
    "python": "the interpreter of tasks",
    "cluster_config": "the cluster configuration",
    "standby": "the standby scheduler",
    "subscribers": "subscribers",
    "kubernetes": "where tasks run",
    "certificate": "the certificate",
    "authority": "the certificate",
}


def refuse_to_move_tasks(layout: Layout, kept: Options, options: Options) -> None:
    """Raises CannotStart while tasks run that would not find the api any more, or not be found by a launcher."""
    if (kept.task_master_url, _cluster(kept)) == (options.task_master_url, _cluster(options)):
        return
    if running := tasks.running(layout):
        count = f"{len(running)} tasks run" if len(running) > 1 else "1 task runs"
        raise CannotStart(
            f"{count} and would lose the api at {kept.task_master_url}, because this changes "
            f"{in_words(kept, options)}: wait for the end, or type `resolute down --tasks`; then repeat the command"
        )


def refuse_what_the_file_says(layout: Layout, kept: Options, options: Options) -> None:
    """Raises CannotStart for options that only the first start writes into the cluster configuration."""
    file = options.cluster_file(layout)
    if options.cluster_config != kept.cluster_config or not file.exists() or _in_file(kept) == _in_file(options):
        return
    raise CannotStart(
        f"where and how pods run stands in {file}, which is yours to edit since the first start: change it there, "
        "and type `resolute up` without these options; tasks that are processes stay so"
    )


def refuse_in_foreground(layout: Layout) -> None:
    """Raises CannotStart while somebody runs a service in the foreground, which a restart would end."""
    for name in plan.process_names(layout):
        if layout.hold(name).exists() and processes.find(layout, name) is not None:
            raise CannotStart(
                f"{name} runs in the foreground: end that `resolute up --service` with Ctrl-C, then repeat the command"
            )


def refuse_running_services(layout: Layout, services: set[str]) -> None:
    """Raises CannotStart for ``--only-servers`` while services run."""
    if running := sorted(name for name in services if processes.find(layout, name) is not None):
        raise CannotStart(f"{', '.join(running)} run: `resolute down`, then `resolute up --only-servers`")


def only_servers_run(layout: Layout, services: set[str]) -> bool:
    """Whether the system was started with ``--only-servers``."""
    planned = services & {*plan.process_names(layout)}
    return all(layout.hold(name).exists() and processes.find(layout, name) is None for name in planned)


def has_newer_configuration(layout: Layout, options: Options, *, started_at: float) -> bool:
    """Whether the cluster configuration was written after the supervisor was started, Unix time."""
    try:
        return options.cluster_file(layout).stat().st_mtime > started_at
    except FileNotFoundError:
        return False


def in_words(kept: Options, options: Options) -> str:
    """What differs; the cluster configuration when only its content does."""
    names = [each.name for each in fields(Options) if getattr(kept, each.name) != getattr(options, each.name)]
    words = dict.fromkeys(_WORDS.get(name, name) for name in names if name != "host" or len(names) == 1)
    return ", ".join(words) or _WORDS["cluster_config"]


def _in_file(options: Options) -> tuple[object, ...] | None:
    pods = options.kubernetes
    return (pods.namespace, pods.image, pods.slot_type, pods.max_slots_per_pod) if pods else None


def _cluster(options: Options) -> str | None:
    return options.kubernetes.kubeconfig if options.kubernetes else None
