"""Whose keys go where: those of this process to the endpoints that they belong to."""

from __future__ import annotations

import threading
from collections.abc import Iterator
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer

import obstore
import pytest

from libs.checkpoint_storage.opening import open_bucket


class _Endpoint(ThreadingHTTPServer):
    """Remembers what each request was signed with."""

    def __init__(self) -> None:
        super().__init__(("127.0.0.1", 0), _Handler)
        self.signed: list[str] = []

    @property
    def url(self) -> str:
        return f"http://127.0.0.1:{self.server_port}"


class _Handler(BaseHTTPRequestHandler):
    server: _Endpoint

    def do_GET(self) -> None:
        self.server.signed.append(self.headers.get("Authorization", "") + self.headers.get("x-amz-security-token", ""))
        self.send_response(404)
        self.send_header("Content-Length", "0")
        self.end_headers()

    def log_message(self, *_: object) -> None:
        pass


@pytest.fixture
def endpoint(monkeypatch: pytest.MonkeyPatch) -> Iterator[_Endpoint]:
    for name, value in {"ACCESS_KEY_ID": "OURS", "SECRET_ACCESS_KEY": "s", "SESSION_TOKEN": "TOKEN"}.items():
        monkeypatch.setenv(f"AWS_{name}", value)
    for name in ("AWS_ENDPOINT_URL", "AWS_ENDPOINT_URL_S3", "AWS_ENDPOINT"):
        monkeypatch.delenv(name, raising=False)
    with _Endpoint() as server:
        thread = threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.01})
        thread.start()
        yield server
        server.shutdown()
        thread.join()


def _asked(storage: dict[str, str], home: dict[str, str] | None = None) -> None:
    with pytest.raises(FileNotFoundError):
        obstore.get(open_bucket(storage, home), "x")


def test_an_endpoint_that_a_user_names_sees_no_key_of_ours(endpoint: _Endpoint) -> None:
    _asked({"type": "s3", "bucket": "b", "endpoint_url": endpoint.url})
    _asked({"type": "s3", "bucket": "b", "endpoint_url": endpoint.url}, {"type": "s3", "endpoint_url": "http://minio"})
    assert endpoint.signed == ["", ""]


def test_keys_of_the_configuration_are_used_alone(endpoint: _Endpoint) -> None:
    _asked({"type": "s3", "bucket": "b", "endpoint_url": endpoint.url, "access_key": "THEIRS", "secret_key": "t"})
    assert "THEIRS" in endpoint.signed[0]
    assert "TOKEN" not in endpoint.signed[0]


def test_the_endpoint_of_the_cluster_sees_keys_of_the_process(endpoint: _Endpoint) -> None:
    storage = {"type": "s3", "bucket": "b", "endpoint_url": endpoint.url}
    _asked(storage, {"type": "s3", "bucket": "other", "endpoint_url": f"{endpoint.url}/"})
    assert "OURS" in endpoint.signed[0]


def test_so_does_one_that_the_environment_names(endpoint: _Endpoint, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("AWS_ENDPOINT_URL", endpoint.url)
    _asked({"type": "s3", "bucket": "b", "endpoint_url": endpoint.url})
    assert "OURS" in endpoint.signed[0]
