"""Checks whether the NATS of this machine stores what it is given, and whether its disk could.

It speaks the protocol of NATS by itself, as the supervisor does with the standard library alone: one connection, one
message to each stream, and their acknowledgements.
Source: https://docs.nats.io/reference/reference-protocols/nats-protocol; NATS ADR-4 (headers), ADR-43 (TTL).
"""

from __future__ import annotations

import json
import os
import socket
import time
from collections.abc import Sequence
from contextlib import suppress
from pathlib import Path
from typing import Any, BinaryIO, Final, NamedTuple

from deploy.file_systems import ENOUGH_BYTES

TIMEOUT_S: Final = 2.0

_FULL_BY_ITS_LIMIT: Final = 10077
_HEADERS: Final = "NATS/1.0\r\nNats-TTL: 1s\r\n\r\n"


class StorageCheck(NamedTuple):
    port: int
    user: str
    password: str
    inbox: str
    """Prefix of the subjects on which this user may be answered."""
    subjects: dict[str, str]
    """Stream -> where a message for it goes."""
    directory: str
    """Where the server keeps them."""


def refused(check: StorageCheck) -> list[str]:
    """Streams that did not take a message; all when the server does not answer.

    One that nobody has made yet is not among them.
    """
    streams = list(check.subjects)
    answers: dict[str, bool] = {}
    give_up_at = time.monotonic() + TIMEOUT_S
    address = ("127.0.0.1", check.port)
    # That no answer comes, or none that makes sense, is what was to be found out.
    with suppress(OSError, ValueError), socket.create_connection(address, timeout=TIMEOUT_S) as connection:
        reader = connection.makefile("rb")
        if not json.loads(reader.readline().removeprefix(b"INFO ")).get("jetstream"):
            return streams
        connection.sendall(_request(check))
        while len(answers) < len(streams):
            connection.settimeout(max(0.001, give_up_at - time.monotonic()))
            _note(reader, streams, answers)
    return [stream for stream in streams if not answers.get(stream)]


def disk_can_store(directory: str) -> bool:
    """Whether a few megabytes can be written there, by doing so."""
    probe = Path(directory) / ".space"
    try:
        with probe.open("wb") as file:
            file.write(bytes(ENOUGH_BYTES))
            file.flush()
            os.fsync(file.fileno())
    except OSError:
        return False
    finally:
        with suppress(OSError):
            probe.unlink()
    return True


def _request(check: StorageCheck) -> bytes:
    options = {
        "verbose": False,
        "pedantic": False,
        "user": check.user,
        "pass": check.password,
        "name": "storage check",
        "lang": "python",
        "version": "1",
        "protocol": 1,
        "headers": True,
        "no_responders": True,
    }
    lines = [f"CONNECT {json.dumps(options)}\r\n", f"SUB {check.inbox}.* 1\r\n"]
    size = len(_HEADERS)
    for number, subject in enumerate(check.subjects.values()):
        lines.append(f"HPUB {subject} {check.inbox}.{number} {size} {size}\r\n{_HEADERS}\r\n")
    return "".join(lines).encode()


def _note(reader: BinaryIO, streams: Sequence[str], answers: dict[str, bool]) -> None:
    """Read one line and what belongs to it. Raises OSError when nothing comes any more."""
    words = reader.readline().split()
    if not words:
        raise ConnectionError("the server closed the connection")
    if words[0] not in (b"MSG", b"HMSG"):
        return
    payload = reader.read(int(words[-1]) + 2)
    stream = streams[int(words[1].rpartition(b".")[2])]
    answers[stream] = words[0] == b"HMSG" or _is_taken(json.loads(payload))


def _is_taken(answer: dict[str, Any]) -> bool:
    error = answer.get("error")
    return error is None or error.get("err_code") == _FULL_BY_ITS_LIMIT
