"""Settings of the proxy into tasks."""

from __future__ import annotations

from typing import Annotated

from msgspec import Meta, Struct


class ProxySettings(Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    connections: Annotated[int, Meta(ge=1)] = 5_000
    """Requests and websockets to tasks at the same time; 503 beyond, and clients come again."""
    demand_token: bool = False
    """Whether shells and other ports that say ``unauthenticated`` ask for a token all the same. ``det shell open``
    sends none: users then run ssh with ``--auth`` in its ProxyCommand."""
    strangers_per_address: Annotated[int, Meta(ge=1)] = 200
    """Requests and connections without a token that one address may have to tasks at the same time; 503 beyond."""
    dial_timeout_s: Annotated[float, Meta(gt=0)] = 5.0
    """How long a task may take to accept a connection; 502 afterwards."""
    ping_interval_s: Annotated[float, Meta(gt=0)] = 25.0
    """How often the client of a TCP connection or of a silent websocket is pinged; shorter than proxies in between let
    a connection be silent."""
    recheck_interval_s: Annotated[float, Meta(gt=0, le=60)] = 30.0
    """How often whoever has a connection to a task is asked again whether they still may."""
    drain_s: Annotated[float, Meta(ge=0)] = 20.0
    """How long connections to tasks live on when the service ends. Shells and transfers are cut afterwards."""
