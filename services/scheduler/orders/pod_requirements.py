"""Reads what the pods of a task need of nodes from its merged pod spec, before there is a pod, for plans to honour.

What the API server would refuse counts as if it were not there: the launcher says what is wrong when it makes the pod.
Unknown here are a RuntimeClass with its overhead, and what a LimitRange adds.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Final

from libs.cluster.config import ClusterConfig
from libs.podspec import MAIN_CONTAINER, InvalidPodPatch, task_pod
from libs.podspec.pod_requests import Requests, container_requests, pod_requests
from libs.podspec.quantities import units
from services.scheduler.plan.nodes.amounts import CPU, Amounts, added, amounts
from services.scheduler.plan.nodes.requirements import PodRequirements, SlotResource
from services.scheduler.plan.nodes.selectors import SelectorRequirement, SelectorTerm
from services.scheduler.plan.nodes.taints import Toleration

Json = Mapping[str, Any]

_REQUIRED: Final = "requiredDuringSchedulingIgnoredDuringExecution"
_ADMITTED: Final = (
    Toleration("node.kubernetes.io/not-ready", "Exists", effect="NoExecute"),
    Toleration("node.kubernetes.io/unreachable", "Exists", effect="NoExecute"),
)
"""That the admission plugin DefaultTolerationSeconds gives every pod."""
_POD_LEVEL: Final = ("cpu", "memory")
"""Resources, beside huge pages, that a pod may request as a whole."""


def task_requirements(
    task_type: str,
    pod_spec: dict[str, Any] | None,
    *,
    cluster: ClusterConfig,
    pool: str,
    slots: int,
    launcher_requests: Amounts = (),
) -> PodRequirements:
    """The requirements of each pod of a task in a pool; none where tasks are processes.

    pod_spec           what is stored of the task, in its ``environment``
    slots              of one pod
    launcher_requests  of the containers that the launcher adds to the pod, as it reports them
    """
    if not cluster.resource_manager.is_kubernetes:
        return PodRequirements()
    try:
        pod = task_pod(task_type, cluster.pod_defaults(pool, has_slots=slots > 0), pod_spec)
    except InvalidPodPatch:
        pod = {}  # there will be no such pod: the launcher says what is wrong with it
    return pod_requirements(pod, slots=slots, slot=slot_of(cluster, pool), launcher_requests=launcher_requests)


def slot_of(cluster: ClusterConfig, pool: str) -> SlotResource:
    """What a slot of a pool is to Kubernetes."""
    if cluster.slot_type == "cpu":
        return SlotResource(CPU, int(cluster.resource_manager.slot_resource_requests.cpu * 1000))
    return SlotResource(cluster.slot_resource(pool))


def pod_requirements(
    pod: Json, *, slots: int, slot: SlotResource | None, launcher_requests: Amounts = ()
) -> PodRequirements:
    """The requirements of each pod of a task.

    pod                the merged pod, ``metadata`` and ``spec``, without directives
    slots              of one pod
    slot               what a slot is; None where it is nothing that Kubernetes counts
    launcher_requests  of the containers that the launcher adds to the pod
    """
    spec = _object(pod.get("spec"))
    has_slots = slots > 0 and slot is not None
    requests = _requests(spec, slots=slots, slot=slot, launcher_requests=launcher_requests)
    return PodRequirements(
        node_selector=tuple(sorted((str(key), str(value)) for key, value in _object(spec.get("nodeSelector")).items())),
        affinity=_affinity(spec),
        tolerations=_tolerations(spec, requests),
        requests=requests,
        slot=slot if has_slots else None,
    )


def _affinity(spec: Json) -> tuple[SelectorTerm, ...] | None:
    node_affinity = _object(_object(spec.get("affinity")).get("nodeAffinity"))
    required = node_affinity.get(_REQUIRED)
    if not isinstance(required, Mapping):
        return None
    return tuple(
        SelectorTerm(_selectors(term.get("matchExpressions")), _selectors(term.get("matchFields")))
        for term in _objects(required.get("nodeSelectorTerms"))
    )


def _selectors(value: Any) -> tuple[SelectorRequirement, ...]:
    return tuple(
        SelectorRequirement(_text(each, "key"), _text(each, "operator"), _texts(each.get("values")))
        for each in _objects(value)
    )


def _tolerations(spec: Json, requests: Amounts) -> tuple[Toleration, ...]:
    """The pod's own, and those that the API server adds.

    The admission plugin ExtendedResourceToleration, where it is switched on, lets pods with a GPU tolerate the taint of
    nodes that have it. Whether it is cannot be asked, so it is assumed: a pod is rather tried than held back for ever.
    """
    own = tuple(
        Toleration(
            _text(each, "key"), _text(each, "operator") or "Equal", _text(each, "value"), effect=_text(each, "effect")
        )
        for each in _objects(spec.get("tolerations"))
    )
    of_resources = tuple(Toleration(name, "Exists") for name, _ in requests if "/" in name)
    return tuple(dict.fromkeys((*own, *of_resources, *_ADMITTED)))


def _requests(spec: Json, *, slots: int, slot: SlotResource | None, launcher_requests: Amounts) -> Amounts:
    """Of the whole pod."""
    containers = _objects(spec.get("containers"))
    main = next((each for each in containers if each.get("name") == MAIN_CONTAINER), {})
    running = [_of_main(main, slots=slots, slot=slot), dict(launcher_requests)]
    running += [_of_container(each) for each in containers if each.get("name") != MAIN_CONTAINER]
    starting = [
        (_of_container(each), each.get("restartPolicy") == "Always") for each in _objects(spec.get("initContainers"))
    ]
    whole = pod_requests(running, starting, {})
    whole.update(_of_pod_level(_object(spec.get("resources")), whole))
    return added(amounts(whole), amounts(container_requests(_quantities(spec.get("overhead")), {})))


def _of_main(container: Json, *, slots: int, slot: SlotResource | None) -> Requests:
    """The launcher says how many slots the container has; a task without slots must not help itself to one."""
    own = _of_container(container)
    if slot is not None:
        if slots > 0:
            own[slot.name] = slots * slot.amount
        elif slot.name != "cpu":
            own.pop(slot.name, None)
    return own


def _of_container(container: Json) -> Requests:
    resources = _object(container.get("resources"))
    return container_requests(_quantities(resources.get("requests")), _quantities(resources.get("limits")))


def _of_pod_level(resources: Json, of_containers: Mapping[str, int]) -> Requests:
    """What is requested for the pod as a whole, in place of what its containers do.

    A limit counts where nothing is requested for the pod or in it.
    Source: https://kubernetes.io/docs/tasks/configure-pod-container/assign-pod-level-resources/.
    """
    limits, requests = _quantities(resources.get("limits")), _quantities(resources.get("requests"))
    found = {name: value for name, value in limits.items() if name not in of_containers} | requests
    return {
        name: units(name, value) for name, value in found.items() if name in _POD_LEVEL or name.startswith("hugepages-")
    }


def _quantities(value: Any) -> dict[str, str | int | float]:
    return {
        str(name): each
        for name, each in _object(value).items()
        if isinstance(each, str | int | float) and not isinstance(each, bool)
    }


def _object(value: Any) -> Json:
    return value if isinstance(value, Mapping) else {}


def _objects(value: Any) -> list[Json]:
    return [each for each in value if isinstance(each, Mapping)] if isinstance(value, list) else []


def _text(item: Json, key: str) -> str:
    value = item.get(key)
    return "" if value is None else str(value)


def _texts(value: Any) -> tuple[str, ...]:
    return tuple(str(each) for each in value) if isinstance(value, list) else ()
