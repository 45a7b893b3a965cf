"""A private container registry on a port of this machine: whoever has the password may have one image.

Only manifests are served. The node has the image under another name; it knows from the manifest that this is the same,
and asks for no layer. What is left is what tests are about: who may pull. Basic authentication over HTTP, because
Docker and containerd take a registry on loopback without TLS.
Source: https://distribution.github.io/distribution/spec/api/ and .../spec/manifest-v2-2/.
"""

from __future__ import annotations

import base64
import hashlib
import json
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Final

from tests.harness.image_stores import MANIFEST_TYPE, find_image_store

USERNAME: Final = "ada"
PASSWORD: Final = "Analytical 1"


@dataclass(frozen=True)
class Registry:
    address: str
    """``host:port``, the first part of the names of its images."""

    def image(self, name: str) -> str:
        """There is one image, which has any name."""
        return f"{self.address}/{name}"


@contextmanager
def private_registry(image: str) -> Iterator[Registry]:
    """A registry for an ``image`` that the node of this machine has; it forgets the new names. Skips without a node."""
    store = find_image_store()
    server = ThreadingHTTPServer(("127.0.0.1", 0), _handler(store.manifest(image)))
    registry = Registry(f"127.0.0.1:{server.server_address[1]}")
    thread = threading.Thread(target=server.serve_forever)
    thread.start()
    try:
        yield registry
    finally:
        server.shutdown()
        server.server_close()
        thread.join()
        if pulled := [name for name in store.names() if name.startswith(registry.address)]:
            store.forget(pulled)


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
                self.answer(200, manifest, **{"Content-Type": MANIFEST_TYPE, "Docker-Content-Digest": digest})
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
