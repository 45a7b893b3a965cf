"""A private container registry on a port of this machine: whoever has the password may have one image.

Only manifests are served. Docker on the nodes has the image under another name; it knows from the manifest that this is
the same, and asks for no layer. What is left is what tests are about: who may pull. Basic authentication over HTTP,
because Docker takes a registry on loopback without TLS.
Source: https://distribution.github.io/distribution/spec/api/ and .../spec/manifest-v2-2/.
"""

from __future__ import annotations

import base64
import hashlib
import json
import shutil
import subprocess
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Final

import pytest

USERNAME: Final = "ada"
PASSWORD: Final = "Analytical 1"
_MANIFEST: Final = "application/vnd.docker.distribution.manifest.v2+json"
_CONFIG: Final = "application/vnd.docker.container.image.v1+json"
_LAYER: Final = "application/vnd.docker.image.rootfs.diff.tar.gzip"


@dataclass(frozen=True)
class Registry:
    address: str
    """``host:port``, the first part of the names of its images."""

    def image(self, name: str) -> str:
        """There is one image, which has any name."""
        return f"{self.address}/{name}"


@contextmanager
def private_registry(image: str) -> Iterator[Registry]:
    """A registry for ``image`` of the Docker on this machine; Docker forgets the names. Skips without Docker."""
    if not _has_docker():
        pytest.skip("needs Docker on this machine, and a node that pulls with it")
    server = ThreadingHTTPServer(("127.0.0.1", 0), _handler(_manifest(image)))
    registry = Registry(f"127.0.0.1:{server.server_address[1]}")
    thread = threading.Thread(target=server.serve_forever)
    thread.start()
    try:
        yield registry
    finally:
        server.shutdown()
        server.server_close()
        thread.join()
        named = _docker("image", "ls", "--format", "{{.Repository}}:{{.Tag}}").splitlines()
        if pulled := [name for name in named if name.startswith(registry.address)]:
            _docker("image", "rm", "--force", *pulled)


def _manifest(image: str) -> bytes:
    [found] = json.loads(_docker("image", "inspect", image))
    layers = [{"mediaType": _LAYER, "size": 1, "digest": digest} for digest in found["RootFS"]["Layers"]]
    config = {"mediaType": _CONFIG, "size": 1, "digest": found["Id"]}
    return json.dumps({"schemaVersion": 2, "mediaType": _MANIFEST, "config": config, "layers": layers}).encode()


def _has_docker() -> bool:
    return (
        bool(shutil.which("docker"))
        and not subprocess.run(["docker", "info"], check=False, capture_output=True).returncode
    )


def _docker(*arguments: str) -> str:
    return subprocess.run(["docker", *arguments], check=True, capture_output=True, text=True, timeout=60).stdout


def _handler(manifest: bytes) -> type[BaseHTTPRequestHandler]:
    digest = f"sha256:{hashlib.sha256(manifest).hexdigest()}"
    credentials = "Basic " + base64.b64encode(f"{USERNAME}:{PASSWORD}".encode()).decode()

    class Handler(BaseHTTPRequestHandler):
        protocol_version = "HTTP/1.1"

        def do_GET(self) -> None:
            if self.headers.get("Authorization") != credentials:
                error = {"errors": [{"code": "UNAUTHORIZED", "message": "authentication required"}]}
                self.answer(401, json.dumps(error).encode(), **{"WWW-Authenticate": 'Basic realm="private"'})
            elif "/manifests/" in self.path:
                self.answer(200, manifest, **{"Content-Type": _MANIFEST, "Docker-Content-Digest": digest})
            elif self.path == "/v2/":
                self.answer(200, b"{}")
            else:
                self.answer(404, b'{"errors": [{"code": "BLOB_UNKNOWN", "message": "layers are not served"}]}')

        do_HEAD = do_GET  # noqa: N815

        def answer(self, status: int, body: bytes, **headers: str) -> None:
            self.send_response(status)
            described = {"Content-Type": "application/json", "Content-Length": str(len(body))}
            for name, value in {**described, **headers}.items():
                self.send_header(name, value)
            self.end_headers()
            if self.command == "GET":
                self.wfile.write(body)

        def log_message(self, format: str, *args: object) -> None:
            """Say nothing."""

    return Handler
