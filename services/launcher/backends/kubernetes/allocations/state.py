"""Everything that is known of one allocation, kept up to date by what the watches say. No I/O; time is passed in.

What ``determined-container`` does decides. When a pod ends badly, or somebody deletes it, the others have to end too,
and how that pod ended has to be written down where it outlives the pod: both is one patch of the Job (``Outcome``).
"""

from __future__ import annotations

from typing import Literal

from msgspec import Struct

from libs.events.observations import Address, FailureKind, PodSeen
from services.launcher.backends.kubernetes.allocations.lost_nodes import LostNodes
from services.launcher.backends.kubernetes.allocations.pods import (
    DELETED,
    Cause,
    disruption_of,
    end_of,
    is_ended_by_deletion,
    phase_of,
    pull_error_of,
    seen,
    trouble_of,
)
from services.launcher.backends.kubernetes.client.objects import Job, Pod
from services.launcher.backends.kubernetes.client.times import unix_s

OVERDUE_S = 30.0
"""How long after its time a pod that is being deleted may still be there, before its node is taken for dead."""
SIBLING_FAILED = "ended because another pod of the allocation failed"
_TRANSIENT = ("PreemptionByScheduler", "EvictionByEvictionAPI", "DeletionByTaintManager", "DeletionByPodGC")


class Outcome(Struct, frozen=True, kw_only=True):
    """Why an allocation was ended before all of its pods had ended by themselves."""

    reason: str
    """What the other pods are told to have ended of."""
    pods: tuple[PodSeen, ...] = ()
    """Those that ended by themselves and badly."""
    failure: FailureKind = ""
    """Of the allocation as a whole."""
    message: str = ""


class StopAsked(Struct, frozen=True, kw_only=True):
    ordered: bool
    was_whole: bool
    """No pod had ended by itself then."""
    deadline: float
    """Unix time after which what is left may be killed."""


class Refusal(Struct, frozen=True, kw_only=True):
    """Why nothing was created, or nothing of it is left."""

    message: str
    withdrawn: bool = False
    """It was not needed any more, before its turn had come."""


class Run:
    def __init__(
        self,
        *,
        allocation: str,
        task: str,
        pool: str,
        job_name: str,
        num_pods: int,
        slots_per_pod: int = 0,
        namespace: str = "",
    ) -> None:
        self.allocation = allocation
        self.task = task
        self.pool = pool
        self.job_name = job_name
        self.num_pods = num_pods
        self.slots_per_pod = slots_per_pod
        self.namespace = namespace
        self.unseen = ""
        """Why nobody can see at present what is in its namespace; empty while that is possible."""
        self.is_remembered = False
        """A launcher before us wrote down that it had existed; nothing of it was seen since."""
        self.gone_because = ""
        """Why nothing is left of it, where more is known than that somebody deleted it."""
        self.stage: Literal["left", "queued", "creating", "created"] = "created"
        """``left`` is what a launcher before us was killed over: its order tells what is to become of it."""
        self.refusal: Refusal | None = None
        self.job: Job | None = None
        self.job_vanished = False
        """It was there, and is not any more."""
        self.replaced: set[str] = set()
        """Uids of Jobs that were deleted to be made anew: how their pods end is no matter of this allocation."""
        self.settled = False
        """The pods were listed after the Job had finished, so nothing about their ends is still on its way."""
        self.pods: dict[str, Pod] = {}
        self.ended: dict[str, PodSeen] = {}
        """Pods that are gone."""
        self.marked: dict[str, Cause] = {}
        """Pods of which it is known why they end, before they do."""
        self.swept: set[str] = set()
        """Pods that somebody had deleted, and that had ended of it, when they were seen first."""
        self.asked: dict[str, str] = {}
        """Pods that had not ended when the end was asked of them, and why it was."""
        self.outcome: Outcome | None = None
        self.outcome_saved = False
        self.called: set[str] = set()
        """Pods that we have asked to end one by one."""
        self.stop: StopAsked | None = None
        self.stop_sent = False
        """The cluster was asked to delete everything, with the present deadline."""
        self.quota_blocked = False
        self.create_failure: tuple[str, float] | None = None
        """What the Job controller said last when it could not make a pod, and since when it has said that."""
        self.proxied: tuple[Address, ...] = ()
        """Where its ports are reached through the gateway."""
        self.troubles: dict[str, float] = {}
        """Pods that cannot start, and since when."""
        self.pull_errors: dict[str, str] = {}
        """What pods said last about an image that they could not get."""

    @property
    def key(self) -> tuple[str, str]:
        """Namespace and name of its Job."""
        return self.namespace, self.job_name

    @property
    def end_reason(self) -> str:
        """Why we have asked what is left to end; empty while we have not."""
        if self.stop is not None:
            return "stopped by order" if self.stop.ordered else "order withdrawn"
        return self.outcome.reason if self.outcome is not None else ""

    @property
    def is_fragment(self) -> bool:
        return self.stage == "left"

    @property
    def is_asked_to_end(self) -> bool:
        return self.stop is not None or self.outcome is not None

    @property
    def is_whole(self) -> bool:
        """No pod has ended by itself, nor was the Job taken away."""
        return not (self.ended or self.job_vanished or any(end_of(pod) for pod in self.pods.values()))

    def saw_job(self, job: Job) -> None:
        self.job = job
        self.job_vanished = False
        self.num_pods = job.spec.completions or self.num_pods

    def lost_job(self) -> None:
        self.job_vanished = self.job_vanished or self.job is not None
        self.job = None

    def replace_job(self, uid: str) -> None:
        """Begin anew, without the Job of this uid and its pods. To be called before it is deleted."""
        self.replaced.add(uid)
        self.job = None
        for name in [name for name, pod in self.pods.items() if pod.job_uid == uid]:
            del self.pods[name]
            self.troubles.pop(name, None)

    def saw_pod(self, pod: Pod, *, now: float, lost: LostNodes) -> None:
        name = pod.metadata.name
        before = self.pods.get(name)
        self.pods[name] = pod
        self.ended.pop(name, None)  # a launcher before us wrote down why it ends; it is not gone yet
        self.create_failure = None
        self.quota_blocked = False
        if end_of(pod) is None:
            if pod.metadata.deletion_timestamp is not None and (before is None or not _is_deleted(before)):
                self._notice_deletion(pod, lost)
            self._notice_trouble(pod, now)
        elif before is None and is_ended_by_deletion(pod):
            self.swept.add(name)
        if trouble_of(pod) is None:
            self.troubles.pop(name, None)

    def lost_pod(self, pod: Pod, *, now: float, lost: LostNodes) -> None:
        """``pod`` is what was seen of it last."""
        self.saw_pod(pod, now=now, lost=lost)
        name = pod.metadata.name
        cause = self.cause_of(pod, now=now, lost=lost) or self._cause_of_vanished(pod, lost)
        del self.pods[name]
        self.troubles.pop(name, None)
        self.ended[name] = seen(pod, cause)

    def vanish(self, words: str, *, now: float, lost: LostNodes) -> None:
        """Take everything there was of it for deleted; ``words`` say why."""
        self.unseen = ""
        self.gone_because = words
        for name, pod in list(self.pods.items()):
            if end_of(pod) is None and not self.is_asked_to_end:
                self.marked.setdefault(name, Cause(failure="DELETED", message=words))
            self.lost_pod(pod, now=now, lost=lost)
        self.lost_job()

    def ask_to_end(self) -> None:
        """Remember who has not ended by itself. To be called when ``stop`` or ``outcome`` was set."""
        for name, pod in self.pods.items():
            if end_of(pod) is None and name not in self.marked:
                self.asked.setdefault(name, self.end_reason)

    def cause_of(self, pod: Pod, *, now: float, lost: LostNodes) -> Cause | None:
        """Why the pod has ended, or None while it has not."""
        name = pod.metadata.name
        end = end_of(pod)
        if end is None and not self.is_beyond_reach(pod, now=now, lost=lost):
            return None
        if name in self.marked:
            return self.marked[name]
        if end is None:
            return self._cause_of_unconfirmed(pod, lost)
        if name in self.asked and end.exit_code:
            return _ended_by_us(self.asked[name], end.exit_code)
        return self._cause_of_swept(end) if name in self.swept else end

    def is_beyond_reach(self, pod: Pod, *, now: float, lost: LostNodes) -> bool:
        """Whether the pod is being deleted, and nobody will ever tell that it is over."""
        deadline = unix_s(pod.metadata.deletion_timestamp)
        if deadline is None:
            return False
        return lost.words(pod.spec.node_name) != "" or now > deadline + OVERDUE_S

    def first_failure(self, *, now: float, lost: LostNodes) -> str | None:
        """Name of a pod that has ended badly, or is bound to."""
        for name, ended in sorted(self.ended.items()):
            if ended.failure:
                return name
        for name, pod in sorted(self.pods.items()):
            cause = self.marked.get(name) or self.cause_of(pod, now=now, lost=lost)
            if cause is not None and cause.failure:
                return name
        return None

    def _notice_deletion(self, pod: Pod, lost: LostNodes) -> None:
        """Somebody wants this pod to end: we, the Job controller after another pod failed, or somebody else."""
        name = pod.metadata.name
        if name in self.marked:
            return
        if self.is_asked_to_end:
            self.asked.setdefault(name, self.end_reason)
        elif self.job is None or self.job.metadata.deletion_timestamp is not None:
            self.marked[name] = Cause(failure="DELETED", message="job was deleted")
        elif self._has_failed_pod():
            self.asked.setdefault(name, SIBLING_FAILED)
        else:
            self.marked[name] = _deleted_by_somebody(pod, lost)

    def _has_failed_pod(self) -> bool:
        ends = (end_of(pod) for name, pod in self.pods.items() if name not in self.swept)
        return any(pod.failure for pod in self.ended.values()) or any(end and end.failure for end in ends)

    def _notice_trouble(self, pod: Pod, now: float) -> None:
        if trouble_of(pod) is not None:
            self.troubles.setdefault(pod.metadata.name, now)
        if error := pull_error_of(pod):
            self.pull_errors[pod.metadata.name] = error

    def _cause_of_unconfirmed(self, pod: Pod, lost: LostNodes) -> Cause:
        words = lost.words(pod.spec.node_name)
        if not words and pod.metadata.name in self.asked:
            # Such as what an old cluster put in the place of a pod that somebody deleted: the node is well.
            return _ended_by_us(self.asked[pod.metadata.name])
        return Cause(failure="NODE_LOST", message=words or "its node does not confirm that the pod has ended")

    def _cause_of_swept(self, end: Cause) -> Cause:
        words = self.end_reason or (SIBLING_FAILED if self._has_failed_pod() else "")
        if words:
            return _ended_by_us(words, end.exit_code)
        return Cause(exit_code=end.exit_code, failure="DELETED", message=DELETED)

    def _cause_of_vanished(self, pod: Pod, lost: LostNodes) -> Cause:
        name = pod.metadata.name
        if name in self.marked:
            return self.marked[name]
        if name in self.asked or self.is_asked_to_end:
            return _ended_by_us(self.asked.get(name, self.end_reason))
        if words := lost.words(pod.spec.node_name):
            return Cause(failure="NODE_LOST", message=words)
        return Cause(failure="DELETED", message=f"pod {name} deleted", vanished=True)


def _ended_by_us(words: str, exit_code: int | None = None) -> Cause:
    """By an order, or because another pod had failed."""
    return Cause(exit_code=exit_code, failure="DELETED", message=words, is_consequence=True)


def _is_deleted(pod: Pod) -> bool:
    return pod.metadata.deletion_timestamp is not None


def _deleted_by_somebody(pod: Pod, lost: LostNodes) -> Cause:
    if words := lost.words(pod.spec.node_name):
        return Cause(failure="NODE_LOST", message=words)
    is_transient = any(
        condition.type == "DisruptionTarget" and condition.reason in _TRANSIENT for condition in pod.status.conditions
    )
    words = disruption_of(pod) or DELETED
    never_ran = phase_of(pod) in ("ASSIGNED", "PULLING")
    kind: FailureKind = "NODE_LOST" if is_transient and not never_ran else "ABORTED" if is_transient else "DELETED"
    return Cause(failure=kind, message=words)
