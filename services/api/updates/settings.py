"""Settings of live updates."""

from __future__ import annotations

from typing import Annotated

from msgspec import Meta, Struct


class UpdatesSettings(Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    connections: Annotated[int, Meta(ge=1)] = 2_000
    """Subscribers to live updates (``/stream``) at the same time; 503 beyond, and clients come again."""
    recheck_interval_s: Annotated[float, Meta(gt=0, le=60)] = 30.0
    """How often a subscriber's token and rights are looked at again, besides when they are known to have changed."""
    look_interval_s: Annotated[float, Meta(gt=0)] = 10.0
    """How long the bus is trusted to say that something has changed."""
    ping_interval_s: Annotated[float, Meta(gt=0)] = 25.0
    """How often a subscriber is pinged. One that is silent for three of these intervals is dropped."""
    send_timeout_s: Annotated[float, Meta(gt=0)] = 30.0
    """How long a subscriber may take no message while there is one; it is dropped then, and comes again when it can."""
