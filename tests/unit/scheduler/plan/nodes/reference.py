"""Whether a pod may run on a node, read off the objects as the API has them: slow, plain, and said otherwise."""

from __future__ import annotations

import re
from typing import Any

Json = dict[str, Any]

UNITS = {"m": 0.001, "": 1, "k": 1000, "Ki": 1024, "Mi": 1024**2, "Gi": 1024**3}


def runs(pod: Json, node: Json) -> bool:
    """``node`` is empty."""
    return (
        is_ready(node)
        and has_no_taint_against(pod, node)
        and is_selected(pod, node)
        and is_large_enough(pod, node["status"]["allocatable"])
    )


def is_ready(node: Json) -> bool:
    return bool(node["status"]["ready"])


def has_no_taint_against(pod: Json, node: Json) -> bool:
    taints = list(node["spec"]["taints"])
    if node["spec"]["unschedulable"]:
        taints.append({"key": "node.kubernetes.io/unschedulable", "value": "", "effect": "NoSchedule"})
    for taint in taints:
        if taint["effect"] == "PreferNoSchedule":
            continue
        # Added by admission: to every pod, and to pods that request an extended resource.
        is_of_state = taint["key"] in ("node.kubernetes.io/not-ready", "node.kubernetes.io/unreachable")
        if is_of_state and taint["effect"] == "NoExecute":
            continue
        if "/" in taint["key"] and requests(pod).get(taint["key"]):
            continue
        for toleration in pod["spec"].get("tolerations", []):
            same_key = toleration.get("key", "") in ("", taint["key"])
            same_effect = toleration.get("effect", "") in ("", taint["effect"])
            any_value = toleration.get("operator") == "Exists"
            same_value = (
                toleration.get("operator", "Equal") == "Equal" and toleration.get("value", "") == taint["value"]
            )
            if same_key and same_effect and (any_value or same_value):
                break
        else:
            return False
    return True


def is_selected(pod: Json, node: Json) -> bool:
    labels = node["metadata"]["labels"]
    for key, value in pod["spec"].get("nodeSelector", {}).items():
        if key not in labels or labels[key] != value:
            return False
    affinity = pod["spec"].get("affinity")
    if affinity is None:
        return True
    terms = affinity["nodeAffinity"]["requiredDuringSchedulingIgnoredDuringExecution"]["nodeSelectorTerms"]
    for term in terms:
        asked = [holds(each, labels) for each in term.get("matchExpressions", [])]
        asked += [holds(each, {"metadata.name": node["metadata"]["name"]}) for each in term.get("matchFields", [])]
        if asked and False not in asked:
            return True
    return False


def holds(asked: Json, labels: Json) -> bool:
    key, operator, values = asked["key"], asked["operator"], asked.get("values", [])
    there = key in labels
    if operator == "Exists":
        return there
    if operator == "DoesNotExist":
        return not there
    if operator == "In":
        return there and labels[key] in values
    if operator == "NotIn":
        return not (there and labels[key] in values)
    if not there or not re.fullmatch(r"-?\d+", labels[key]) or not re.fullmatch(r"-?\d+", values[0]):
        return False
    return int(labels[key]) > int(values[0]) if operator == "Gt" else int(labels[key]) < int(values[0])


def is_large_enough(pod: Json, allocatable: Json) -> bool:
    if amount(allocatable.get("pods", "0")) < 1:
        return False
    return all(wanted <= amount(allocatable.get(name, "0")) for name, wanted in requests(pod).items() if wanted)


def requests(pod: Json) -> dict[str, float]:
    """The most that runs at one time: each init container beside the sidecars before it, then everything that stays."""
    spec = pod["spec"]
    moments = []
    sidecars: list[Json] = []
    for container in spec.get("initContainers", []):
        if container.get("restartPolicy") == "Always":
            sidecars.append(container)
            moments.append(list(sidecars))
        else:
            moments.append([*sidecars, container])
    moments.append([*sidecars, *spec["containers"]])
    names = {name for moment in moments for container in moment for name in of_container(container)}
    found = {}
    for name in {*names, *spec.get("overhead", {})}:
        most = max(sum(of_container(container).get(name, 0) for container in moment) for moment in moments)
        found[name] = most + amount(spec.get("overhead", {}).get(name, "0"))
    return found


def of_container(container: Json) -> dict[str, float]:
    resources = container.get("resources", {})
    found = {name: amount(value) for name, value in resources.get("limits", {}).items()}
    found.update({name: amount(value) for name, value in resources.get("requests", {}).items()})
    return found


def amount(text: str) -> float:
    number, unit = re.fullmatch(r"(\d+)([a-zA-Z]*)", text).groups()  # type: ignore[union-attr]
    return int(number) * UNITS[unit]
