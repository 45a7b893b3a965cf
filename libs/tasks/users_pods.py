"""What users wrote of a task's pod, on its way from the submission to the launcher. Pure."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Final

import msgspec

from libs.events.orders import UsersPod
from libs.podspec import merge_pod

MOST_SENTENCES: Final = 20
"""Of what a pod asks for: as many are kept, and the number of the others."""


def users_pod(pod: dict[str, Any], *, judged: bool, asks: Sequence[str] = ()) -> UsersPod:
    """``asks``: a sentence for each field that was accepted although the level ``baseline`` refuses it."""
    kept = tuple(asks[:MOST_SENTENCES])
    if left := len(asks) - len(kept):
        kept = (*kept, f"{left} more")
    return UsersPod(pod=pod, judged=judged, asks=kept)


def continued(stored: dict[str, Any] | None, override: UsersPod) -> UsersPod:
    """What users wrote of an experiment that goes on with ``override`` over what is stored of it, if anything."""
    before = from_column(stored)
    if before is None:
        return override
    return UsersPod(
        pod=merge_pod(before.pod, override.pod),
        judged=before.judged and override.judged,
        asks=tuple(dict.fromkeys((*before.asks, *override.asks))),
    )


def from_column(stored: dict[str, Any] | None) -> UsersPod | None:
    """Read back what ``to_column`` wrote. Raises msgspec.ValidationError."""
    return None if stored is None else msgspec.convert(stored, UsersPod)


def to_column(pod: UsersPod) -> dict[str, Any]:
    document: dict[str, Any] = msgspec.to_builtins(pod)
    return document


def lines_at_first_start(pod: UsersPod | None) -> list[str]:
    """Lines for the log of a task: what its pod asks for that another level of the setting would refuse."""
    asks = () if pod is None else pod.asks
    return [f"security.pod_spec: baseline would refuse this task: {each}" for each in asks]
