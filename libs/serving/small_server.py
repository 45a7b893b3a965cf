"""A small HTTP server for a WSGI application: one request per connection, without a body, each in a thread.

That of the standard library brings along an HTTP client, mail and TLS, in each service.
"""

from __future__ import annotations

import io
import select
import socket
import sys
import threading
import time
from contextlib import suppress
from typing import TYPE_CHECKING, Any, Final
from urllib.parse import unquote

import structlog

if TYPE_CHECKING:
    from wsgiref.types import WSGIApplication, WSGIEnvironment

log = structlog.get_logger()

LARGEST_HEAD: Final = 16 * 1024
_BACKLOG: Final = 128


class SmallServer:
    """Serves from ``start`` to ``close``; where the application raises, the answer is 500."""

    def __init__(self, host: str, port: int, application: WSGIApplication, *, silent_client_s: float) -> None:
        """silent_client_s  how long a client may take to send its request, and to take each part of the answer

        Raises OSError when the address is taken.
        """
        family = socket.AF_INET6 if ":" in host else socket.AF_INET
        self._listener = socket.create_server((host, port), family=family, backlog=_BACKLOG)
        self.port: int = self._listener.getsockname()[1]
        self._application = application
        self._silent_client_s = silent_client_s
        self._closing, self._wake = socket.socketpair()
        self._thread = threading.Thread(target=self._accept, name="status", daemon=True)

    def start(self) -> None:
        self._thread.start()

    def close(self) -> None:
        """Take no more connections. Blocks for a moment; those that are being answered still are."""
        self._wake.send(b"\0")
        self._thread.join()
        for each in (self._listener, self._closing, self._wake):
            each.close()

    def _accept(self) -> None:
        waiting = select.poll()
        for each in (self._listener, self._closing):
            waiting.register(each, select.POLLIN)
        while not any(descriptor == self._closing.fileno() for descriptor, _ in waiting.poll()):
            try:
                client, _ = self._listener.accept()
            except OSError:  # it has gone again, or there is no descriptor left for it
                time.sleep(0.01)
                continue
            try:
                threading.Thread(target=self._serve, args=(client,), name="status request", daemon=True).start()
            except RuntimeError:  # there is no thread left for it
                client.close()
                time.sleep(0.01)

    def _serve(self, client: socket.socket) -> None:
        with client, suppress(OSError):
            head = self._head(client)
            if head is None:
                return
            answer = self._answer(head)
            client.settimeout(self._silent_client_s)
            client.sendall(answer)
            client.shutdown(socket.SHUT_WR)

    def _answer(self, head: bytes) -> bytes:
        environ = environ_of(head)
        if environ is None:
            return _without_body("400 Bad Request")
        try:
            return answer_of(self._application, environ)
        except Exception:
            log.exception("status.failed", path=environ["PATH_INFO"])
            return _without_body("500 Internal Server Error")

    def _head(self, client: socket.socket) -> bytes | None:
        """What comes before the empty line; None when it does not come, or is too long."""
        head, until = b"", time.monotonic() + self._silent_client_s
        while b"\r\n\r\n" not in head:
            client.settimeout(max(0.001, until - time.monotonic()))
            more = client.recv(LARGEST_HEAD)
            head += more
            if not more or len(head) > LARGEST_HEAD:
                return None
        return head.partition(b"\r\n\r\n")[0]


def _without_body(status: str) -> bytes:
    return f"HTTP/1.0 {status}\r\nContent-Length: 0\r\nConnection: close\r\n\r\n".encode()


def environ_of(head: bytes) -> WSGIEnvironment | None:
    """What a request says, as PEP 3333 has it; None when it is none of HTTP/1."""
    line, *fields = head.decode("latin-1").split("\r\n")
    parts = line.split(" ")
    if len(parts) != 3 or not parts[2].startswith("HTTP/1."):
        return None
    path, _, query = parts[1].partition("?")
    environ: dict[str, Any] = {
        "REQUEST_METHOD": parts[0],
        "SCRIPT_NAME": "",
        "PATH_INFO": unquote(path, "latin-1"),
        "QUERY_STRING": query,
        "SERVER_PROTOCOL": parts[2],
        "wsgi.version": (1, 0),
        "wsgi.url_scheme": "http",
        "wsgi.input": io.BytesIO(),
        "wsgi.errors": sys.stderr,
        "wsgi.multithread": True,
        "wsgi.multiprocess": False,
        "wsgi.run_once": False,
    }
    for field in fields:
        name, _, value = field.partition(":")
        key = "HTTP_" + name.strip().upper().replace("-", "_")
        environ[key] = f"{environ[key]},{value.strip()}" if key in environ else value.strip()
    return environ


def answer_of(application: WSGIApplication, environ: WSGIEnvironment) -> bytes:
    """The whole answer; to HEAD without its body."""
    said: list[tuple[str, list[tuple[str, str]]]] = []

    def start_response(status: str, headers: list[tuple[str, str]], exc_info: Any = None) -> Any:
        said.append((status, headers))

    body = b"".join(application(environ, start_response))
    status, headers = said[-1]
    now = time.strftime("%a, %d %b %Y %H:%M:%S GMT", time.gmtime())
    headers = [("Date", now), *headers, ("Content-Length", str(len(body))), ("Connection", "close")]
    lines = [f"HTTP/1.0 {status}", *(f"{name}: {value}" for name, value in headers)]
    head = "\r\n".join((*lines, "", "")).encode("latin-1")
    return head if environ["REQUEST_METHOD"] == "HEAD" else head + body
