"""Trace context: which trace and which span of it the present work belongs to. Pure.

Source: W3C Trace Context, level 1 (``traceparent``, version 00).
"""

from __future__ import annotations

import re
from contextvars import ContextVar
from typing import Final

from msgspec import Struct
from structlog.typing import EventDict

_TRACEPARENT: Final = re.compile(r"([0-9a-f]{2})-([0-9a-f]{32})-([0-9a-f]{16})-([0-9a-f]{2})(-.*)?")
_FIRST_VERSION: Final = "00"
_INVALID_VERSION: Final = "ff"
_SAMPLED: Final = 1


class TraceContext(Struct, frozen=True):
    trace_id: str
    """32 hexadecimal digits, not all zero."""
    span_id: str
    """16 hexadecimal digits, not all zero."""
    is_sampled: bool = True
    """Whether spans below this one are reported."""

    @property
    def traceparent(self) -> str:
        return f"{_FIRST_VERSION}-{self.trace_id}-{self.span_id}-{int(self.is_sampled):02x}"


CURRENT: Final[ContextVar[TraceContext | None]] = ContextVar("trace_context", default=None)


def current() -> TraceContext | None:
    """Where the present work belongs; None outside of any trace."""
    return CURRENT.get()


def current_traceparent() -> str | None:
    """``current`` as it goes into headers and rows."""
    context = CURRENT.get()
    return None if context is None else context.traceparent


def parse_traceparent(text: str | None) -> TraceContext | None:
    """What a header or a row says; None for nothing and for nonsense, which the standard wants to be passed over."""
    found = _TRACEPARENT.fullmatch((text or "").strip())
    if found is None:
        return None
    version, trace_id, span_id, flags, rest = found.groups()
    if version == _INVALID_VERSION or (version == _FIRST_VERSION and rest) or not int(trace_id, 16) * int(span_id, 16):
        return None
    return TraceContext(trace_id, span_id, bool(int(flags, 16) & _SAMPLED))


def add_trace_ids(_logger: object, _method: str, event: EventDict) -> EventDict:
    """A processor of structlog: lines that are logged inside of a trace say so."""
    context = CURRENT.get()
    if context is not None:
        event.setdefault("trace_id", context.trace_id)
        event.setdefault("span_id", context.span_id)
    return event
