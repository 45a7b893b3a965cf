"""Limits of requests and connections of an HTTP server, which hold before anybody knows whose a request is."""

from __future__ import annotations

from typing import Annotated

from msgspec import Meta, Struct

KIB = 1024


class HttpLimits(Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    line_bytes: Annotated[int, Meta(ge=KIB)] = 64 * KIB
    """Longest request line, and longest header; more is answered with 414 and 431."""
    head_bytes: Annotated[int, Meta(ge=KIB)] = 128 * KIB
    """Longest head altogether."""
    headers: Annotated[int, Meta(ge=16)] = 128
    """Most headers of a request, with those behind its body."""
    head_s: Annotated[float, Meta(gt=0)] = 20.0
    """How long a head may take from its first byte, and the first byte of a new connection."""
    body_s: Annotated[float, Meta(gt=0)] = 60.0
    """How long a body may take; 408 afterwards."""
    body_bytes_per_s: Annotated[int, Meta(ge=1)] = 16 * KIB
    """What earns a body one more second: large ones over thin lines are welcome, slow ones are not."""
    linger_s: Annotated[float, Meta(gt=0)] = 10.0
    """How long the rest of a request is still read, and dropped, once it has its answer, so that the answer is seen."""
    connections: Annotated[int, Meta(ge=1)] = 20_000
    """Connections served at once, as far as the operating system lets a process have so many; 503 beyond."""
