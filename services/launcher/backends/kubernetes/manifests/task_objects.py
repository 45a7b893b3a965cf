"""Everything that is created for an order: a Job, and what it owns; several Jobs where its pods differ in slots.

The Job comes first: the others name it as their owner from the beginning, so that deleting it removes all, and a
launcher that is killed between two steps leaves nothing that nobody would find. Source: docs/reference/kubernetes.md 1
to 3.
"""

from __future__ import annotations

import hashlib
from typing import Any

import msgspec
from msgspec import Struct

from libs.errors import InvalidRequest
from libs.events.orders import Order, TaskSpec
from services.launcher.backends.kubernetes.manifests.files.archives import check_size, contents, encoded_text
from services.launcher.backends.kubernetes.manifests.files.volumes import FLUENT_KEY
from services.launcher.backends.kubernetes.manifests.fluent_bit import fluent_config
from services.launcher.backends.kubernetes.manifests.job_parts import JobPart, job_parts, spec_of
from services.launcher.backends.kubernetes.manifests.names import (
    ALLOCATION_LABEL,
    JOB_NAME_LABEL,
    LAUNCHER_LABEL,
    MADE_OF,
    minor_labels,
    port_name,
    registry_secret,
    secret_name,
)
from services.launcher.backends.kubernetes.manifests.network_policy import network_policy
from services.launcher.backends.kubernetes.manifests.pod import pod_template
from services.launcher.backends.kubernetes.manifests.registry import KEY, TYPE, docker_config
from services.launcher.backends.kubernetes.manifests.traits import PoolTraits

Json = dict[str, Any]


class Manifests(Struct, frozen=True, kw_only=True):
    jobs: tuple[Json, ...]
    """The first owns everything else. There are several where pods differ in slots."""
    secrets: tuple[Json, ...]
    config_map: Json
    """To be created last: where it exists, everything does."""
    services: tuple[Json, ...] = ()
    network_policies: tuple[Json, ...] = ()
    """To be created before the ConfigMap, without which no container of the pods begins."""

    @property
    def name(self) -> str:
        return name_of(self.job)

    @property
    def job(self) -> Json:
        """The first."""
        return self.jobs[0]

    @property
    def made_of(self) -> str:
        return fingerprint_of(self.job)


def name_of(job: Json) -> str:
    name: str = job["metadata"]["name"]
    return name


def fingerprint_of(job: Json) -> str:
    fingerprint: str = job["metadata"]["annotations"][MADE_OF]
    return fingerprint


def manifests(order: Order, traits: PoolTraits, *, priority_class: str | None = None) -> Manifests:
    """The objects of an order, without owner references: in its namespace, or else in that of the pool.

    priority_class  of pods whose own spec names none
    Raises InvalidRequest for what Kubernetes would refuse in words that help nobody.
    """
    spec = order.spec
    if spec is None:
        raise InvalidRequest("the order says run, but not what")
    traits = msgspec.structs.replace(traits, namespace=order.namespace or traits.namespace)
    parts = job_parts(spec, order.allocation, traits.cluster_id)
    several = parts if len(parts) > 1 else ()
    name = parts[0].name
    files = contents(spec, traits)
    secret = secret_name(name, order.random_part)
    templates = [
        pod_template(
            spec_of(part, spec),
            traits,
            files,
            allocation=order.allocation,
            name=part.name,
            secret=secret,
            priority_class=priority_class,
            parts=several,
        )
        for part in parts
    ]
    template = templates[0]
    minor = minor_labels(order.allocation, pool=traits.pool, cluster_id=traits.cluster_id)
    public = dict(files.public)
    if traits.ships == "fluent-bit":
        public[FLUENT_KEY] = encoded_text(
            fluent_config(traits, pod_grace_s=template.pod["spec"]["terminationGracePeriodSeconds"])
        )
    private = {**files.private, **template.secrets}
    check_size("ConfigMap", public.values())
    check_size("Secret", private.values())
    secrets: list[Json] = [_object("Secret", secret, traits, minor, type="Opaque", data=private)]
    if spec.environment.registry_auth:
        data = {KEY: docker_config(spec.environment.registry_auth, spec.environment.image)}
        secrets.append(_object("Secret", registry_secret(secret), traits, minor, type=TYPE, data=data))
    return Manifests(
        jobs=tuple(
            _job(part, traits, each.pod, goes_by_itself=not several)
            for part, each in zip(parts, templates, strict=True)
        ),
        secrets=tuple(secrets),
        config_map=_object("ConfigMap", secret, traits, {**minor, JOB_NAME_LABEL: name}, binaryData=public),
        services=_services(spec, traits, name, minor) if _needs_services(spec, traits) else (),
        network_policies=(
            (network_policy(traits.task_network, name=name, namespace=traits.namespace, labels=minor),)
            if traits.task_network.policies
            else ()
        ),
    )


def owned(manifest: Json, *, job: str, uid: str) -> Json:
    """The object with its Job as owner; ``manifest`` is left unchanged."""
    owner = {"apiVersion": "batch/v1", "kind": "Job", "name": job, "uid": uid}
    return {**manifest, "metadata": {**manifest["metadata"], "ownerReferences": [owner]}}


def _job(part: JobPart, traits: PoolTraits, pod: Json, *, goes_by_itself: bool) -> Json:
    """
    goes_by_itself  the cluster removes it some time after it has finished. One of several Jobs stays as long as others
                    may run, which need what the first of them owns.
    """
    metadata: Json = pod["metadata"]
    job: Json = {
        "apiVersion": "batch/v1",
        "kind": "Job",
        "metadata": {"name": part.name, "namespace": traits.namespace, **metadata},
        "spec": {
            "parallelism": part.pods,
            "completions": part.pods,
            "backoffLimit": 0,
            **({"ttlSecondsAfterFinished": traits.finished_job_ttl_s} if goes_by_itself else {}),
            "template": {"metadata": metadata, "spec": pod["spec"]},
        },
    }
    fingerprint = hashlib.sha256(msgspec.json.encode(job)).hexdigest()[:16]
    return {**job, "metadata": {**job["metadata"], "annotations": {**metadata["annotations"], MADE_OF: fingerprint}}}


def _needs_services(spec: TaskSpec, traits: PoolTraits) -> bool:
    # A task of several pods cannot be reached through the gateway: its Services would lead to any of them.
    return traits.services or (traits.has_gateway and spec.num_pods == 1)


def _services(spec: TaskSpec, traits: PoolTraits, name: str, minor: dict[str, str]) -> tuple[Json, ...]:
    """One Service per proxied port (docs/reference/kubernetes.md 1, row 6)."""
    made = []
    for index, proxy in enumerate(spec.proxy_ports):
        service = _object(
            "Service",
            port_name(name, index),
            traits,
            minor,
            spec={
                "type": "ClusterIP",
                "selector": {key: minor[key] for key in (ALLOCATION_LABEL, LAUNCHER_LABEL)},
                "ports": [{"protocol": "TCP", "port": proxy.port}],
            },
        )
        service["metadata"]["annotations"] = {"determined.ai/job-name": name}
        made.append(service)
    return tuple(made)


def _object(kind: str, name: str, traits: PoolTraits, labels_: dict[str, str], **fields: Any) -> Json:
    metadata = {"name": name, "namespace": traits.namespace, "labels": labels_}
    return {"apiVersion": "v1", "kind": kind, "metadata": metadata, **fields}
