"""Actions that a searcher asks for (docs/reference/experiments.md 3.1)."""

from typing import Any

from msgspec import Struct


class Create(Struct, frozen=True):
    """Create a trial; ``request_id`` (UUID text) is its name in every later event."""

    request_id: str
    trial_seed: int
    hparams: dict[str, Any]


class Stop(Struct, frozen=True):
    """End a trial early: what it would still learn is not worth its slots."""

    request_id: str


class Shutdown(Struct, frozen=True):
    """The search is over; ``cancel`` or ``failure`` only when every single trial was canceled or failed.

    reason  why it failed, for its owner, where that is not plain from its trials
    """

    cancel: bool = False
    failure: bool = False
    reason: str = ""


Action = Create | Stop | Shutdown
