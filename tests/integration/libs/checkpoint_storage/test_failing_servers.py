"""Storage that is away, slow, full or refuses: what whoever waits is told, and what stands in the log."""

from __future__ import annotations

import socket
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from datetime import timedelta
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer

import pytest
import structlog

from deploy.local.servers.ports import free_port
from deploy.operations.doctor.storage import check_storage
from libs.checkpoint_storage import opening
from libs.checkpoint_storage.files import BucketFiles
from libs.errors import FailedPrecondition, ResoluteError, Unavailable
from services.api.downloads.archives import Format
from services.api.downloads.storage import checkpoint_archive


@contextmanager
def answering(status: int, code: str) -> Iterator[str]:
    """The address of a server with one answer."""

    class Handler(BaseHTTPRequestHandler):
        def do_GET(self) -> None:
            self.rfile.read(int(self.headers.get("content-length") or 0))
            body = f"<Error><Code>{code}</Code></Error>".encode()
            self.send_response(status)
            self.send_header("content-length", str(len(body)))
            self.end_headers()
            self.wfile.write(body)

        do_PUT = do_DELETE = do_GET  # noqa: N815

        def log_message(self, *_: object) -> None:
            pass

    with ThreadingHTTPServer(("127.0.0.1", 0), Handler) as server:
        threading.Thread(target=server.serve_forever, daemon=True).start()
        yield f"http://127.0.0.1:{server.server_port}"
        server.shutdown()


def section(url: str) -> dict[str, str]:
    keys = {"access_key": "key", "secret_key": "most secret"}
    return {"type": "s3", "bucket": "bucket", "prefix": "a/b", "endpoint_url": url, **keys}


@pytest.mark.parametrize(
    ("status", "code", "known", "words"),
    [
        (403, "AccessDenied", FailedPrecondition, "refuses its keys: 403 AccessDenied"),
        (401, "", FailedPrecondition, "refuses its keys: 401"),
        (404, "NoSuchBucket", FailedPrecondition, "does not exist: 404 NoSuchBucket"),
        (400, "AuthorizationHeaderMalformed", FailedPrecondition, "refuses the request: 400 AuthorizationHeader"),
        (503, "SlowDown", Unavailable, "does not answer: 503 SlowDown"),
        (429, "TooManyRequests", Unavailable, "does not answer: 429 TooManyRequests"),
        (507, "XMinioStorageFull", Unavailable, "is full: 507 XMinioStorageFull"),
    ],
)
def test_answers_that_are_none(status: int, code: str, known: type[ResoluteError], words: str) -> None:
    with answering(status, code) as url, structlog.testing.capture_logs() as lines:
        place = f"s3://bucket/a/b at {url}"
        with pytest.raises(known) as caught:
            next(checkpoint_archive("u-1", section(url), {}, Format.TGZ))
        assert str(caught.value).startswith(f"checkpoint storage {place} {words}")
        with pytest.raises(known):
            BucketFiles(section(url), "probe").try_to_write()
        found = check_storage(section(url), {})
        assert found.level == "problem"
        assert found.says.startswith(f"checkpoint storage {place} {words.partition(':')[0]}")
    assert {(line["event"], line["storage"]) for line in lines} == {("storage.failed", place)}
    assert all(str(status) in line["reason"] for line in lines)
    assert "most secret" not in str(lines)


def test_storage_that_is_away() -> None:
    url = f"http://127.0.0.1:{free_port()}"
    found = check_storage(section(url), {})
    assert (found.level, found.says) == ("problem", f"checkpoint storage s3://bucket/a/b at {url} does not answer")
    with pytest.raises(Unavailable, match=f"s3://bucket/a/b at {url} does not answer"):
        next(checkpoint_archive("u-1", section(url), {}, Format.TGZ))


def test_storage_that_takes_requests_and_says_nothing(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(opening._CLIENT, "read_timeout", "200ms")
    with socket.create_server(("127.0.0.1", 0)) as server:
        url = f"http://127.0.0.1:{server.getsockname()[1]}"
        found = check_storage(section(url), {})
        assert (found.level, found.says) == ("problem", f"checkpoint storage s3://bucket/a/b at {url} does not answer")
        with pytest.raises(Unavailable, match="does not answer"):
            next(checkpoint_archive("u-1", section(url), {}, Format.TGZ))


LISTING = (
    "<ListBucketResult><Contents><Key>a/b/u-1/weights.pt</Key><LastModified>2030-01-01T00:00:00.000Z</LastModified>"
    '<ETag>"e"</ETag><Size>1000000</Size></Contents><IsTruncated>false</IsTruncated></ListBucketResult>'
)


@contextmanager
def stopping_in_a_file(*, hangs_up: bool) -> Iterator[str]:
    """The address of a server that lists a file of a megabyte, and never sends more than its first bytes."""
    is_over = threading.Event()

    class Handler(BaseHTTPRequestHandler):
        def do_GET(self) -> None:
            if "list-type" in self.path:
                self._head(len(LISTING))
                self.wfile.write(LISTING.encode())
                return
            self._head(1_000_000)
            self.wfile.write(bytes(1000))
            self.wfile.flush()
            self.close_connection = True
            if not hangs_up:
                is_over.wait()

        def _head(self, size: int) -> None:
            self.send_response(200)
            self.send_header("content-length", str(size))
            self.send_header("etag", '"e"')
            self.send_header("last-modified", "Tue, 01 Jan 2030 00:00:00 GMT")
            self.end_headers()

        def log_message(self, *_: object) -> None:
            pass

    with ThreadingHTTPServer(("127.0.0.1", 0), Handler) as server:
        threading.Thread(target=server.serve_forever, daemon=True).start()
        try:
            yield f"http://127.0.0.1:{server.server_port}"
        finally:
            is_over.set()
            server.shutdown()


@pytest.mark.parametrize("hangs_up", [True, False])
def test_storage_that_stops_in_the_middle_of_a_file(monkeypatch: pytest.MonkeyPatch, hangs_up: bool) -> None:
    """An archive that ended there would look whole."""
    monkeypatch.setitem(opening._CLIENT, "read_timeout", "200ms")
    monkeypatch.setitem(opening._RETRIES, "retry_timeout", timedelta(seconds=1))
    with (
        stopping_in_a_file(hangs_up=hangs_up) as url,
        structlog.testing.capture_logs() as lines,
        pytest.raises(Unavailable, match=f"s3://bucket/a/b at {url} does not answer"),
    ):
        list(checkpoint_archive("u-1", section(url), {}, Format.TGZ))
    assert [(line["event"], line["storage"]) for line in lines] == [("storage.failed", f"s3://bucket/a/b at {url}")]
