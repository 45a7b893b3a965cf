"""One message with a field of every kind, for the tests of decoding."""

from __future__ import annotations

from typing import Any

from msgspec import UNSET, UnsetType

from services.api.wire.base import Double, Instant, Int32, Int64, Message, WireEnum


class State(WireEnum):
    UNSPECIFIED = "STATE_UNSPECIFIED", 0
    ACTIVE = "STATE_ACTIVE", 1
    PAUSED = "STATE_PAUSED", 4


class Branch(Message):
    leaf_count: int = 0
    branch: Branch | None = None


class Everything(Message):
    trial_id: int = 0
    run_id: Int32 = 0
    state: State = State.UNSPECIFIED
    states: list[State] = []
    branch: Branch | None = None
    branches: list[Branch] = []
    optional_text: str | UnsetType = UNSET
    max_slots: int | UnsetType | None = UNSET
    size: Int64 = "0"
    size_by_file: dict[str, Int64] = {}
    config: dict[str, Any] | None = None
    loss: float = 0.0
    best: Double = 0.0
    content: bytes = b""
    start_time: Instant | None = None
    archived: bool = False
    user_name: str = ""
    names: list[str] = []


class Filter(Message):
    incl: list[int] = []
    gt: int | None = None


class Search(Message):
    limit: int = 0
    user_ids: list[int] = []
    names: list[str] = []
    states: list[State] = []
    order_by: State = State.UNSPECIFIED
    archived: bool | UnsetType = UNSET
    experiment_id_filter: Filter | None = None
    after: Instant | None = None
    threshold: float | None = None
    size: Int64 = "0"
    name: str = ""
