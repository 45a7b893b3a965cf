"""Gangs that do not become whole: some of their pods find no node, and the others hold slots for nothing.

The plan saw room for all of them, and then somebody else took it, or a node went. A scheduler or a gate in the cluster
that holds back all pods of a gang until there is room for each may take as long as it likes: the time begins when it
lets the first of them go.
"""

from __future__ import annotations

from services.launcher.backends.kubernetes.allocations.state.intent import Intent
from services.launcher.backends.kubernetes.allocations.state.observed_state import ObservedState
from services.launcher.backends.kubernetes.allocations.state.pods import is_scheduled, waits_for
from services.launcher.backends.kubernetes.allocations.state.view import View


def unplaced(observed: ObservedState, intent: Intent, view: View) -> str:
    """What to say of a gang that has had its time; empty for any other allocation."""
    due = placed_by(observed, intent, view)
    if due is None or view.now < due:
        return ""
    pods = [observed.pods[name] for name in sorted(observed.pods)]
    waiting = [pod for pod in pods if not is_scheduled(pod)]
    words = [waits_for(pod) for pod in waiting]
    if observed.quota_blocked:
        words.append("the quota of its namespace is used up")
    said = next((f"; {each}" for each in words if each), "")
    placed = len(pods) - len(waiting)
    return f"{placed} of {observed.num_pods} within {view.gang_grace_s:g} seconds{said}"


def placed_by(observed: ObservedState, intent: Intent, view: View) -> float | None:
    """When all pods of a gang should have a node (Unix time, seconds); None where that is not waited for."""
    since = observed.placed_since
    if observed.num_pods < 2 or since is None or observed.ended or intent.is_end_requested or observed.out_of_sight:
        return None
    is_whole = sum(is_scheduled(pod) for pod in observed.pods.values()) >= observed.num_pods
    return None if is_whole else since + view.gang_grace_s
