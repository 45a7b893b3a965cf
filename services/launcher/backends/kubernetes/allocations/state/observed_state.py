"""State of one allocation as the cluster tells it to informers; the tracker passes it on, and time is passed in.

What ``determined-container`` does decides. Why a pod ended often cannot be read from the pod: one that somebody deletes
says the same as one that we delete. So what was known when its deletion was seen first is kept with it.
"""

from __future__ import annotations

from libs.events.observations import FailureKind, ObservedPod
from services.launcher.backends.kubernetes.allocations.state.intent import Intent, Outcome
from services.launcher.backends.kubernetes.allocations.state.pods import (
    DELETED,
    Cause,
    Trouble,
    are_held_back,
    disruption_of,
    end_of,
    is_ended_by_deletion,
    observed_pod,
    phase_of,
    pull_error_of,
    trouble_of,
)
from services.launcher.backends.kubernetes.allocations.state.view import View
from services.launcher.backends.kubernetes.client.objects import Job, Pod
from services.launcher.backends.kubernetes.client.times import unix_s

OVERDUE_S = 30.0
"""How long after its time a pod that is being deleted may still be there, before its node is taken for dead."""
UNSEEN_S = 30.0
"""How long after its time a task that nobody can see may be stopping, before it is taken for gone."""
SIBLING_FAILED = "ended because another pod of the allocation failed"
_TRANSIENT = ("PreemptionByScheduler", "EvictionByEvictionAPI", "DeletionByTaintManager", "DeletionByPodGC")


class ObservedState:
    def __init__(
        self,
        *,
        num_pods: int,
        out_of_sight: str = "",
        gone_because: str = "",
        job_names: tuple[str, ...] = (),
    ) -> None:
        """``job_names``: those of its Jobs, where there are several."""
        self.job_names = job_names
        self.num_pods = num_pods
        """How many there should be."""
        self.out_of_sight = out_of_sight
        """Why nobody can see at present what is in its namespace; empty while that is possible."""
        self.gone_because = gone_because
        """Why nothing is left of it, where more is known than that somebody deleted it."""
        self.jobs: dict[str, Job] = {}
        """Those that are there, by name."""
        self.lost_jobs: dict[str, Job | None] = {}
        """Those that were there, and are not any more; None where they went before anybody here saw them."""
        self.pods: dict[str, Pod] = {}
        self.placed_since: float | None = None
        """Since when its pods are being placed, as seen here (Unix time, seconds)."""
        self.ended: dict[str, ObservedPod] = {}
        """Pods that are gone."""
        self.known_causes: dict[str, Cause] = {}
        """Of pods of which it is known why they end, before they do."""
        self.deleted_because: dict[str, str] = {}
        """Pods whose deletion was seen when the rest had to end already, and why it had."""
        self.deleted_before_seen: set[str] = set()
        """Pods that somebody had deleted, and that had ended of it, when they were seen first."""
        self.troubles: dict[str, float] = {}
        """Pods that cannot start, and since when."""
        self.pull_errors: dict[str, str] = {}
        """What pods said last about an image that they could not get."""
        self.quota_blocked = False
        self.create_failure: tuple[str, float] | None = None
        """What the Job controller said last when it could not make a pod, and since when it has said that."""

    @property
    def job(self) -> Job | None:
        """The first that is there; its only one, unless ``job_names`` says otherwise."""
        return next((self.jobs[name] for name in self.job_names if name in self.jobs), None) or next(
            iter(self.jobs.values()), None
        )

    @property
    def job_vanished(self) -> bool:
        """It was there, and is not any more."""
        return bool(self.lost_jobs) and not self.jobs

    @property
    def is_whole(self) -> bool:
        """No pod has ended by itself, nor was a Job taken away."""
        return not (self.ended or self.lost_jobs or any(end_of(pod) for pod in self.pods.values()))

    @property
    def has_pods(self) -> bool:
        """Some pod was made, even if it is gone."""
        return bool(self.pods or self.ended)

    def unexplained_pods(self) -> list[str]:
        """Names of pods that have not ended, and of which nothing explains that they will."""
        return [
            name
            for name, pod in self.pods.items()
            if end_of(pod) is None and name not in self.known_causes and name not in self.deleted_because
        ]

    def on_job(self, job: Job) -> None:
        self.jobs[job.metadata.name] = job
        self.lost_jobs.pop(job.metadata.name, None)
        if not self.job_names:
            self.num_pods = job.spec.completions or self.num_pods

    def on_job_deleted(self, name: str) -> None:
        if (job := self.jobs.pop(name, None)) is not None:
            self.lost_jobs[name] = job

    def on_all_jobs_told(self) -> None:
        """Everything had been made, and what is not there by now was deleted."""
        for name in self.job_names:
            if name not in self.jobs:
                self.lost_jobs.setdefault(name, None)

    def forget_job(self, uid: str) -> None:
        """Begin anew, without the Job of this uid and its pods."""
        self.jobs = {name: job for name, job in self.jobs.items() if job.metadata.uid != uid}
        self.placed_since = None
        for name in [name for name, pod in self.pods.items() if pod.job_uid == uid]:
            del self.pods[name]
            self.troubles.pop(name, None)

    def on_pod(self, pod: Pod, *, intent: Intent, view: View) -> None:
        name = pod.metadata.name
        before = self.pods.get(name)
        self.pods[name] = pod
        if are_held_back(self.pods.values()):
            self.placed_since = None
        elif self.placed_since is None:
            self.placed_since = view.now
        self.ended.pop(name, None)  # a launcher before us wrote down why it ends; it is not gone yet
        self.create_failure = None
        self.quota_blocked = False
        if end_of(pod) is None:
            if pod.metadata.deletion_timestamp is not None and (before is None or not _is_deleted(before)):
                self._notice_deletion(pod, intent, view)
            self._notice_trouble(pod, view.now)
        elif before is None and is_ended_by_deletion(pod):
            self.deleted_before_seen.add(name)
        if trouble_of(pod) is None:
            self.troubles.pop(name, None)

    def on_pod_deleted(self, pod: Pod, *, intent: Intent, view: View) -> None:
        """``pod`` is what was seen of it last."""
        self.on_pod(pod, intent=intent, view=view)
        name = pod.metadata.name
        cause = self.cause_of(pod, intent=intent, view=view) or self._cause_of_vanished(pod, intent, view)
        del self.pods[name]
        self.troubles.pop(name, None)
        self.ended[name] = observed_pod(pod, cause)

    def on_quota_exceeded(self) -> None:
        """The Job controller could not make a pod, which may change."""
        self.quota_blocked = True
        self.create_failure = None

    def on_create_failure(self, message: str, *, now: float) -> None:
        self.create_failure = (message, self.create_failure[1] if self.create_failure is not None else now)

    def on_out_of_sight(self, words: str) -> None:
        self.out_of_sight = words

    def on_in_sight(self) -> None:
        self.out_of_sight = ""

    def on_namespace_deleted(self, words: str, *, intent: Intent, view: View) -> None:
        """Take everything there was of it for deleted; ``words`` say why."""
        self.out_of_sight = ""
        self.gone_because = words
        for name, pod in list(self.pods.items()):
            if end_of(pod) is None and not intent.is_end_requested:
                self.known_causes.setdefault(name, Cause(failure="DELETED", message=words))
            self.on_pod_deleted(pod, intent=intent, view=view)
        for name in list(self.jobs):
            self.on_job_deleted(name)

    def on_outcome(self, outcome: Outcome) -> None:
        """A launcher before us wrote down, with the Job, how pods had ended. To be called before any pod is seen."""
        for pod in outcome.pods:
            self.known_causes[pod.name] = Cause(
                exit_code=pod.exit_code,
                failure=pod.failure,
                message=pod.message,
                is_consequence=pod.is_consequence,
                vanished=pod.vanished,
            )
            self.ended[pod.name] = pod

    def on_time(self, *, intent: Intent, view: View) -> None:
        """Take what has lasted too long for a failure. Time alone can bring this about."""
        if self.out_of_sight and intent.stop is not None and view.now >= intent.stop.deadline + UNSEEN_S:
            self.on_namespace_deleted(self.out_of_sight, intent=intent, view=view)
        for name, since in self.troubles.items():
            trouble = trouble_of(self.pods[name])
            if trouble is None or name in self.known_causes or intent.is_end_requested:
                continue
            kind, words = trouble
            if kind is Trouble.IMAGE:
                error = self.pull_errors.get(name, "")
                # New versions of Kubernetes say both at once.
                message = words if error in words else f"{words}: {error}"
                self.known_causes[name] = Cause(failure="IMAGE_PULL", message=message)
            elif view.now >= since + view.stuck_grace_s:
                self.known_causes[name] = Cause(failure="LAUNCH_ERROR", message=words)

    def cause_of(self, pod: Pod, *, intent: Intent, view: View) -> Cause | None:
        """Why the pod has ended, or None while it has not."""
        name = pod.metadata.name
        end = end_of(pod)
        if end is None and not is_beyond_reach(pod, view):
            return None
        if name in self.known_causes:
            return self.known_causes[name]
        reason = self._reason_to_end(name, intent)
        if end is None:
            return _cause_of_unconfirmed(pod, reason, view)
        if reason and end.exit_code:
            return _ended_by_us(reason, end.exit_code)
        return self._cause_of_deleted(end, intent) if name in self.deleted_before_seen else end

    def _reason_to_end(self, name: str, intent: Intent) -> str:
        """Why a pod was to end, as known when that was requested or seen first; empty when nothing is known."""
        return intent.end_requested.get(name) or self.deleted_because.get(name, "")

    def _notice_deletion(self, pod: Pod, intent: Intent, view: View) -> None:
        """Somebody wants this pod to end: we, the Job controller after another pod failed, or somebody else."""
        name = pod.metadata.name
        if name in self.known_causes or self._reason_to_end(name, intent):
            return
        if intent.is_end_requested:
            self.deleted_because[name] = intent.end_reason
        elif (job := self._job_of(pod)) is None or job.metadata.deletion_timestamp is not None:
            self.known_causes[name] = Cause(failure="DELETED", message="job was deleted")
        elif self._has_failed_pod():
            self.deleted_because[name] = SIBLING_FAILED
        else:
            self.known_causes[name] = _deleted_by_somebody(pod, view)

    def _job_of(self, pod: Pod) -> Job | None:
        return self.jobs.get(pod.job) if self.job_names else self.job

    def _has_failed_pod(self) -> bool:
        ends = (end_of(pod) for name, pod in self.pods.items() if name not in self.deleted_before_seen)
        return any(pod.failure for pod in self.ended.values()) or any(end and end.failure for end in ends)

    def _notice_trouble(self, pod: Pod, now: float) -> None:
        if trouble_of(pod) is not None:
            self.troubles.setdefault(pod.metadata.name, now)
        if error := pull_error_of(pod):
            self.pull_errors[pod.metadata.name] = error

    def _cause_of_deleted(self, end: Cause, intent: Intent) -> Cause:
        words = intent.end_reason or (SIBLING_FAILED if self._has_failed_pod() else "")
        if words:
            return _ended_by_us(words, end.exit_code)
        return Cause(exit_code=end.exit_code, failure="DELETED", message=DELETED)

    def _cause_of_vanished(self, pod: Pod, intent: Intent, view: View) -> Cause:
        name = pod.metadata.name
        if name in self.known_causes:
            return self.known_causes[name]
        if reason := self._reason_to_end(name, intent) or intent.end_reason:
            return _ended_by_us(reason)
        if words := view.lost.words(pod.spec.node_name):
            return Cause(failure="NODE_LOST", message=words)
        return Cause(failure="DELETED", message=f"pod {name} deleted", vanished=True)


def is_beyond_reach(pod: Pod, view: View) -> bool:
    """Whether the pod is being deleted, and nobody will ever tell that it is over."""
    deadline = unix_s(pod.metadata.deletion_timestamp)
    if deadline is None:
        return False
    return view.lost.words(pod.spec.node_name) != "" or view.now > deadline + OVERDUE_S


def _cause_of_unconfirmed(pod: Pod, reason: str, view: View) -> Cause:
    words = view.lost.words(pod.spec.node_name)
    if not words and reason:
        # Such as what an old cluster put in the place of a pod that somebody deleted: the node is well.
        return _ended_by_us(reason)
    return Cause(failure="NODE_LOST", message=words or "its node does not confirm that the pod has ended")


def _ended_by_us(words: str, exit_code: int | None = None) -> Cause:
    """By an order, or because another pod had failed."""
    return Cause(exit_code=exit_code, failure="DELETED", message=words, is_consequence=True)


def _is_deleted(pod: Pod) -> bool:
    return pod.metadata.deletion_timestamp is not None


def _deleted_by_somebody(pod: Pod, view: View) -> Cause:
    if words := view.lost.words(pod.spec.node_name):
        return Cause(failure="NODE_LOST", message=words)
    is_transient = any(
        condition.type == "DisruptionTarget" and condition.reason in _TRANSIENT for condition in pod.status.conditions
    )
    words = disruption_of(pod) or DELETED
    never_ran = phase_of(pod) in ("ASSIGNED", "PULLING")
    kind: FailureKind = "NODE_LOST" if is_transient and not never_ran else "ABORTED" if is_transient else "DELETED"
    return Cause(failure=kind, message=words)
