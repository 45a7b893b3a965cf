"""Messages of ``/stream``: what a subscriber asks for, and what it is told. Pure.

Names and sets of keys are fixed: the client builds its objects from them, and takes neither more nor fewer.
UpdateSource: docs/reference/platform.md 16.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from enum import Enum
from typing import Annotated, Any, Final

import msgspec
from msgspec import Meta, Struct

from libs.errors import InvalidRequest
from services.api.updates.id_ranges import LARGEST, IdRanges


class UpdateKind(Enum):
    """Of what there are updates; the value is its name in messages of the subscriber."""

    PROJECTS = "projects"
    MODELS = "models"
    MODEL_VERSIONS = "modelversions"

    @property
    def one(self) -> str:
        """Key of a message with one of them."""
        return self.value.removesuffix("s")

    @property
    def deleted(self) -> str:
        """Key of a message that says which of them are gone."""
        return f"{self.value}_deleted"


Ident = Annotated[int, Meta(ge=0, le=LARGEST)]
MOST_IDS: Final = 10_000
Idents = Annotated[tuple[Ident, ...], Meta(max_length=MOST_IDS)]


class Spec(Struct, frozen=True, kw_only=True):
    """What one kind is filtered by; ids of different fields are alternatives. ``since`` is the highest ``seq`` that the
    subscriber has seen."""

    workspace_ids: Idents | None = None
    project_ids: Idents | None = None
    model_ids: Idents | None = None
    model_version_ids: Idents | None = None
    user_ids: Idents | None = None
    since: Ident | None = None


FILTERS: Final[Mapping[UpdateKind, tuple[str, ...]]] = {
    UpdateKind.PROJECTS: ("workspace_ids", "project_ids"),
    UpdateKind.MODELS: ("workspace_ids", "model_ids", "user_ids"),
    # The client of Determined 0.38 puts the ids of versions into a field that belongs to models.
    UpdateKind.MODEL_VERSIONS: ("model_ids", "model_version_ids", "user_ids", "workspace_ids"),
}


class _Startup(Struct, frozen=True, kw_only=True):
    sync_id: Annotated[str, Meta(max_length=1024)] = ""
    known: dict[str, str | None] | None = None
    subscribe: dict[str, Spec | None] | None = None


@dataclass(frozen=True, slots=True)
class WantedUpdates:
    """What a subscriber wants of one kind: ids by field, and what it has already."""

    ids: Mapping[str, tuple[int, ...]]
    known: IdRanges
    since: int


@dataclass(frozen=True, slots=True)
class Startup:
    sync_id: str
    wanted: Mapping[UpdateKind, WantedUpdates]


_KINDS: Final = {kind.value: kind for kind in UpdateKind}
_DECODER: Final = msgspec.json.Decoder(_Startup)


def parse_startup(data: bytes) -> Startup:
    """What a subscriber asks for. Raises InvalidRequest, which names the field."""
    try:
        message = _DECODER.decode(data)
    except (msgspec.DecodeError, UnicodeDecodeError, RecursionError) as error:
        raise InvalidRequest(f"startup message: {error}") from error
    known, subscribe = message.known or {}, message.subscribe or {}
    for field, names in (("known", known), ("subscribe", subscribe)):
        for name in names:
            if name not in _KINDS:
                raise InvalidRequest(f"{field}: there are no updates of {name[:40]!r}, only of {', '.join(_KINDS)}")
    ranges = {name: IdRanges.parse(f"known.{name}", text or "") for name, text in known.items()}
    wanted: dict[UpdateKind, WantedUpdates] = {}
    for name, spec in subscribe.items():
        if spec is None:
            continue
        kind = _KINDS[name]
        ids = {field: found for field in FILTERS[kind] if (found := getattr(spec, field))}
        if not ids:
            raise InvalidRequest(f"subscribe.{name}: name what to follow, in one of {', '.join(FILTERS[kind])}")
        wanted[kind] = WantedUpdates(ids, ranges.get(name, IdRanges()), spec.since or 0)
    return Startup(message.sync_id, wanted)


_ENCODER: Final = msgspec.json.Encoder(order="deterministic")


def sync_message(sync_id: str, *, complete: bool) -> bytes:
    return _ENCODER.encode({"sync_id": sync_id, "complete": complete})


def deleted_message(kind: UpdateKind, ids: IdRanges) -> bytes:
    return _ENCODER.encode({kind.deleted: str(ids)})


def upsert_message(kind: UpdateKind, row: Mapping[str, Any]) -> bytes:
    return _ENCODER.encode({kind.one: dict(row)})
