"""A Kubernetes API that answers what the chart asks while it is rendered, for tests without a cluster."""

from __future__ import annotations

import json
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from threading import Thread
from typing import Any, Final

Manifest = dict[str, Any]

_KINDS: Final = {
    "v1": {
        "Namespace": "namespaces",
        "PersistentVolumeClaim": "persistentvolumeclaims",
        "Secret": "secrets",
        "Service": "services",
        "ServiceAccount": "serviceaccounts",
    },
    "apps/v1": {"Deployment": "deployments", "StatefulSet": "statefulsets"},
    "batch/v1": {"Job": "jobs"},
    "scheduling.k8s.io/v1": {"PriorityClass": "priorityclasses"},
}
_OF_THE_CLUSTER: Final = {"Namespace", "PriorityClass"}


@contextmanager
def answering_cluster(objects: Sequence[Manifest]) -> Iterator[str]:
    """Address of an API server that has these objects and no others; each says its namespace."""
    answers = dict(_discovery())
    for each in [{"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": "kube-system"}}, *objects]:
        metadata, plural = each["metadata"], _KINDS[each["apiVersion"]][each["kind"]]
        namespace = f"/namespaces/{metadata['namespace']}" if "namespace" in metadata else ""
        answers[f"{_root(each['apiVersion'])}{namespace}/{plural}/{metadata['name']}"] = each

    class Handler(BaseHTTPRequestHandler):
        def do_GET(self) -> None:
            path = self.path.partition("?")[0]
            gone = {"apiVersion": "v1", "kind": "Status", "status": "Failure", "reason": "NotFound", "code": 404}
            body = json.dumps(answers.get(path, gone)).encode()
            self.send_response(200 if path in answers else 404)
            self.send_header("Content-Type", "application/json")
            self.send_header("Content-Length", str(len(body)))
            self.end_headers()
            self.wfile.write(body)

        def log_message(self, *_: object) -> None:
            """Nothing is logged."""

    with ThreadingHTTPServer(("127.0.0.1", 0), Handler) as server:
        thread = Thread(target=server.serve_forever)
        thread.start()
        try:
            yield f"http://127.0.0.1:{server.server_port}"
        finally:
            server.shutdown()
            thread.join()


def _root(version: str) -> str:
    return f"/apis/{version}" if "/" in version else f"/api/{version}"


def _discovery() -> Iterator[tuple[str, Manifest]]:
    yield "/version", {"major": "1", "minor": "33", "gitVersion": "v1.33.0"}
    yield "/api", {"kind": "APIVersions", "versions": ["v1"]}
    groups = [
        {"name": version.partition("/")[0], "versions": [{"groupVersion": version, "version": "v1"}]}
        for version in _KINDS
        if "/" in version
    ]
    yield "/apis", {"kind": "APIGroupList", "apiVersion": "v1", "groups": groups}
    for version, kinds in _KINDS.items():
        resources = [
            {
                "name": plural,
                "singularName": "",
                "kind": kind,
                "namespaced": kind not in _OF_THE_CLUSTER,
                "verbs": ["get", "list"],
            }
            for kind, plural in kinds.items()
        ]
        yield _root(version), {"kind": "APIResourceList", "groupVersion": version, "resources": resources}
