"""Generated pods and patches for them, drawn from a ``random.Random``.

Everything is valid for the Kubernetes types, so that kubectl can read it; no list repeats its merge key, since there
even a patch of the same type is not the same twice.
"""

from __future__ import annotations

import random
from collections.abc import Callable, Sequence
from typing import Any, Final, TypeAlias

Object: TypeAlias = dict[str, Any]
Draw: TypeAlias = Callable[[random.Random], Any]

NAMES: Final = ("a", "b", "c", "d", "e")
PATHS: Final = ("/p", "/q", "/r", "/s")
KEYS: Final = {
    "containers": "name",
    "initContainers": "name",
    "volumes": "name",
    "imagePullSecrets": "name",
    "env": "name",
    "volumeMounts": "mountPath",
}
"""Lists to whose elements patches put directives."""


def word(rng: random.Random) -> str:
    return rng.choice(("x", "y", "z"))


def flag(rng: random.Random) -> bool:
    return rng.choice((True, False))


def words(rng: random.Random) -> list[str]:
    return [word(rng) for _ in range(rng.randint(0, 2))]


def labels(rng: random.Random) -> Object:
    return {name: word(rng) for name in rng.sample(NAMES, rng.randint(0, 3))}


def some(**fields: Draw) -> Draw:
    """Objects with two thirds of the fields."""
    return lambda rng: {name: draw(rng) for name, draw in fields.items() if rng.randint(0, 2)}


def keyed(key: str, identities: Sequence[Any], **fields: Draw) -> Draw:
    """Lists of objects with different values of ``key``."""

    def draw(rng: random.Random) -> list[Object]:
        chosen = rng.sample(identities, rng.randint(0, min(4, len(identities))))
        return [{key: identity, **some(**fields)(rng)} for identity in chosen]

    return draw


def listed(element: Draw) -> Draw:
    return lambda rng: [element(rng) for _ in range(rng.randint(0, 2))]


CONTAINERS = keyed(
    "name",
    NAMES,
    image=word,
    args=words,
    tty=flag,
    env=keyed("name", NAMES, value=word),
    envFrom=listed(lambda rng: {"secretRef": {"name": word(rng)}}),
    ports=keyed("containerPort", (80, 81, 82), name=word, protocol=lambda rng: rng.choice(("TCP", "UDP"))),
    volumeMounts=keyed("mountPath", PATHS, name=word, readOnly=flag),
    resources=some(limits=labels, requests=labels),
    securityContext=some(privileged=flag, capabilities=some(add=words, drop=words)),
)
SPEC = some(
    containers=CONTAINERS,
    initContainers=CONTAINERS,
    volumes=keyed(
        "name",
        NAMES,
        emptyDir=some(medium=word),
        hostPath=some(path=word),
        projected=some(sources=listed(lambda rng: {"secret": {"name": word(rng)}})),
    ),
    tolerations=listed(some(key=word, operator=lambda _: "Exists")),
    nodeSelector=labels,
    imagePullSecrets=keyed("name", NAMES),
    hostAliases=keyed("ip", ("10.0.0.1", "10.0.0.2"), hostnames=words),
    topologySpreadConstraints=keyed("topologyKey", NAMES, maxSkew=lambda rng: rng.randint(1, 3)),
    schedulingGates=keyed("name", NAMES),
    hostIPC=flag,
    hostname=word,
    securityContext=some(runAsUser=lambda rng: rng.randint(0, 3), supplementalGroups=lambda rng: [rng.randint(0, 3)]),
)
METADATA = some(
    labels=labels,
    annotations=labels,
    finalizers=lambda rng: rng.sample(NAMES, rng.randint(0, 3)),
)


def random_pod(rng: random.Random) -> Object:
    return {"metadata": METADATA(rng), "spec": SPEC(rng)}


def random_patch(rng: random.Random, base: Object) -> Object:
    """Another pod, with nulls and directives put in where ``base`` has something that they can act on."""
    patch = random_pod(rng)
    for part in ("metadata", "spec"):
        _add_directives(rng, base[part], patch[part])
    return patch


def _add_directives(rng: random.Random, base: Object, patch: Object) -> None:
    for field, below in base.items():
        match rng.randint(0, 12), below:
            case 0, _:
                patch[field] = None
            case 1, dict():
                patch[field] = {**(patch.get(field) or {}), "$patch": rng.choice(("replace", "delete"))}
            case ((1 | 2), [_, *_]) if field in KEYS:
                _delete_element(rng, field, below, patch)
            case 3, [_, *_] if field in KEYS:
                patch[field] = [*patch.get(field, []), {KEYS[field]: "ignored", "$patch": "replace"}]
            case ((4 | 5), [_, *_]) if field in KEYS:
                _set_order(rng, field, below, patch)
            case ((1 | 2 | 3 | 4), [first, *_]) if field == "finalizers":
                patch[f"$deleteFromPrimitiveList/{field}"] = [first]
                patch[field] = [value for value in patch.get(field, []) if value != first]
            case _, dict() if isinstance(patch.get(field), dict):
                _add_directives(rng, below, patch[field])
            case _, [_, *_] if field in KEYS:
                _add_to_elements(rng, field, below, patch.get(field, []))


def _delete_element(rng: random.Random, field: str, below: list[Object], patch: Object) -> None:
    key = KEYS[field]
    gone = rng.choice(below)[key]
    others = [element for element in patch.get(field, []) if element[key] != gone]
    patch[field] = [*others, {key: gone, "$patch": "delete"}]


def _set_order(rng: random.Random, field: str, below: list[Object], patch: Object) -> None:
    """An order of what the patch has and some of what the base has, and the patch's own list brought into it."""
    key = KEYS[field]
    own = [element[key] for element in patch.get(field, [])]
    known = [element[key] for element in below if element[key] not in own]
    order = rng.sample([*own, *known], len(own) + len(known))
    shown = [identity for identity in order if identity in own or rng.randint(0, 2)]
    patch[f"$setElementOrder/{field}"] = [{key: identity} for identity in shown]
    if own:
        patch[field] = sorted(patch[field], key=lambda element: order.index(element[key]))


def _add_to_elements(rng: random.Random, field: str, below: list[Object], patched: list[Object]) -> None:
    key = KEYS[field]
    below_by_key = {element[key]: element for element in below}
    for element in patched:
        known = {name: value for name, value in below_by_key.get(element[key], {}).items() if name != key}
        if known and rng.randint(0, 2) == 0:
            element["$retainKeys"] = list(element)
        elif known:
            _add_directives(rng, known, element)
