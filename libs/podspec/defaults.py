"""What users' pods may do with the containers and volumes of an administrator's defaults: use them as they are. Pure.

Layers of a pod are merged by name. A user's container with the name of an administrator's one would therefore give it
another image or command, and a user's mount could reach what the administrator mounts read-only, or only a part of.
Whoever takes a container or a volume out of the pod changes nothing of it, and may do so.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any, Final

from libs.podspec.refusals import MAIN_CONTAINER
from libs.podspec.standards import NodeRules, is_allowed_field, is_below
from libs.podspec.traversal import Json, objects_in

_KINDS: Final = ("containers", "initContainers")


def changes_of_defaults(defaults: Json, pod: Json, rules: NodeRules) -> list[str]:
    """A sentence for everything of the administrator's that ``pod`` changes or uses otherwise: the field, the setting.

    defaults  pod of the administrator, without directives
    pod       what users wrote, merged over it
    """
    before, after = _spec(defaults), _spec(pod)
    found = [*_containers(before, after), *_volumes(before, after), *_mounts(before, after)]
    return [
        f"{path} {message}; security.pod_fields can allow {field}"
        for path, field, message in found
        if not is_allowed_field(field, rules.fields)
    ]


def _containers(before: Json, after: Json) -> Iterator[tuple[str, str, str]]:
    for kind in _KINDS:
        for name, own in _named(before, kind).items():
            if name != MAIN_CONTAINER and _named(after, kind).get(name, own) != own:
                yield f"spec.{kind}[{name}]", f"spec.{kind}", "changes a container of the administrator"


def _volumes(before: Json, after: Json) -> Iterator[tuple[str, str, str]]:
    for name, own in _named(before, "volumes").items():
        if _named(after, "volumes").get(name, own) != own:
            yield f"spec.volumes[{name}]", "spec.volumes", "changes a volume of the administrator"


def _mounts(before: Json, after: Json) -> Iterator[tuple[str, str, str]]:
    """Mounts of volumes that the administrator mounts somewhere; volumes that nobody mounts are there for users."""
    owns = _named(before, "volumes")
    allowed = [
        mount
        for kind in _KINDS
        for container in _named(before, kind).values()
        for _, mount in objects_in(container, "volumeMounts")
        if str(mount.get("name")) in owns
    ]
    limited = {str(mount["name"]) for mount in allowed}
    for kind in _KINDS:
        for _, container in objects_in(after, kind):
            name = str(container.get("name"))
            if name != MAIN_CONTAINER and name in _named(before, kind):
                continue  # the administrator's own, which is compared as a whole
            for _, mount in objects_in(container, "volumeMounts"):
                if str(mount.get("name")) in limited and not any(_is_within(mount, each) for each in allowed):
                    yield (
                        f"spec.{kind}[{name}].volumeMounts[{mount.get('mountPath')}]",
                        f"spec.{kind}.volumeMounts",
                        f"mounts more of the volume {mount.get('name')} than the administrator does "
                        "(readOnly, subPath, subPathExpr)",
                    )


def _is_within(mount: Json, allowed: Json) -> bool:
    """Whether a mount shows no more of its volume than ``allowed``, and lets no more be written."""
    if mount.get("name") != allowed.get("name") or (allowed.get("readOnly") and not mount.get("readOnly")):
        return False
    if allowed.get("recursiveReadOnly") not in (None, "Disabled", mount.get("recursiveReadOnly")):
        return False
    if allowed.get("subPathExpr"):
        return bool(mount.get("subPathExpr") == allowed["subPathExpr"]) and not mount.get("subPath")
    if allowed.get("subPath"):
        return is_below(str(mount.get("subPath") or ""), [str(allowed["subPath"])]) and not mount.get("subPathExpr")
    return True


def _spec(pod: Json) -> Json:
    spec = pod.get("spec")
    return spec if isinstance(spec, Mapping) else {}


def _named(spec: Json, field: str) -> dict[str, Any]:
    return {str(item.get("name")): item for _, item in objects_in(spec, field)}
