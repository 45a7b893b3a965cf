"""Everything that a launcher watches, read once before anybody asks, and followed from there.

What it may not see, it does without: nodes (capacity comes from the quota or the settings then), the pods of others,
quotas, events. Jobs and pods of its namespace it needs.
"""

from __future__ import annotations

from typing import Any, Final

import structlog

from services.launcher.backends.kubernetes.acting import Actor
from services.launcher.backends.kubernetes.api import ONLY_METADATA, KubeApi, Refused
from services.launcher.backends.kubernetes.background import Background
from services.launcher.backends.kubernetes.follow import Follow, Listener
from services.launcher.backends.kubernetes.holdings import Holdings
from services.launcher.backends.kubernetes.ledger import Ledger
from services.launcher.backends.kubernetes.objects import Event, Job, ListOf, Named, Node, Pod, Quota, SlimPod
from services.launcher.backends.kubernetes.observe.pods import phase_of
from services.launcher.backends.kubernetes.observe.run import Run
from services.launcher.backends.kubernetes.paths import ALL_PODS, NODES, Paths
from services.launcher.backends.kubernetes.spec.names import ALLOCATION_LABEL, LAUNCHER_LABEL
from services.launcher.backends.kubernetes.tracking import Tracker

log = structlog.get_logger()

_FORBIDDEN: Final = 403
_UNFINISHED: Final = "status.phase!=Succeeded,status.phase!=Failed"


class Watches:
    def __init__(
        self,
        api: KubeApi,
        *,
        paths: Paths,
        launcher: str,
        tracker: Tracker,
        holdings: Holdings,
        events: Listener[Event],
        background: Background,
    ) -> None:
        self._api = api
        self._paths = paths
        self._launcher = launcher
        self._tracker = tracker
        self._background = background
        mine = {"labelSelector": f"{LAUNCHER_LABEL}={launcher}"}
        foreign = {"labelSelector": f"{LAUNCHER_LABEL}!={launcher}", "fieldSelector": _UNFINISHED}
        self._jobs = Follow(api, what="jobs", path=paths.jobs, kind=Job, listener=_Jobs(tracker), query=mine)
        self._pods = Follow(api, what="pods", path=paths.pods, kind=Pod, listener=_Pods(tracker), query=mine)
        self._optional: tuple[Follow[Any], ...] = (
            Follow(api, what="resource quotas", path=paths.quotas, kind=Quota, listener=holdings.quotas),
            Follow(api, what="pods of others", path=ALL_PODS, kind=SlimPod, listener=holdings.others, query=foreign),
            Follow(api, what="events", path=paths.events, kind=Event, listener=events, keeps=False),
        )
        self._nodes = Follow(api, what="nodes", path=NODES, kind=Node, listener=holdings.nodes)

    async def start(self, *, actor: Actor, ledger: Ledger) -> None:
        """Read everything there is, and follow it. Raises Refused and Unavailable."""
        await self._follow_if_allowed(self._nodes)
        # Jobs before pods: what is known of a Job decides what the end of a pod means.
        for needed in (self._jobs, self._pods):
            await needed.read_list()
            self._background.create_task(needed.run(), name=f"watch {needed.what}")
        await self._take_stock(actor, ledger)
        for optional in self._optional:
            await self._follow_if_allowed(optional)

    async def _follow_if_allowed(self, follow: Follow[Any]) -> None:
        try:
            await follow.read_list()
        except Refused as error:
            if error.code != _FORBIDDEN:
                raise
            log.warning("kubernetes.may_not_see", what=follow.what, reason=str(error))
            return
        self._background.create_task(follow.run(), name=f"watch {follow.what}")

    async def _take_stock(self, actor: Actor, ledger: Ledger) -> None:
        """Tell apart what the launcher before us had made, what it had only begun, and what was deleted since."""
        query = {"labelSelector": f"{LAUNCHER_LABEL}={self._launcher},{ALLOCATION_LABEL}"}
        made = await self._api.get(self._paths.config_maps, ListOf[Named], query, accept=ONLY_METADATA)
        complete = {item.metadata.name for item in made.items or ()}
        runs = self._tracker.runs
        for run in list(runs.values()):
            if run.job_name not in complete and _may_be_fragment(run):
                log.warning("kubernetes.fragment", allocation=run.allocation, job=run.job_name)
                run.is_fragment = True
                await actor.delete_fragment(run)
        for allocation in await ledger.read() - runs.keys():
            # It was there, and somebody deleted it: it must not begin anew.
            self._tracker.add(
                Run(allocation=allocation, task="", pool=self._tracker.pool, job_name=f"of {allocation}", num_pods=1)
            )
        ledger.add(run.allocation for run in runs.values() if not run.is_fragment)


def _may_be_fragment(run: Run) -> bool:
    """Whether nothing of a run has begun, which it cannot before everything was made."""
    begun = any(phase_of(pod) not in ("ASSIGNED", "PULLING") for pod in run.pods.values()) or bool(run.ended)
    return run.job is not None and not begun and not run.job.status.conditions and run.outcome is None


class _Jobs:
    def __init__(self, tracker: Tracker) -> None:
        self.saw = tracker.saw_job
        self.lost = tracker.lost_job


class _Pods:
    def __init__(self, tracker: Tracker) -> None:
        self.saw = tracker.saw_pod
        self.lost = tracker.lost_pod
