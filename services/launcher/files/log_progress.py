"""Asks the log intake how far the output of this pod is stored, and the master whether somebody waits for its slots.

For the wrappers around ``capture.py``, which load it when the task is over or the disk full, and not before: a client
for HTTP takes several megabytes. Standard library of Python 3.8 only. Who the pod is comes from its environment.
"""

from __future__ import annotations

import contextlib
import http.client
import importlib
import json
import os
import socket
import time
import urllib.parse
from collections.abc import Callable
from typing import Any

ASK_S = 10.0
"""How long the intake may hold a question back until everything is stored."""
ANSWER_S = 5.0
"""Longest time for the answer beyond that."""
PAUSE_S = 1.0
"""Shortest time between two questions."""
WANTED_AGAIN_S = 5.0
"""How often the master is asked."""
HOPELESS = (401, 404)
"""No token, or an intake of a release that cannot tell: asking again does not help."""


class CannotTellError(Exception):
    """The intake does not know, and never will."""


class AwayError(Exception):
    """There is no intake, or one that cannot work."""


UNKNOWN = (CannotTellError, AwayError, OSError, http.client.HTTPException, ValueError, LookupError, TypeError)
"""What is raised when there is no answer, or none that could be meant."""


class SlotsWanted:
    """Whether the task, which is over, is asked to leave, or another one waits for slots of its pool."""

    def __init__(self) -> None:
        self.master = urllib.parse.urlsplit(os.environ.get("DET_MASTER", ""))
        self.is_wanted = False
        self.ask_at = 0.0

    def __call__(self) -> bool:
        now = time.monotonic()
        if not self.is_wanted and self.master.hostname and now >= self.ask_at:
            with contextlib.suppress(*UNKNOWN):  # the master may be away as well
                self.is_wanted = self._ask()
            self.ask_at = time.monotonic() + WANTED_AGAIN_S
        return self.is_wanted

    def _ask(self) -> bool:
        allocation = urllib.parse.quote(os.environ.get("DET_ALLOCATION_ID", ""))
        path = f"{self.master.path.rstrip('/')}/api/v1/allocations/{allocation}/signals/preemption?hasEnded=true"
        headers = {"Authorization": "Bearer " + os.environ.get("DET_SESSION_TOKEN", ""), "Connection": "close"}
        connection = http.client.HTTPConnection(self.master.netloc)
        try:
            connection.sock = connect(
                self.master,
                ANSWER_S,
                ca_file=os.environ.get("DET_MASTER_CERT_FILE", ""),
                server_name=os.environ.get("DET_MASTER_CERT_NAME", ""),
            )
            connection.request("GET", path, headers=headers)
            answer = connection.getresponse()
            return answer.status == 200 and bool(json.loads(answer.read())["preempt"])
        finally:
            connection.close()


def connect(url: urllib.parse.SplitResult, timeout_s: float, *, ca_file: str, server_name: str) -> socket.socket:
    """``server_name`` is empty where the certificate has the name of the host."""
    is_tls = url.scheme == "https"
    connections = importlib.import_module("intake_connection")
    connection: socket.socket = connections.connect(
        url.hostname or "",
        url.port or (443 if is_tls else 80),
        timeout_s,
        tls=is_tls,
        ca_file=ca_file,
        server_name=server_name or url.hostname or "",
    )
    return connection


class LogProgress:
    def __init__(self, url: str, headers: dict[str, str], *, ca_file: str = "", server_name: str = "") -> None:
        """``url`` is the base URL of the intake; ``ca_file`` may be ``noverify``."""
        self.url = urllib.parse.urlsplit(url)
        self.headers = headers
        self.ca_file = ca_file
        self.server_name = server_name

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

    def wait_until_complete(self, left_s: Callable[..., float], meanwhile: Callable[[], bool]) -> bool:
        """Whether both streams, with their ends, were stored while there was patience.

        left_s     patience that is left, told whether the intake was away (``is_away``)
        meanwhile  called between questions; True asks for the next one soon
        """
        is_away = False
        while True:
            patience_s = left_s(is_away=is_away)
            if patience_s <= 0:
                return False
            began = time.monotonic()
            wait_s = 0.0 if meanwhile() else min(patience_s, ASK_S)
            try:
                if self._ask(wait_s, timeout_s=min(patience_s, wait_s + ANSWER_S))["complete"]:
                    return True
                is_away = False
            except CannotTellError:
                return False
            except UNKNOWN as error:
                is_away = isinstance(error, AwayError)  # it may know the next time
            time.sleep(max(0.0, min(PAUSE_S, patience_s) - (time.monotonic() - began)))

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
            try:
                connection.sock = connect(
                    self.url, min(timeout_s, ANSWER_S), ca_file=self.ca_file, server_name=self.server_name
                )
            except OSError as error:
                raise AwayError(str(error)) from error
            connection.sock.settimeout(timeout_s)
            path = f"{self.url.path.rstrip('/')}/ingest/v1/complete?wait_s={wait_s:.1f}"
            connection.request("GET", path, headers=self.headers)
            answer = connection.getresponse()
            body = answer.read()
        except (ConnectionError, http.client.HTTPException) as error:
            raise AwayError(str(error)) from error
        finally:
            connection.close()
        if answer.status in HOPELESS:
            raise CannotTellError
        if answer.status >= 500:
            raise AwayError(f"status {answer.status}")
        if answer.status != 200:
            raise ConnectionAbortedError(f"status {answer.status}")
        progress: dict[str, Any] = json.loads(body)
        return progress
