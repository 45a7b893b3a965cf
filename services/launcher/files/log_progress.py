"""Asks the log intake how far the output of this pod is stored.

For ``capture_until_stored.py``, which loads it when the task is over or the disk full, and not before: a client for
HTTP takes several megabytes. Standard library of Python 3.8 only. Who the pod is comes from its environment.
"""

from __future__ import annotations

import http.client
import importlib
import json
import os
import socket
import time
import urllib.parse
from typing import Any

ASK_S = 10.0
"""How long the intake may hold a question back until everything is stored."""
ANSWER_S = 5.0
"""Longest time for the answer beyond that."""
PAUSE_S = 1.0
"""Shortest time between two questions."""
HOPELESS = (401, 404)
"""No token, or an intake of a release that cannot tell: asking again does not help."""


class CannotTellError(Exception):
    """The intake does not know, and never will."""


UNKNOWN = (CannotTellError, OSError, http.client.HTTPException, ValueError, LookupError, TypeError)
"""What is raised when there is no answer, or none that could be meant."""


class LogProgress:
    def __init__(self, url: str, headers: dict[str, str], *, ca_file: str = "", server_name: str = "") -> None:
        """``url`` is the base URL of the intake; ``ca_file`` may be ``noverify``."""
        self.url = urllib.parse.urlsplit(url)
        self.headers = headers
        self.ca_file = ca_file
        self.server_name = server_name or self.url.hostname or ""

    @classmethod
    def of_this_pod(cls, url: str) -> LogProgress:
        headers = {
            "Authorization": "Bearer " + os.environ.get("DET_SESSION_TOKEN", ""),
            "X-Det-Pod": os.environ.get("DET_CONTAINER_ID", ""),
            "X-Det-Restart": "0",
            "Connection": "close",
        }
        ca_file, server_name = (os.environ.get(f"DET_MASTER_CERT_{part}", "") for part in ("FILE", "NAME"))
        return cls(url, headers, ca_file=ca_file, server_name=server_name)

    def wait_until_complete(self, bound_s: float) -> bool:
        """Whether both streams, with their ends, were stored within ``bound_s``."""
        deadline = time.monotonic() + bound_s
        while True:
            began = time.monotonic()
            if not began < deadline:
                return False
            wait_s = min(deadline - began, ASK_S)
            try:
                if self._ask(wait_s, timeout_s=min(deadline - began, wait_s + ANSWER_S))["complete"]:
                    return True
            except CannotTellError:
                return False
            except UNKNOWN:
                pass  # it may know the next time
            time.sleep(max(0.0, min(began + PAUSE_S, deadline) - time.monotonic()))

    def stored(self) -> dict[str, int]:
        """By stream the number below which every line is stored; empty when nobody can tell."""
        try:
            numbers: dict[str, int] = self._ask(0, timeout_s=ANSWER_S)["stored"]
        except UNKNOWN:
            return {}
        return numbers

    def _ask(self, wait_s: float, *, timeout_s: float) -> dict[str, Any]:
        connection = http.client.HTTPConnection(self.url.netloc)
        try:
            connection.sock = self._connect(timeout_s)
            path = f"{self.url.path.rstrip('/')}/ingest/v1/complete?wait_s={wait_s:.1f}"
            connection.request("GET", path, headers=self.headers)
            answer = connection.getresponse()
            body = answer.read()
        finally:
            connection.close()
        if answer.status in HOPELESS:
            raise CannotTellError
        if answer.status != 200:
            raise ConnectionAbortedError(f"status {answer.status}")
        progress: dict[str, Any] = json.loads(body)
        return progress

    def _connect(self, timeout_s: float) -> socket.socket:
        is_tls = self.url.scheme == "https"
        connections = importlib.import_module("intake_connection")
        connection: socket.socket = connections.connect(
            self.url.hostname or "",
            self.url.port or (443 if is_tls else 80),
            timeout_s,
            tls=is_tls,
            ca_file=self.ca_file,
            server_name=self.server_name,
        )
        return connection
