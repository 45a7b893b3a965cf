"""Baselines of launching: a bare loop that makes the same objects, and a bare watch that sees their pods."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Iterator, Sequence

from services.launcher.backends.kubernetes.client.api import KubeApi
from services.launcher.backends.kubernetes.client.informer import Informer
from services.launcher.backends.kubernetes.client.objects import Named, Pod
from services.launcher.backends.kubernetes.client.paths import Paths
from services.launcher.backends.kubernetes.manifests.task_objects import Manifests, owned


async def create(api: KubeApi, paths: Paths, made: Sequence[Manifests], *, workers: int) -> None:
    """Make the objects of ``made``, each Job before what it owns; as many at once as there are workers."""
    left = iter(made)
    async with asyncio.TaskGroup() as tasks:
        for _ in range(workers):
            tasks.create_task(_work(api, paths, left))


async def _work(api: KubeApi, paths: Paths, left: Iterator[Manifests]) -> None:
    for one in left:
        job = await api.create(paths.jobs, one.job, Named)
        for secret in one.secrets:
            await api.create(paths.secrets, owned(secret, job=one.name, uid=job.metadata.uid), Named)
        await api.create(paths.config_maps, owned(one.config_map, job=one.name, uid=job.metadata.uid), Named)


def watch_pods(api: KubeApi, paths: Paths, saw: Callable[[Pod], None]) -> Informer[Pod]:
    """To be run; ``saw`` is told of every pod of the namespace that is new or another."""
    return Informer(api, what="pods", path=paths.pods, kind=Pod, handler=_Handler(saw))


class _Handler:
    def __init__(self, saw: Callable[[Pod], None]) -> None:
        self.on_upsert = saw

    def on_delete(self, item: Pod) -> None:
        """Nothing is measured about the end of pods."""
