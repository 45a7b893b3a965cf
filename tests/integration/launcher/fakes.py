"""The log intake and the master, as tasks see them over HTTP."""

from __future__ import annotations

import itertools
import json
import ssl
import threading
import zlib
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any

from libs.capture.lines import STREAMS, CapturedLine, EndOfStream, decode, stream_of
from services.logs.lines.bodies import Shipped, records_of
from tests.harness.certificates import Pair


@dataclass
class FakeIntake:
    """Keeps every line once by its number, as the writer of the logs service does."""

    url: str = ""
    requests: list[dict[str, str]] = field(default_factory=list)
    lines: dict[tuple[str, str], dict[int, bytes]] = field(default_factory=dict)
    """By pod and stream, payload by number."""
    ends: dict[tuple[str, str], EndOfStream] = field(default_factory=dict)
    refuse: Callable[[list[Shipped]], int] = lambda _records: 200
    refused: int = 0
    asked: list[dict[str, str]] = field(default_factory=list)
    """Headers of those who asked whether their streams are complete."""
    tell: Callable[[str], int] = lambda _pod: 200
    """Status of the answer to that."""

    def take(self, headers: dict[str, str], body: bytes) -> int:
        records = []
        for record in records_of(zlib.decompress(body, 31)):
            assert isinstance(record, Shipped), record
            records.append(record)
        status = self.refuse(records)
        if status != 200:
            self.refused += 1
            return status
        self.requests.append(headers)
        for record in records:
            stream = stream_of(record.path)
            captured = decode(record.log)
            assert stream is not None
            key = (headers["x-det-pod"], stream[0])
            match captured:
                case EndOfStream():
                    self.ends[key] = captured
                case CapturedLine(seq=seq, payload=payload):
                    assert self.lines.setdefault(key, {}).setdefault(seq, payload) == payload
                case None:
                    raise AssertionError(f"not a record: {record.log!r}")
        return 200

    def progress(self, headers: dict[str, str]) -> tuple[int, dict[str, Any]]:
        """Status and answer for a pod that asks whether its streams are complete."""
        self.asked.append(headers)
        pod = headers["x-det-pod"]
        missing = [stream for stream in STREAMS if not self._is_complete((pod, stream))]
        stored = {stream: self._stored((pod, stream)) for stream in STREAMS}
        return self.tell(pod), {"complete": not missing, "missing": missing, "stored": stored}

    def _is_complete(self, key: tuple[str, str]) -> bool:
        end = self.ends.get(key)
        return end is not None and self._stored(key) == end.seq

    def _stored(self, key: tuple[str, str]) -> int:
        """The number below which every line is there."""
        known = self.lines.get(key, {})
        return next(seq for seq in itertools.count() if seq not in known)

    def printed(self, stream: str = "stdout") -> list[bytes]:
        """Lines of the only pod, in order; fails on gaps."""
        for (_, name), lines in list(self.lines.items()):  # they grow while somebody looks
            if name == stream:
                by_seq = dict(lines)
                assert sorted(by_seq) == list(range(len(by_seq)))
                return [by_seq[seq] for seq in range(len(by_seq))]
        return []


@dataclass
class FakeMaster:
    """Answers what ``prep_container`` asks, and remembers it."""

    url: str = ""
    calls: list[tuple[str, str, Any]] = field(default_factory=list)
    peers: dict[str, Any] = field(default_factory=dict)
    context: str = ""
    slots_are_wanted: bool = False
    """By another job, of which those hear whose task has ended."""
    cut: list[str] = field(default_factory=list)
    """Ends of paths: the next request to such a path is heard, and the connection closed instead of an answer."""

    status_by_end: dict[str, list[int]] = field(default_factory=dict)
    """Of the answers to the next requests to paths that end so; 200 when there are no more."""

    def called(self, end: str) -> list[Any]:
        """Bodies of the calls to paths that end so."""
        return [body for _, path, body in list(self.calls) if path.endswith(end)]

    def status(self, path: str) -> int:
        waiting = next((statuses for end, statuses in self.status_by_end.items() if path.endswith(end)), [])
        return waiting.pop(0) if waiting else 200

    def answer(self, method: str, path: str, body: Any) -> Any:
        self.calls.append((method, path, body))
        if path.endswith("/signals/preemption?hasEnded=true"):
            return {"preempt": self.slots_are_wanted}
        if path.endswith("/context_directory"):
            return {"b64Tgz": self.context}
        if path.endswith("/all_gather"):
            return {"data": [body["data"]]}
        return {}


@contextmanager
def serve_intake(pair: Pair | None = None) -> Iterator[FakeIntake]:
    """With a certificate, if one is given."""
    fake = FakeIntake()

    class Handler(_Quiet):
        def do_POST(self) -> None:
            body = self.rfile.read(int(self.headers["Content-Length"]))
            status = 404
            if self.path == "/ingest/v1/logs":
                status = fake.take({name.lower(): value for name, value in self.headers.items()}, body)
            self.send_response(status)
            self.send_header("Content-Length", "0")
            self.end_headers()

        def do_GET(self) -> None:
            assert self.path.startswith("/ingest/v1/complete?wait_s=")
            status, answer = fake.progress({name.lower(): value for name, value in self.headers.items()})
            content = json.dumps(answer).encode()
            self.send_response(status)
            self.send_header("Content-Length", str(len(content)))
            self.end_headers()
            self.wfile.write(content)

    with _serve(Handler, pair) as fake.url:
        yield fake


@contextmanager
def serve_master() -> Iterator[FakeMaster]:
    fake = FakeMaster()

    class Handler(_Quiet):
        def do_GET(self) -> None:
            self._answer("GET")

        def do_POST(self) -> None:
            self._answer("POST")

        def do_PUT(self) -> None:
            self._answer("PUT")

        def _answer(self, method: str) -> None:
            raw = self.rfile.read(int(self.headers.get("Content-Length") or 0))
            content = json.dumps(fake.answer(method, self.path, json.loads(raw) if raw else None)).encode()
            for end in fake.cut:
                if self.path.endswith(end):
                    fake.cut.remove(end)
                    self.close_connection = True
                    return
            self.send_response(fake.status(self.path))
            self.send_header("Content-Length", str(len(content)))
            self.end_headers()
            self.wfile.write(content)

    with _serve(Handler) as fake.url:
        yield fake


class _Quiet(BaseHTTPRequestHandler):
    def log_message(self, format: str, *args: object) -> None:
        return


@contextmanager
def _serve(handler: type[BaseHTTPRequestHandler], pair: Pair | None = None) -> Iterator[str]:
    server = ThreadingHTTPServer(("127.0.0.1", 0), handler)
    if pair is not None:
        context = ssl.create_default_context(ssl.Purpose.CLIENT_AUTH)
        context.load_cert_chain(pair.cert, pair.key)
        server.socket = context.wrap_socket(server.socket, server_side=True)
    thread = threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.05}, daemon=True)
    thread.start()
    try:
        yield f"{'http' if pair is None else 'https'}://127.0.0.1:{server.server_address[1]}"
    finally:
        server.shutdown()
        server.server_close()
