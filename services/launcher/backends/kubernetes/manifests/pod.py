"""The template of a task's pods: what the user asked for, with our containers in it and our restrictions over it.

Source: docs/reference/kubernetes.md 3.2, 3.10 to 3.12, 5 and 6.
"""

from __future__ import annotations

from typing import Any, Final

from msgspec import Struct

from libs.errors import InvalidRequest
from libs.events.orders import TaskSpec
from services.launcher.backends.kubernetes.manifests.coscheduling import gang_labels
from services.launcher.backends.kubernetes.manifests.files.archives import Contents
from services.launcher.backends.kubernetes.manifests.files.volumes import volumes
from services.launcher.backends.kubernetes.manifests.fluent_bit import END_S, fluent_container
from services.launcher.backends.kubernetes.manifests.job_parts import JobPart, written
from services.launcher.backends.kubernetes.manifests.main_container import init_container, main_container
from services.launcher.backends.kubernetes.manifests.names import (
    FLUENT,
    INIT,
    JOB_NAME_LABEL,
    JOBS,
    MAIN,
    labels,
    notes,
    registry_secret,
)
from services.launcher.backends.kubernetes.manifests.placement import placed
from services.launcher.backends.kubernetes.manifests.pod_fields import object_at, objects_at, texts_at
from services.launcher.backends.kubernetes.manifests.traits import PoolTraits, user_pod
from services.launcher.backends.kubernetes.manifests.variables import variables

Json = dict[str, Any]

TERMINATION_GRACE_S: Final = 60
"""Between SIGTERM and SIGKILL, for pods whose spec says nothing: longer than any order asks for, which can only
shorten it."""
_HOST: Final = "host"
_ADMINISTRATORS: Final = ("automountServiceAccountToken", "enableServiceLinks")
"""Fields that are false unless the administrator's defaults set them."""
_MAIN_PATH: Final = f"spec.containers[{MAIN}]"


class PodTemplate(Struct, frozen=True, kw_only=True):
    pod: Json
    """``metadata`` and ``spec``."""
    secrets: dict[str, str]
    """Values, in base64, that variables of the pod take from the Secret ``secret``."""


def pod_template(
    spec: TaskSpec,
    traits: PoolTraits,
    files: Contents,
    *,
    allocation: str,
    name: str,
    secret: str,
    priority_class: str | None,
    parts: tuple[JobPart, ...] = (),
) -> PodTemplate:
    """The template of all pods of a Job.

    name            of the Job
    parts           all Jobs of the allocation, where there are several
    secret          name of its ConfigMap and its Secret
    priority_class  where the user's pod names none
    Raises InvalidRequest.
    """
    user = user_pod(spec, traits)
    wanted = object_at(user, "spec")
    containers = objects_at(wanted, "containers", "spec")
    own = next((container for container in containers if container.get("name") == MAIN), {})
    mounted = volumes(
        spec,
        traits,
        files,
        config_map=secret,
        secret=secret,
        user_mounts=[str(mount.get("mountPath")) for mount in objects_at(own, "volumeMounts", _MAIN_PATH)],
    )
    environment = variables(
        spec, allocation=allocation, traits=traits, secret=secret, user_entries=objects_at(own, "env", _MAIN_PATH)
    )
    others = [container for container in containers if container.get("name") != MAIN]
    before = objects_at(wanted, "initContainers", "spec")
    _refuse_ours([*others, *before])
    if traits.ships == "fluent-bit":
        shipper = fluent_container(spec, traits, allocation=allocation, secret=secret)
        (before if traits.has_native_sidecars else others).append(shipper)
    pod_spec = {
        **wanted,
        "restartPolicy": "Never",
        "affinity": placed(
            wanted,
            cluster_id=traits.cluster_id,
            blocked_nodes=spec.blocked_nodes,
            nodes=spec.pod_nodes or (spec.nodes if traits.sees_nodes else ()),
            preferred=spec.preferred_nodes if traits.sees_nodes else (),
        ),
        "initContainers": [*before, init_container(spec, archives=files.archives, mounts=mounted.init)],
        "containers": [*others, main_container(spec, traits, own, env=environment.entries, mounts=mounted.main)],
        "volumes": [*objects_at(wanted, "volumes", "spec"), *mounted.volumes],
        **_pod_wide(spec, traits, wanted, priority_class),
    }
    if spec.environment.registry_auth:
        pull = objects_at(wanted, "imagePullSecrets", "spec")
        pod_spec["imagePullSecrets"] = [*pull, {"name": registry_secret(secret)}]
    metadata = object_at(user, "metadata")
    ours = {**labels(spec, allocation, pool=traits.pool, cluster_id=traits.cluster_id), JOB_NAME_LABEL: name}
    gang = gang_labels(
        spec, traits, scheduler=str(pod_spec.get("schedulerName", "")), job=parts[0].name if parts else name
    )
    others_noted = {JOBS: written(parts)} if parts else {}
    pod = {
        "metadata": {
            "labels": {**gang, **texts_at(metadata, "labels", "metadata"), **ours},
            "annotations": {**texts_at(metadata, "annotations", "metadata"), **notes(spec, allocation), **others_noted},
        },
        "spec": pod_spec,
    }
    return PodTemplate(pod=pod, secrets=environment.secrets)


def _pod_wide(spec: TaskSpec, traits: PoolTraits, wanted: Json, priority_class: str | None) -> Json:
    """Fields of the pod as a whole, where the user's pod has none or may not have any."""
    is_host = spec.network_mode == _HOST
    fields: Json = {"hostNetwork": is_host}
    for field in _ADMINISTRATORS:
        # Nobody else gives tasks a token of the API server, or the addresses of what runs beside them.
        fields[field] = traits.allows(spec, field) and wanted.get(field) is not False
    if is_host and not wanted.get("dnsPolicy"):
        fields["dnsPolicy"] = "ClusterFirstWithHostNet"  # or the master's name would not be known
    if wanted.get("terminationGracePeriodSeconds") is None:
        fields["terminationGracePeriodSeconds"] = max(TERMINATION_GRACE_S, traits.shipper.grace_s + END_S)
    if not wanted.get("schedulerName") and traits.default_scheduler:
        fields["schedulerName"] = traits.default_scheduler
    if not wanted.get("priorityClassName") and priority_class is not None:
        fields["priorityClassName"] = priority_class
    return fields


def _refuse_ours(containers: list[Json]) -> None:
    for container in containers:
        if container.get("name") in (MAIN, INIT, FLUENT):
            raise InvalidRequest(f"environment.pod_spec: the container name {container['name']!r} is taken")
