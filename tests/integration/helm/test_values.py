"""The effect of each value: docs/reference/kubernetes.md 16.2, and what is ours beside it."""

from __future__ import annotations

from typing import Any, Final, NamedTuple

import pytest
import yaml

from libs.bus.durables import PENDING
from libs.events.subjects import LOGS_STREAM
from tests.harness.helm import Release, at
from tests.integration.helm.conftest import Rendered

API: Final = "Deployment/determined-master-deployment"
POD: Final = "spec/template/spec"
OWN_ROLE: Final = "resolute_services"
FIRST: Final = f"{POD}/containers/0"


class Effect(NamedTuple):
    values: str
    """Name of the values file."""
    where: str
    """Kind and name of an object; ``env:`` before it for its variables; ``launcher:`` before a pool for those of its
    launcher; ``file:`` before a Secret and its key."""
    path: str
    is_: Any


def config(values: str, path: str, is_: Any) -> Effect:
    return Effect(values, "file:determined-master-config/master.yaml", path, is_)


def launcher_config(values: str, path: str, is_: Any, file: str = "master.yaml") -> Effect:
    return Effect(values, f"file:resolute-launcher-config/{file}", path, is_)


def api(values: str, variable: str, is_: str | None) -> Effect:
    return Effect(values, f"env:{API}", variable, is_)


def launcher(values: str, variable: str, is_: str | None, pool: str = "default") -> Effect:
    return Effect(values, f"launcher:{pool}", variable, is_)


def logs(values: str, variable: str, is_: str | None) -> Effect:
    return Effect(values, "env:Deployment/resolute-logs", variable, is_)


SMOKE_TEST: Final = "Pod/resolute-smoke-test"
EFFECTS: Final = [
    Effect("growing", "PriorityClass/determined-placeholder-priority", "value", -10),
    config("growing", "resource_pools/0/growth/max_nodes", 4),
    launcher_config("growing", "resource_pools/0/growth/node_template/slots", 8),
    # ---- images
    Effect("defaults", API, f"{FIRST}/image", "resolute-api:0.1.0"),
    Effect("images", API, f"{FIRST}/image", "registry.example.com/ml/resolute-api:1.2.3"),
    Effect("images", API, f"{POD}/imagePullSecrets/0/name", "pull"),
    Effect("images", API, f"{FIRST}/imagePullPolicy", "Always"),
    Effect("images", "Job/resolute-migration", f"{FIRST}/image", "registry.example.com/ml/resolute-tools:1.2.3"),
    Effect("images", "StatefulSet/determined-db-deployment", f"{FIRST}/image", "registry.example.com/postgres:16"),
    Effect("services", "Job/resolute-migration", f"{POD}/nodeSelector", {"tier": "services"}),
    Effect("migration_placement", "Job/resolute-migration", f"{POD}/nodeSelector", {"role": "scheduler"}),
    Effect("migration_placement", "Job/resolute-migration", f"{POD}/tolerations/0/key", "scheduler"),
    Effect("migration_placement", "Job/resolute-migration", f"{POD}/affinity/nodeAffinity", {}),
    Effect("migration_placement", "Job/resolute-migration", f"{POD}/priorityClassName", "important"),
    # ---- helm test
    Effect("services", SMOKE_TEST, "spec/containers/0/args/1", "--timeout=30"),
    Effect("services", SMOKE_TEST, "spec/containers/0/args/2", "--image=own/task:1"),
    Effect("services", SMOKE_TEST, "spec/containers/0/args/3", "--pool=default"),
    Effect("services", SMOKE_TEST, "spec/containers/0/image", "own/tools:1"),
    Effect(
        "defaults",
        SMOKE_TEST,
        "spec/containers/0/args/0",
        "--master=http://determined-master-service-rel.ml.svc.cluster.local:8080",
    ),
    Effect("tls", SMOKE_TEST, "spec/containers/0/args/2", "--certificate=/etc/resolute/certificate/tls.crt"),
    Effect("tls", SMOKE_TEST, "spec/volumes/#certificate/secret/items", [{"key": "tls.crt", "path": "tls.crt"}]),
    # ---- values of Determined as they are
    Effect("determined", "StatefulSet/determined-db-deployment", f"{FIRST}/image", "postgres:18"),
    Effect("determined", API, f"{FIRST}/image", "resolute-api:0.1.0"),
    config("determined", "security/default_task", None),
    config("images", "task_container_defaults/image/cpu", "registry.example.com/cpu:1"),
    config("images", "task_container_defaults/image/gpu", "registry.example.com/gpu:1"),
    config("images", "task_container_defaults/image/rocm", "registry.example.com/rocm:1"),
    config("task_images", "task_container_defaults/image/cpu", "own/cpu:2"),
    config("task_images", "task_container_defaults/image/gpu", "own/gpu:2"),
    config("task_images", "task_container_defaults/image/rocm", "own/rocm:2"),
    Effect("coscheduler", "Deployment/coscheduler", f"{FIRST}/image", "registry.example.com/scheduler:1"),
    # ---- the api and its Service
    api("log_level", "RESOLUTE_TELEMETRY__LOG_LEVEL", "warning"),
    logs("log_level", "RESOLUTE_TELEMETRY__LOG_LEVEL", "warning"),
    api("traces", "RESOLUTE_TELEMETRY__TRACES_ENDPOINT", "http://collector.monitoring:4318"),
    launcher("traces", "RESOLUTE_TELEMETRY__TRACES_RATIO", "0.25"),
    Effect("traces", "NetworkPolicy/resolute-scheduler", "spec/egress/3/ports/0/port", 4318),
    api("defaults", "RESOLUTE_TELEMETRY__TRACES_ENDPOINT", None),
    Effect("defaults", "Service/determined-master-service", "spec/ports/0/port", 8080),
    Effect("defaults", "Service/determined-master-service", "spec/ports/0/targetPort", 8081),
    Effect("master_port", "Service/determined-master-service", "spec/ports/0/port", 8088),
    Effect("master_port", "Service/determined-master-service", "spec/ports/0/targetPort", 8081),
    Effect("load_balancer", "Service/determined-master-service", "spec/loadBalancerSourceRanges/1", "192.168.0.0/16"),
    Effect(
        "load_balancer",
        "Service/determined-master-service",
        "metadata/annotations",
        {"networking.gke.io/load-balancer-type": "Internal"},
    ),
    Effect("load_balancer", "Service/determined-master-service", "spec/loadBalancerIP", "10.1.2.3"),
    Effect("load_balancer", "Service/determined-master-service", "spec/externalIPs", ["10.9.9.9"]),
    Effect("cluster_ip", "Service/determined-master-service", "spec/clusterIP", "10.96.0.77"),
    Effect("fixed_node_port", "Service/determined-master-service", "spec/ports/0/nodePort", 30080),
    Effect("openshift", "Route/determined-master-route", "spec/host", "det.example.com"),
    Effect("openshift", "Route/determined-master-route", "spec/tls/termination", "edge"),
    Effect("openshift", "Route/determined-master-route", "spec/to/weight", 100),
    Effect("openshift", "Route/determined-master-tasks-route", "spec/host", "tasks.det.example.com"),
    Effect("master_resources", API, f"{FIRST}/resources/requests", {"cpu": "3", "memory": "6Gi"}),
    Effect("master_resources", API, f"{FIRST}/resources/limits", {"cpu": "4", "memory": "8Gi"}),
    Effect("master_resources", API, f"{POD}/nodeSelector", {"role": "control"}),
    Effect("master_resources", "Deployment/resolute-logs", f"{POD}/tolerations/0/key", "control"),
    Effect("external_ca", API, f"{POD}/volumes/#external-ca/secret/secretName", "company-ca"),
    Effect("external_ca", API, f"{FIRST}/volumeMounts/#certificates/mountPath", "/etc/ssl/certs"),
    api("more_configuration", "RESOLUTE_HTTP__ENABLE_CORS", "true"),
    config("more_configuration", "launch_error", False),
    config("more_configuration", "feature_switches", ["prevent_blank_password"]),
    config("more_configuration", "reserved_ports", [12345]),
    config("more_configuration", "webhooks/base_url", "https://det.example.com"),
    config("more_configuration", "webhooks/signing_key", "secret-key"),
    config("more_configuration", "webhooks/allowed_networks", ["10.20.0.0/16"]),
    config("more_configuration", "notebook_timeout", 3600),
    config("more_configuration", "tensorboard_timeout", 0),
    config("more_configuration", "logs/outage_wait", 600),
    # ---- TLS
    config("tls", "security/tls/cert", "/etc/resolute/secrets/tls/tls.crt"),
    config("tls", "security/tls/key", "/etc/resolute/secrets/tls/tls.key"),
    Effect("tls", API, f"{POD}/volumes/#tls/secret/secretName", "certificate"),
    launcher("tls", "RESOLUTE_TASKS__MASTER_URL", "https://determined-master-service-rel.ml.svc.cluster.local:8080"),
    launcher("tls", "RESOLUTE_TASKS__MASTER_CERT_FILE", "/etc/resolute/secrets/tls/tls.crt"),
    launcher("tls", "RESOLUTE_TASKS__MASTER_CERT_NAME", "det.example.com"),
    Effect(
        "tls",
        "Deployment/resolute-launcher-default",
        f"{POD}/volumes/#tls/projected/sources",
        [
            {"secret": {"name": "certificate", "items": [{"key": "tls.crt", "path": "tls.crt"}]}},
            {"secret": {"name": "certificate", "items": [{"key": "ca.crt", "path": "ca.crt"}], "optional": True}},
            {"configMap": {"name": "next-authority", "items": [{"key": "bundle.pem", "path": "additional-ca.crt"}]}},
        ],
    ),
    launcher("tls", "RESOLUTE_TASKS__MASTER_CA_FILE", "/etc/resolute/secrets/tls/ca.crt"),
    launcher("tls", "RESOLUTE_TASKS__ADDITIONAL_CA_FILE", "/etc/resolute/secrets/tls/additional-ca.crt"),
    launcher("tls_ingress", "RESOLUTE_TASKS__ADDITIONAL_CA_FILE", "/etc/resolute/secrets/tls/additional-ca.crt"),
    Effect(
        "tls_ingress",
        "Deployment/resolute-launcher-default",
        f"{POD}/volumes/#tls/projected/sources/2",
        {"secret": {"name": "next-authority", "items": [{"key": "ca.crt", "path": "additional-ca.crt"}]}},
    ),
    config("tls_ingress", "security/tls", None),
    Effect("tls_ingress", "Ingress/determined-master", "spec/tls/0/secretName", "certificate"),
    Effect("tls_ingress", "Ingress/determined-master", "spec/ingressClassName", "nginx"),
    Effect(
        "tls_ingress",
        "Ingress/determined-master",
        "metadata/annotations",
        {
            "nginx.ingress.kubernetes.io/proxy-body-size": "200m",
            "nginx.ingress.kubernetes.io/proxy-read-timeout": "86400",
            "nginx.ingress.kubernetes.io/proxy-send-timeout": "86400",
            "nginx.ingress.kubernetes.io/proxy-request-buffering": "off",
        },
    ),
    Effect(
        "ingress_passthrough",
        "Ingress/determined-master",
        "metadata/annotations",
        {"nginx.ingress.kubernetes.io/ssl-passthrough": "true"},
    ),
    Effect("tls_ingress", "Ingress/determined-master", "spec/rules/0/host", "det.example.com"),
    Effect("tls_ingress", "Ingress/determined-master", "spec/rules/1/host", "tasks.det.example.com"),
    Effect(
        "tls_ingress", "Ingress/determined-master", "spec/tls/0/hosts", ["det.example.com", "tasks.det.example.com"]
    ),
    config("tls_ingress", "tasks/address", "https://tasks.det.example.com"),
    config("tls_ingress", "tasks/main_address", "https://det.example.com"),
    config("defaults", "tasks", None),
    Effect(
        "tls_ingress",
        "Ingress/determined-master",
        "spec/rules/0/http/paths/0/backend/service",
        {"name": "determined-master-service-rel", "port": {"number": 8080}},
    ),
    launcher(
        "tls_ingress", "RESOLUTE_TASKS__MASTER_URL", "http://determined-master-service-rel.ml.svc.cluster.local:8080"
    ),
    config("ingress_passthrough", "security/tls/cert", "/etc/resolute/secrets/tls/tls.crt"),
    Effect("ingress_passthrough", "Ingress/determined-master", "spec/tls", None),
    Effect("tls_gateway", "Gateway/determined-master", "spec/listeners/0/tls/certificateRefs/0/name", "certificate"),
    Effect(
        "tls_gateway", "HTTPRoute/determined-master", "spec/hostnames", ["det.example.com", "tasks.det.example.com"]
    ),
    Effect(
        "gateway_existing",
        "HTTPRoute/determined-master",
        "spec/parentRefs/0",
        {"name": "shared", "namespace": "gateways"},
    ),
    # ---- security
    config("identity", "security/default_task", {"user": "ml", "uid": 1500, "group": "ml", "gid": 1500}),
    config("identity", "security/authz/type", "basic"),
    config("identity", "security/token/max_lifespan_days", 90),
    config("identity", "security/token/default_lifespan_days", 7),
    config("identity", "security/token/in_tasks", "task"),
    config("identity", "security/references", ["PersistentVolumeClaim/data-*"]),
    config("identity", "security/pod_spec", "restricted"),
    config("identity", "security/pod_fields", ["spec.runtimeClassName"]),
    config("identity", "security/host_paths", ["/data"]),
    config("identity", "security/storage_addresses", ["10.1.0.0/16", "http://minio.data.svc:9000"]),
    config("defaults", "security/pod_spec", "baseline"),
    config("identity", "security/pod_labels", ["example.com/*"]),
    config("identity", "security/ssh", {"key_type": "RSA", "rsa_key_size": 2048}),
    api("password", "RESOLUTE_INITIAL_USER_PASSWORD", "Initial-Pass1"),
    api("old_password", "RESOLUTE_INITIAL_USER_PASSWORD", "Default-Pass1"),
    api("blank_password", "RESOLUTE_INITIAL_USER_PASSWORD", ""),
    # ---- database
    api(
        "external_database",
        "RESOLUTE_DATABASE__URL",
        "postgresql://det:p%40ss%2Fword%201@db.example.com:5433/determined",
    ),
    api("external_database", "PGSSLMODE", "verify-full"),
    api("external_database", "PGSSLROOTCERT", "/etc/resolute/secrets/database/ca.pem"),
    Effect("external_database", API, f"{POD}/volumes/#database-certificate/configMap/name", "db-ca"),
    Effect(
        "external_database", "Job/resolute-migration", f"{POD}/volumes/#database-certificate/configMap/name", "db-ca"
    ),
    Effect("database_certificate_secret", API, f"{POD}/volumes/#database-certificate/secret/secretName", "db-ca"),
    api(
        "database",
        "RESOLUTE_DATABASE__URL",
        f"postgresql://{OWN_ROLE}:p%40ss%2Fword%202@determined-db-service-rel.ml.svc.cluster.local:5544/resolute",
    ),
    Effect("database", "Job/resolute-migration", f"{FIRST}/env/#RESOLUTE_SERVICES_ROLE__USER/value", OWN_ROLE),
    Effect("database", "Deployment/resolute-scheduler", f"{POD}/initContainers/#database/command/2", "upgrade"),
    Effect("database_one_user", "Deployment/resolute-scheduler", f"{POD}/initContainers", None),
    Effect("external_database", "Deployment/resolute-scheduler", f"{POD}/initContainers", None),
    Effect("database", "PersistentVolumeClaim/determined-db-pvc-kept", "spec/storageClassName", "fast"),
    Effect("database", "PersistentVolumeClaim/determined-db-pvc-kept", "spec/resources/requests/storage", "100Gi"),
    Effect(
        "database",
        "StatefulSet/determined-db-deployment",
        f"{POD}/volumes/#data/persistentVolumeClaim/claimName",
        "determined-db-pvc-kept",
    ),
    Effect(
        "database",
        "StatefulSet/determined-db-deployment",
        f"{FIRST}/resources",
        {"requests": {"cpu": "4", "memory": "16Gi"}, "limits": {"cpu": "8", "memory": "32Gi"}},
    ),
    Effect(
        "database",
        "StatefulSet/determined-db-deployment",
        f"{FIRST}/args",
        ["-c", "max_connections=500", "-c", "shared_buffers=4GB", "-c", "work_mem=16MB"],
    ),
    Effect("database", "StatefulSet/determined-db-deployment", f"{POD}/schedulerName", "other"),
    Effect("database", "StatefulSet/determined-db-deployment", f"{POD}/nodeSelector", {"disk": "ssd"}),
    Effect("database", "StatefulSet/determined-db-deployment", f"{POD}/priorityClassName", "db-first"),
    Effect("database", "Service/determined-db-service", "spec/type", "NodePort"),
    Effect("database", "Service/determined-db-service", "spec/ports/0/port", 5544),
    Effect("defaults", "Service/determined-db-service", "spec/type", "ClusterIP"),
    Effect(
        "database_claim",
        "StatefulSet/determined-db-deployment",
        f"{POD}/volumes/#data/persistentVolumeClaim/claimName",
        "mine",
    ),
    Effect("database_without_volume", "StatefulSet/determined-db-deployment", f"{POD}/volumes/#data/emptyDir", {}),
    Effect("database_snapshot", "VolumeSnapshot/determined-db-snapshot-before", "metadata/namespace", "ml"),
    Effect("database_snapshot", "VolumeSnapshotClass/determined-db-snapshot-class", "driver", "ebs.csi.aws.com"),
    Effect(
        "database_restore",
        "PersistentVolumeClaim/determined-db-pvc-before",
        "spec/dataSource/name",
        "determined-db-snapshot-before",
    ),
    # ---- checkpoint storage
    config(
        "defaults",
        "checkpoint_storage",
        {
            "type": "shared_fs",
            "host_path": "/tmp/checkpoints",
            "save_experiment_best": 0,
            "save_trial_best": 1,
            "save_trial_latest": 1,
        },
    ),
    config(
        "storage_shared",
        "checkpoint_storage",
        {
            "type": "shared_fs",
            "host_path": "/srv/checkpoints",
            "storage_path": "team",
            "propagation": "rslave",
            "save_experiment_best": 2,
            "save_trial_best": 0,
            "save_trial_latest": 0,
        },
    ),
    Effect(
        "storage_shared",
        API,
        f"{POD}/volumes/#checkpoints/hostPath",
        {"path": "/srv/checkpoints", "type": "Directory"},
    ),
    Effect("storage_shared", API, f"{FIRST}/volumeMounts/#checkpoints/mountPath", "/determined_shared_fs"),
    api("storage_shared", "RESOLUTE_CHECKPOINT_ROOTS", '{"/srv/checkpoints":"/determined_shared_fs"}'),
    config("storage_directory", "checkpoint_storage/container_path", "/checkpoints"),
    config("storage_directory", "checkpoint_storage/host_path", None),
    config("storage_gcs", "checkpoint_storage/bucket", "models"),
    config("storage_gcs", "checkpoint_storage/prefix", "det"),
    config("storage_s3", "checkpoint_storage/access_key", "AK"),
    config("storage_s3", "checkpoint_storage/secret_key", "SK"),
    config("storage_s3", "checkpoint_storage/endpoint_url", "http://minio.example.com:9000"),
    config("storage_azure", "checkpoint_storage/connection_string", "DefaultEndpointsProtocol=https"),
    config("storage_azure_account", "checkpoint_storage/account_url", "https://a.blob"),
    config("storage_azure_account", "checkpoint_storage/credential", "c"),
    # ---- slots, pools, defaults of tasks
    config("defaults", "resource_manager/max_slots_per_pod", 8),
    config("defaults", "resource_manager/slot_type", None),
    config("defaults", "resource_manager/default_namespace", "ml"),
    config("slots_are_cores", "resource_manager/slot_type", "cpu"),
    config("slots_are_cores", "resource_manager/slot_resource_requests/cpu", 0.5),
    config("slots_are_cores", "cluster_name", "small"),
    config("rocm", "resource_manager/slot_type", "rocm"),
    config("two_pools", "resource_manager/default_namespace", "tasks"),
    config("two_pools", "resource_manager/cluster_name", "here"),
    config("two_pools", "resource_manager/metadata", {"site": "eu"}),
    config("two_pools", "resource_manager/scheduler/type", "priority"),
    config("two_pools", "resource_manager/default_aux_resource_pool", "cpu_only"),
    config("two_pools", "resource_manager/default_compute_resource_pool", "A100"),
    config("two_pools", "resource_pools/1/scheduler/default_priority", 60),
    launcher("two_pools", "RESOLUTE_KUBERNETES__SHIPPER__KIND", "builtin", "A100"),
    launcher("two_pools", "RESOLUTE_KUBERNETES__SHIPPER__KIND", "fluent-bit", "cpu_only"),
    launcher("two_pools", "RESOLUTE_KUBERNETES__ASSUMED_SLOTS", "64", "A100"),
    launcher("two_pools", "RESOLUTE_KUBERNETES__ASSUMED_SLOTS", "16", "cpu_only"),
    config("no_default_pools", "resource_manager/no_default_resource_pools", True),
    config("coscheduler", "resource_manager/default_scheduler", "coscheduler"),
    launcher("coscheduler", "RESOLUTE_KUBERNETES__DEFAULT_SCHEDULER", "coscheduler"),
    config("enterprise", "resource_manager/default_scheduler", None),
    config("enterprise", "scim", {"enabled": True, "auth": {"type": "basic", "username": "a", "password": "b"}}),
    config(
        "enterprise",
        "oidc",
        {
            "enabled": True,
            "provider": "Okta",
            "client_id": "xx",
            "idp_sso_url": "https://login.example.com:8443/realm",
            "idp_recipient_url": "https://here.example.com",
            "auto_provision_users": True,
            "agent_uid_attribute_name": "uid",
            "agent_gid_attribute_name": "gid",
            "agent_user_name_attribute_name": "login",
            "agent_group_name_attribute_name": "team",
            "exclude_groups_scope": False,
            "authentication_claim": "email",
            "scim_authentication_attribute": "userName",
            "groups_attribute_name": "groups",
            "display_name_attribute_name": "name",
            "always_redirect": True,
        },
    ),
    config("defaults", "oidc", None),
    api("enterprise", "DET_OIDC_CLIENT_SECRET", "<oidc/secret>"),
    api("defaults", "DET_OIDC_CLIENT_SECRET", None),
    config("task_defaults", "task_container_defaults/startup_hook", "echo hello"),
    config("task_defaults", "task_container_defaults/network_mode", "host"),
    config("task_defaults", "task_container_defaults/dtrain_network_interface", "eth1"),
    config("task_defaults", "task_container_defaults/force_pull_image", False),
    config("task_defaults", "task_container_defaults/cpu_pod_spec/spec/tolerations/0/key", "cpu"),
    config("task_defaults", "task_container_defaults/gpu_pod_spec/metadata/labels", {"Team.Name/x": "1"}),
    config("task_defaults", "task_container_defaults/checkpoint_gc_pod_spec/spec/priorityClassName", "low"),
    config("task_defaults", "task_container_defaults/log_policies/0/pattern", ".*CUDA.*"),
    config("task_defaults", "task_container_defaults/shm_size_bytes", 8589934592),
    config("task_defaults", "task_container_defaults/registry_auth/username", "u"),
    config("task_defaults", "task_container_defaults/environment_variables", ["A=1"]),
    config("task_defaults", "task_container_defaults/bind_mounts/0/host_path", "/data"),
    config("task_defaults", "task_container_defaults/work_dir", "/work"),
    config("task_defaults", "task_container_defaults/preemption_timeout", 600),
    config("task_defaults", "task_container_defaults/nccl_port_range", "20000:20100"),
    config("task_defaults", "task_container_defaults/gloo_port_range", "20200:20300"),
    config("task_defaults", "task_container_defaults/add_capabilities", ["SYS_PTRACE"]),
    config("task_defaults", "task_container_defaults/drop_capabilities", ["MKNOD"]),
    config("task_defaults", "task_container_defaults/devices/0/host_path", "/dev/infiniband"),
    config("pedl", "task_container_defaults/cpu_pod_spec/spec/nodeSelector", {"determined.ai/pedl-agent": "present"}),
    config(
        "pedl",
        "task_container_defaults/gpu_pod_spec/spec/nodeSelector",
        {"determined.ai/pedl-agent": "present", "gpu": "v100"},
    ),
    config(
        "pedl",
        "task_container_defaults/gpu_pod_spec/spec/tolerations/1",
        {"key": "determined.ai/pedl-agent", "operator": "Equal", "value": "present", "effect": "NoSchedule"},
    ),
    config("task_gateway", "resource_manager/internal_task_gateway/gateway_port_range_start", 40000),
    # ---- where tasks reach what they talk to
    launcher("defaults", "RESOLUTE_TASKS__LOG_INTAKE_URL", "http://resolute-logs-rel.ml.svc.cluster.local:8081"),
    launcher("address", "RESOLUTE_TASKS__MASTER_URL", "https://det.example.com:443"),
    launcher("fluent", "RESOLUTE_KUBERNETES__SHIPPER__IMAGE", "registry.example.com/fluent-bit:5.1"),
    launcher("fluent", "RESOLUTE_KUBERNETES__SHIPPER__UID", "0"),
    launcher("fluent", "RESOLUTE_KUBERNETES__SHIPPER__GID", "65534"),
    launcher("more_clusters", "RESOLUTE_TASKS__MASTER_URL", "https://203.0.113.5:9443", "there-pool"),
    launcher("more_clusters", "RESOLUTE_KUBERNETES__KUBECONFIG", "/mount/determined/secrets/0/config", "there-pool"),
    launcher("more_clusters", "RESOLUTE_KUBERNETES__KUBECONFIG", "/mounted/kubeconfig", "else-pool"),
    config("more_clusters", "resource_pools/1/pool_name", "there-pool"),
    launcher_config("more_clusters", "resource_manager/max_slots_per_pod", 2, "master-0.yaml"),
    launcher_config("more_clusters", "resource_manager/kubeconfig_secret_name", None, "master-0.yaml"),
    launcher("launcher_only", "RESOLUTE_TASKS__MASTER_URL", "https://det.example.com:443", "far.away"),
    # ---- logs
    logs("retention", "RESOLUTE_RETENTION__DEFAULT_DAYS", "0"),
    logs("retention", "RESOLUTE_RETENTION__INTERVAL_S", "5400"),
    logs("enterprise", "RESOLUTE_RETENTION__INTERVAL_S", None),
    # ---- NATS
    Effect("three_nats", "StatefulSet/resolute-nats", "spec/replicas", 3),
    api("three_nats", "RESOLUTE_BUS__REPLICAS", "3"),
    api("three_nats", "RESOLUTE_BUS__LOGS_MAX_BYTES", "8589934592"),
    api("three_nats", "RESOLUTE_BUS__CA_FILE", "/etc/resolute/secrets/bus-ca/ca.crt"),
    Effect(
        "three_nats",
        "StatefulSet/resolute-nats",
        "spec/volumeClaimTemplates/0/spec",
        {"accessModes": ["ReadWriteOnce"], "storageClassName": "fast", "resources": {"requests": {"storage": "50Gi"}}},
    ),
    Effect("three_nats", "Service/resolute-nats", "spec/type", "LoadBalancer"),
    Effect("three_nats", "Service/resolute-nats", "spec/ports/#leafnodes/port", 7422),
    api("external_nats", "RESOLUTE_BUS__URL", "tls://nats-0.example.com:4333,tls://nats-1.example.com:4333"),
    api("external_nats", "RESOLUTE_BUS__PASSWORD", "<bus/bus-services>"),
    api("external_nats", "RESOLUTE_BUS__REPLICAS", "3"),
    launcher("external_nats", "RESOLUTE_BUS__PASSWORD", "<bus/bus-launcher-default>"),
    # ---- scaling
    Effect("autoscaling", API, "spec/replicas", None),
    Effect("autoscaling", "HorizontalPodAutoscaler/determined-master", "spec/maxReplicas", 9),
    Effect(
        "autoscaling",
        "HorizontalPodAutoscaler/determined-master",
        "spec/metrics/0/resource/target/averageUtilization",
        50,
    ),
    Effect("autoscaling", "HorizontalPodAutoscaler/resolute-logs", "spec/metrics/0/external/metric/name", "lag"),
    Effect(
        "autoscaling", "HorizontalPodAutoscaler/resolute-logs", "spec/metrics/0/external/target/averageValue", "200"
    ),
    Effect("external_nats", "ScaledObject/resolute-logs", "spec/triggers/7/metadata/consumer", "logs-writer-7"),
    Effect("external_nats", "ScaledObject/resolute-logs", "spec/triggers/0/metadata/lagThreshold", "50"),
    Effect("no_disruption_budgets", "PodDisruptionBudget/resolute-logs", "spec/maxUnavailable", "50%"),
    # ---- around it
    Effect("monitoring", "PodMonitor/resolute", "metadata/labels/release", "prometheus-stack"),
    Effect("monitoring", "PodMonitor/resolute", "spec/podMetricsEndpoints/0/interval", "10s"),
    Effect("monitoring", "PrometheusRule/resolute", "metadata/labels/release", "prometheus-stack"),
    Effect("monitoring", "ConfigMap/resolute-dashboard-pools", "metadata/labels/grafana", "resolute"),
    Effect("network", "NetworkPolicy/resolute-launcher", "spec/egress/2/ports", [{"port": 16443}]),
    launcher("no_cluster_objects", "RESOLUTE_KUBERNETES__PRIORITY_CLASSES", "off"),
    launcher("no_cluster_objects", "RESOLUTE_KUBERNETES__ASSUMED_SLOTS", "16"),
]


@pytest.mark.parametrize("effect", EFFECTS, ids=lambda effect: f"{effect.values}-{effect.where}-{effect.path}")
def test_a_value_has_its_effect(effect: Effect, rendered: Rendered) -> None:
    assert found(rendered(effect.values), effect.where, effect.path) == effect.is_


def found(release: Release, where: str, path: str) -> Any:
    if where.startswith("file:"):
        name, key = where.removeprefix("file:").split("/")
        return at(yaml.safe_load(release.secret(name, key)), path)
    if where.startswith("launcher:"):
        return release.environment("Deployment", release.launcher_of(where.removeprefix("launcher:"))).get(path)
    if where.startswith("env:"):
        return release.environment(*where.removeprefix("env:").split("/")).get(path)
    return at(release.get(*where.split("/")), path)


def test_the_launcher_of_a_pool_has_values_of_its_own(rendered: Rendered) -> None:
    release = rendered("two_pools")
    large, other = (release.get("Deployment", release.launcher_of(pool)) for pool in ("A100", "cpu_only"))
    assert (at(large, "spec/replicas"), at(other, "spec/replicas")) == (3, 2)
    assert at(large, f"{FIRST}/resources/requests") == {"cpu": "1", "memory": "128Mi"}


def test_the_logs_service_is_scaled_by_a_metric_that_there_is(rendered: Rendered) -> None:
    metric = at(
        rendered("autoscaling_logs").get("HorizontalPodAutoscaler", "resolute-logs"), "spec/metrics/0/external/metric"
    )
    (family,) = PENDING.collect()
    assert metric["name"] == family.name
    assert metric["selector"]["matchLabels"]["stream"] == LOGS_STREAM


SERVICES: Final = (
    "Deployment/determined-master-deployment",
    "Deployment/resolute-scheduler",
    "Deployment/resolute-logs",
    "Deployment/resolute-launcher-default",
)
OF_EVERY_SERVICE: Final = {
    "spec/replicas": 4,
    f"{FIRST}/resources": {"requests": {"cpu": "750m", "memory": "900Mi"}, "limits": {"memory": "2Gi"}},
    f"{POD}/topologySpreadConstraints/0/topologyKey": "topology.kubernetes.io/zone",
    f"{POD}/nodeSelector": {"tier": "services"},
    f"{POD}/tolerations/0/key": "services",
    f"{POD}/affinity": {"podAntiAffinity": {}},
    f"{POD}/priorityClassName": "services",
    f"{POD}/terminationGracePeriodSeconds": 77,
    f"{POD}/volumes/#more/emptyDir": {},
    f"{FIRST}/volumeMounts/#more/mountPath": "/more",
    f"{FIRST}/env/#EXTRA/value": "1",
    f"{FIRST}/envFrom/0/configMapRef/name": "more",
    "spec/template/metadata/labels/cost": "ml",
    "spec/template/metadata/annotations/note": "hello",
}


@pytest.mark.parametrize("path", OF_EVERY_SERVICE)
@pytest.mark.parametrize("service", SERVICES)
def test_every_service_has_values_of_its_own(service: str, path: str, rendered: Rendered) -> None:
    assert found(rendered("services"), service, path) == OF_EVERY_SERVICE[path]
