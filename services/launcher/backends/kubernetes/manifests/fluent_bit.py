"""fluent-bit beside the task: it reads what the capture wrapper writes, and brings it to the log intake.

On Kubernetes 1.29 and newer it is a native sidecar: the cluster starts it before the task, keeps it alive, and ends it
after the task, and a Job does not wait for it. On older ones it is a container like any other, and ends when the
launcher deletes the pod. Source: docs/reference/logs.md 13.3 to 13.8 and 13.11; https://docs.fluentbit.io/manual.
"""

from __future__ import annotations

import functools
from typing import Any, Final
from urllib.parse import urlsplit

import yaml

from libs.events.orders import TaskSpec
from libs.podspec.pod_requests import Requests, container_requests
from services.launcher.backends.kubernetes.manifests.files.volumes import (
    FLUENT_AT,
    FLUENT_KEY,
    FLUENT_VOLUME,
    LOGS_VOLUME,
)
from services.launcher.backends.kubernetes.manifests.main_container import identity, pull_policy
from services.launcher.backends.kubernetes.manifests.names import FLUENT
from services.launcher.backends.kubernetes.manifests.traits import PoolTraits
from services.launcher.backends.kubernetes.manifests.variables import SESSION_TOKEN, field_ref
from services.launcher.backends.kubernetes.settings import ShipperSettings
from services.launcher.container.paths import LOG_DIR
from services.launcher.container.settings import NO_VERIFICATION, TaskSettings

Json = dict[str, Any]

END_S: Final = 5
"""Between the time that fluent-bit takes for its last lines, and the end of its pod."""
_REQUESTS: Final = {"cpu": "10m", "memory": "32Mi"}
_SAY_AGAIN_S: Final = 300
"""How soon the same error is told again."""
_STATE: Final = f"{LOG_DIR}/.flb"
_CA_FILE: Final = f"{FLUENT_AT}-ca/master.crt"


def sidecar_requests(traits: PoolTraits) -> Requests:
    """What the sidecar requests in each pod; nothing where there is none."""
    return container_requests(_REQUESTS, {}) if traits.ships == "fluent-bit" else {}


def fluent_container(spec: TaskSpec, traits: PoolTraits, *, allocation: str, secret: str) -> Json:
    """The sidecar; ``determined-fluent-container``, as it was called when the reference had one."""
    user = identity(spec)
    if traits.shipper.uid is not None:
        user["runAsUser"] = traits.shipper.uid
    if traits.shipper.gid is not None:
        user["runAsGroup"] = traits.shipper.gid
    container: Json = {
        "name": FLUENT,
        "image": traits.shipper.image,
        "imagePullPolicy": pull_policy(spec),
        "command": ["/fluent-bit/bin/fluent-bit", "-c", f"{FLUENT_AT}/{FLUENT_KEY}"],
        "env": [
            {"name": "DET_LOG_TOKEN", "valueFrom": {"secretKeyRef": {"name": secret, "key": SESSION_TOKEN}}},
            {"name": "DET_ALLOCATION_ID", "value": allocation},
            field_ref("POD_NAME", "metadata.name"),
            field_ref("NODE_NAME", "spec.nodeName"),
        ],
        "resources": {"requests": dict(_REQUESTS), "limits": {"memory": "128Mi"}},
        "securityContext": user,
        "volumeMounts": [
            {"name": LOGS_VOLUME, "mountPath": LOG_DIR},
            {"name": FLUENT_VOLUME, "mountPath": FLUENT_AT, "readOnly": True},
        ],
    }
    if traits.master_cert is not None:
        container["volumeMounts"].append(
            {"name": "root-volume-0", "mountPath": _CA_FILE, "subPath": "master.crt", "readOnly": True}
        )
    if traits.has_native_sidecars:
        container["restartPolicy"] = "Always"
    return container


def fluent_config(traits: PoolTraits, *, pod_grace_s: int) -> str:
    """Configuration of the sidecar, the same for most tasks of a pool: what differs comes from its environment.

    pod_grace_s  after which time the pod is killed
    """
    return _rendered(traits.shipper, traits.tasks, traits.master_cert is not None, max(1, pod_grace_s - END_S))


@functools.lru_cache(maxsize=8)
def _rendered(settings: ShipperSettings, tasks: TaskSettings, has_cert: bool, grace_s: int) -> str:
    config = {
        "service": {
            "flush": settings.flush_s,
            "grace": grace_s,
            "log_level": "error",  # an outage of the intake would be a warning twice a second
            # A failed delivery is tried again within seconds: what waits at the end has to fit into the grace.
            "scheduler.base": 1,
            "scheduler.cap": 5,
            "storage.path": _STATE,
            # Of a chunk that begins while so many are in memory, it says that it "cannot mmap/read" it, and stores it.
            "storage.max_chunks_up": 64,
            "storage.backlog.mem_limit": "8M",
        },
        "pipeline": {"inputs": [_tail()], "outputs": [_http(settings, tasks, has_cert=has_cert)]},
    }
    text: str = yaml.safe_dump(config, sort_keys=False)
    return text


def _tail() -> Json:
    return {
        "name": "tail",
        "tag": "det",
        "path": f"{LOG_DIR}/*.log",
        "path_key": "path",
        "offset_key": "offset",
        "read_from_head": True,
        "refresh_interval": 1,  # new segments are found by looking
        "db": f"{_STATE}/tail.db",
        "db.locking": True,
        "db.compare_filename": True,  # the inode of a segment that is deleted is soon another's
        "buffer_chunk_size": "64k",
        "buffer_max_size": "256k",
        "skip_empty_lines": False,
        "mem_buf_limit": "16M",
        "storage.type": "filesystem",
        "log_suppress_interval": _SAY_AGAIN_S,
    }


def _http(settings: ShipperSettings, tasks: TaskSettings, *, has_cert: bool) -> Json:
    url = urlsplit(tasks.log_intake_url or "")
    is_tls = url.scheme == "https"
    output: Json = {
        "name": "http",
        "match": "det",
        "host": url.hostname or "",
        "port": url.port or (443 if is_tls else 80),
        "uri": f"{url.path.rstrip('/')}/ingest/v1/logs",
        "format": "msgpack",  # the only format that keeps every byte
        "compress": "gzip",
        "workers": 1,
        "retry_limit": "no_limits",
        "log_response_payload": False,
        "log_suppress_interval": _SAY_AGAIN_S,
        "net.io_timeout": 20,
        "net.keepalive_idle_timeout": 15,
        "header": [
            "Authorization Bearer ${DET_LOG_TOKEN}",
            "X-Det-Allocation ${DET_ALLOCATION_ID}",
            "X-Det-Pod ${POD_NAME}",
            "X-Det-Node ${NODE_NAME}",
            "X-Det-Restart 0",
        ],
    }
    if is_tls:
        verifies = tasks.master_cert_file != NO_VERIFICATION
        output |= {"tls": True, "tls.verify": verifies, "tls.verify_hostname": verifies}
        if has_cert:
            output["tls.ca_file"] = _CA_FILE
        if tasks.master_cert_name:
            output["tls.vhost"] = tasks.master_cert_name
    return output
