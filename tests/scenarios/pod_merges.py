"""The worked merge examples of docs/reference/kubernetes.md 6.3: base is the default, patch the task's own."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from libs.podspec import MAIN_CONTAINER

Object = dict[str, Any]


@dataclass
class Example:
    name: str
    base: Object
    patch: Object
    result: Object
    refused: str = ""
    """Words of an API server about the result; empty when it takes it."""


def spec(**fields: Any) -> Object:
    return {"spec": fields}


def main(**fields: Any) -> Object:
    return {"name": MAIN_CONTAINER, **fields}


def container(name: str, image: str, **fields: Any) -> Object:
    return {"name": name, "image": image, **fields}


def env(**values: str) -> list[Object]:
    return [{"name": name, "value": value} for name, value in values.items()]


def named(*names: str) -> list[Object]:
    return [{"name": name} for name in names]


def keyed(*keys: str) -> list[Object]:
    return [{"key": key, "operator": "Exists"} for key in keys]


def affinity(*requirements: Object, preferred: list[Object] | None = None) -> Object:
    node: Object = {
        "requiredDuringSchedulingIgnoredDuringExecution": {
            "nodeSelectorTerms": [{"matchExpressions": [requirement]} for requirement in requirements]
        }
    }
    if preferred is not None:
        node["preferredDuringSchedulingIgnoredDuringExecution"] = preferred
    return spec(affinity={"nodeAffinity": node})


SECRET_VOLUME = {"name": "secret-volume", "secret": {"secretName": "prod-test-secret"}}
EMPTY_DIR = {"name": "empty-dir-override", "emptyDir": {"sizeLimit": "100Mi"}}
V = {"name": "v", "emptyDir": {}}
V_AT = {"name": "v", "mountPath": "/v"}
ZONE_A = {"key": "zone", "operator": "In", "values": ["a"]}
GPU = {"key": "gpu", "operator": "Exists"}
SSD = [{"weight": 1, "preference": {"matchExpressions": [{"key": "ssd", "operator": "Exists"}]}}]

EXAMPLES = [
    Example(
        "1 the documentation's own",
        spec(
            volumes=[SECRET_VOLUME],
            containers=[main(volumeMounts=[{"name": "secret-volume", "mountPath": "/etc/secret-volume"}])],
        ),
        spec(
            volumes=[EMPTY_DIR],
            containers=[main(volumeMounts=[{"name": "empty-dir-override", "mountPath": "/etc/secret-volume"}])],
        ),
        spec(
            volumes=[EMPTY_DIR, SECRET_VOLUME],
            containers=[main(volumeMounts=[{"name": "empty-dir-override", "mountPath": "/etc/secret-volume"}])],
        ),
    ),
    Example(
        "2 two types of one volume",
        spec(volumes=[{"name": "v", "hostPath": {"path": "/data"}}]),
        spec(volumes=[{"name": "v", "emptyDir": {}}]),
        spec(volumes=[{"name": "v", "hostPath": {"path": "/data"}, "emptyDir": {}}]),
        refused="may not specify more than 1 volume type",
    ),
    Example(
        "3 containers and their variables",
        spec(containers=[main(env=env(A="1", B="2")), container("side", "alpine:1")]),
        spec(containers=[container("extra", "busybox"), main(env=env(B="3", C="4"))]),
        spec(
            containers=[
                container("extra", "busybox"),
                main(env=env(A="1", B="3", C="4")),
                container("side", "alpine:1"),
            ]
        ),
    ),
    Example(
        "4 tolerations are atomic",
        spec(tolerations=keyed("a")),
        spec(tolerations=keyed("b")),
        spec(tolerations=keyed("b")),
    ),
    Example(
        "5 node selector",
        spec(nodeSelector={"x": "1", "y": "2"}),
        spec(nodeSelector={"y": "3", "z": "4"}),
        spec(nodeSelector={"x": "1", "y": "3", "z": "4"}),
    ),
    Example(
        "6 pull secrets",
        spec(imagePullSecrets=named("a", "b")),
        spec(imagePullSecrets=named("b", "c")),
        spec(imagePullSecrets=named("a", "b", "c")),
    ),
    Example(
        "7 pull secrets and scalars",
        spec(imagePullSecrets=named("e1"), hostname="h1", serviceAccountName="s1"),
        spec(imagePullSecrets=named("e0"), hostname="h0", subdomain="d0"),
        spec(imagePullSecrets=named("e0", "e1"), hostname="h0", subdomain="d0", serviceAccountName="s1"),
    ),
    Example(
        "8 ports",
        spec(
            containers=[container("side", "s", ports=[{"containerPort": 80, "name": "http"}, {"containerPort": 443}])]
        ),
        spec(
            containers=[{"name": "side", "ports": [{"containerPort": 80, "protocol": "UDP"}, {"containerPort": 9090}]}]
        ),
        spec(
            containers=[
                container(
                    "side",
                    "s",
                    ports=[
                        {"containerPort": 80, "name": "http", "protocol": "UDP"},
                        {"containerPort": 9090},
                        {"containerPort": 443},
                    ],
                )
            ]
        ),
    ),
    Example(
        "9 init containers",
        spec(initContainers=[container("fetch", "a", command=["sh"], args=["-c", "one"])]),
        spec(initContainers=[{"name": "fetch", "args": ["-c", "two"]}, container("second", "b")]),
        spec(
            initContainers=[
                container("fetch", "a", command=["sh"], args=["-c", "two"]),
                container("second", "b"),
            ]
        ),
    ),
    Example(
        "10 requests and limits",
        spec(containers=[main(resources={"requests": {"cpu": "1", "memory": "1Gi"}, "limits": {"memory": "2Gi"}})]),
        spec(containers=[main(resources={"requests": {"memory": "4Gi"}})]),
        spec(containers=[main(resources={"requests": {"cpu": "1", "memory": "4Gi"}, "limits": {"memory": "2Gi"}})]),
        refused="must be less than or equal to memory limit",
    ),
    Example(
        "11 affinity terms are atomic",
        affinity(ZONE_A),
        affinity(GPU, preferred=SSD),
        affinity(GPU, preferred=SSD),
    ),
    Example(
        "12 security context",
        spec(containers=[main(securityContext={"privileged": True, "capabilities": {"add": ["A", "B"]}})]),
        spec(
            containers=[
                main(
                    securityContext={
                        "capabilities": {"add": ["C"], "drop": ["ALL"]},
                        "readOnlyRootFilesystem": False,
                    }
                )
            ]
        ),
        spec(
            containers=[
                main(
                    securityContext={
                        "privileged": True,
                        "capabilities": {"add": ["C"], "drop": ["ALL"]},
                        "readOnlyRootFilesystem": False,
                    }
                )
            ]
        ),
    ),
    Example(
        "13 labels and annotations",
        {"metadata": {"labels": {"a": "1", "b": "2"}, "annotations": {"k": "v"}}},
        {"metadata": {"labels": {"b": "3", "c": "4"}}},
        {"metadata": {"labels": {"a": "1", "b": "3", "c": "4"}, "annotations": {"k": "v"}}},
    ),
    Example(
        "14 two sources of one variable",
        spec(containers=[main(env=env(A="1"))]),
        spec(containers=[main(env=[{"name": "A", "valueFrom": {"secretKeyRef": {"name": "s", "key": "k"}}}])]),
        spec(
            containers=[
                main(env=[{"name": "A", "value": "1", "valueFrom": {"secretKeyRef": {"name": "s", "key": "k"}}}])
            ]
        ),
        refused="may not be specified when `value` is not empty",
    ),
    Example(
        "15 envFrom is atomic",
        spec(containers=[main(envFrom=[{"secretRef": {"name": "a"}}])]),
        spec(containers=[main(envFrom=[{"configMapRef": {"name": "b"}}])]),
        spec(containers=[main(envFrom=[{"configMapRef": {"name": "b"}}])]),
    ),
    Example(
        "16 host aliases",
        spec(hostAliases=[{"ip": "10.0.0.1", "hostnames": ["h1"]}]),
        spec(hostAliases=[{"ip": "10.0.0.1", "hostnames": ["h2"]}, {"ip": "10.0.0.2", "hostnames": ["h3"]}]),
        spec(hostAliases=[{"ip": "10.0.0.1", "hostnames": ["h2"]}, {"ip": "10.0.0.2", "hostnames": ["h3"]}]),
    ),
    Example(
        "17 null deletes",
        spec(tolerations=keyed("a"), nodeSelector={"x": "1"}),
        spec(tolerations=None, nodeSelector={"x": None}),
        spec(nodeSelector={}),
    ),
    Example(
        "18 element deleted",
        spec(containers=[main(), container("side", "s")]),
        spec(containers=[{"name": "side", "$patch": "delete"}]),
        spec(containers=[main()]),
    ),
    Example(
        "19 replace discards the list and the element",
        spec(volumes=[{"name": "v", "hostPath": {"path": "/d"}}, {"name": "w", "emptyDir": {}}]),
        spec(volumes=[{"name": "v", "$patch": "replace", "emptyDir": {}}]),
        spec(volumes=[]),
    ),
    Example(
        "20 absent means untouched",
        spec(volumes=[V], containers=[main(volumeMounts=[V_AT]), container("side", "s")], imagePullSecrets=[]),
        spec(imagePullSecrets=named("q")),
        spec(
            volumes=[V],
            containers=[main(volumeMounts=[V_AT]), container("side", "s")],
            imagePullSecrets=named("q"),
        ),
    ),
    Example("21 false is a value", spec(hostIPC=True), spec(hostIPC=False), spec(hostIPC=False)),
]

NVIDIA = """
description: certification
resources:
  resource_pool: A100
environment:
  image: nvcr.io/nvidia/pytorch:21.07-py3
  pod_spec:
    apiVersion: v1
    kind: Pod
    spec:
      restartPolicy: Never
      imagePullSecrets:
        - name: ngccred
      containers:
        - name: determined-container
          volumeMounts:
            - name: datasets
              mountPath: /datasets
            - name: dshm
              mountPath: /dev/shm
        - name: nvcertjob
          image: nvcr.io/nvidia/cuda:11.4.0-base-ubuntu20.04
          command: ["/bin/bash", "-c", "nvidia-smi && sleep 3600"]
          resources:
            limits:
              nvidia.com/gpu: 0
          volumeMounts:
            - name: datasets
              mountPath: /datasets
      volumes:
        - name: datasets
          persistentVolumeClaim:
            claimName: datasets-pvc
        - name: dshm
          emptyDir:
            medium: Memory
"""
"""What users write (docs/reference/kubernetes.md 18), to be taken as it is; to be an experiment it needs two lines
more."""
