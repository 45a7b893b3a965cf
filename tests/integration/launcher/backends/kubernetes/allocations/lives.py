"""Lives of allocations, drawn at random: what simulated nodes do to their pods, what is ordered, and how they must end.

Every life says what the only true end of it is, whatever happens to the launcher meanwhile.
"""

from __future__ import annotations

import random
from collections.abc import Callable, Mapping, Sequence

from msgspec import Struct

from libs.events.observations import AllocationObserved, ObservedPod

End = Callable[[AllocationObserved], bool]


class Life(Struct, frozen=True, kw_only=True):
    kind: str
    is_true: End
    """Whether an allocation of this life may have ended like this."""
    notes: Mapping[str, str] = {}
    """For the simulated nodes."""
    num_pods: int = 1
    stop_after_s: float | None = None
    """After it was ordered to run."""
    withdraw_after_s: float | None = None
    """Of an order whose end nobody waits for."""
    rest_s: float = 0.0
    """Between its end and the withdrawal of its order."""


def exits(code: int) -> End:
    """By itself, all pods with the same code; where that is a failure, others may have been ended because of it."""

    def is_true(seen: AllocationObserved) -> bool:
        own = [pod for pod in seen.pods if pod.exit_code == code and pod.failure == ("FAILED" if code else "")]
        # Of a gang that failed, pods that were ended meanwhile may have gone before any launcher saw them.
        is_whole = bool(own) if code else len(own) == seen.num_pods
        return is_whole and _are_explained(seen, own) and not (seen.stopped or seen.failure)

    return is_true


def fails(failure: str, words: str, code: int | None = None) -> End:
    def is_true(seen: AllocationObserved) -> bool:
        own = [pod for pod in seen.pods if (pod.failure, pod.exit_code) == (failure, code) and words in pod.message]
        return len(own) == 1 and _are_explained(seen, own) and not (seen.stopped or seen.failure)

    return is_true


def _are_explained(seen: AllocationObserved, own: Sequence[ObservedPod]) -> bool:
    """Whether all other pods were ended, or never begun, because of these. Kubernetes before 1.23 makes some that are
    not needed any more."""
    others = [pod for pod in seen.pods if pod not in own]
    return all(pod.failure == "DELETED" and "ended because" in pod.message for pod in others)


def was_stopped(seen: AllocationObserved) -> bool:
    return seen.stopped and not seen.failure


def anything(_seen: AllocationObserved) -> bool:
    return True


def draw(rng: random.Random) -> Life:
    """The life of one allocation."""
    notes = {"start-seconds": f"{rng.choice([0.05, 0.05, rng.uniform(0.1, 2.0)]):.2f}"}
    brief = {**notes, "run-seconds": f"{rng.uniform(0.05, 4.0):.2f}"}
    rest_s = rng.choice([0.0, rng.uniform(0.0, 6.0)])
    after_s = rng.choice([rng.uniform(0.0, 0.3), rng.uniform(0.3, 5.0)])
    code = rng.choice([0, 0, 0, 1, 2, 7, 137, 143])
    ended = {**brief, "exit-code": str(code)}
    kind = rng.choices(list(_KINDS), weights=list(_KINDS.values()))[0]
    match kind:
        case "exits":
            return Life(kind=f"exits {code}", is_true=exits(code), notes=ended, rest_s=rest_s)
        case "gang exits":
            return Life(kind=f"gang exits {code}", is_true=exits(code), notes=ended, num_pods=2, rest_s=rest_s)
        case "killed for its memory":
            is_true = fails("FAILED", "OOMKilled", 137)
            return Life(kind=kind, is_true=is_true, notes={**brief, "fail": "OOMKilled"}, rest_s=rest_s)
        case "evicted":
            is_true = fails("DELETED", "Evicted: The node was low on resource: memory.")
            return Life(kind=kind, is_true=is_true, notes={**brief, "fail": "Evicted"}, rest_s=rest_s)
        case "has no image":
            is_true = fails("IMAGE_PULL", "unrecoverable image pull errors")
            return Life(kind=kind, is_true=is_true, notes={**notes, "fail": "ImagePullBackOff"}, rest_s=rest_s)
        case "stopped":
            pods = rng.choice([1, 1, 2])
            return Life(kind=kind, is_true=was_stopped, notes=notes, num_pods=pods, stop_after_s=after_s, rest_s=rest_s)
        case "withdrawn":
            return Life(kind=kind, is_true=anything, notes=notes, withdraw_after_s=after_s)
    raise AssertionError(kind)


_KINDS = {
    "exits": 45,
    "gang exits": 15,
    "killed for its memory": 5,
    "evicted": 5,
    "has no image": 5,
    "stopped": 15,
    "withdrawn": 10,
}
"""Kinds of lives, and how often each is drawn."""
