"""Spans: a piece of work with a beginning, an end and a parent.

What creates them is set once, when the service starts (``export.py``); until then, and without it, ``span`` does
nothing and changes no context.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from datetime import datetime
from enum import Enum
from typing import Final, Protocol

from libs.tracing.context import CURRENT, TraceContext

AttributeValue = str | int | float | bool


class SpanKind(Enum):
    INTERNAL = "internal"
    SERVER = "server"
    PRODUCER = "producer"
    CONSUMER = "consumer"


class Span(Protocol):
    """One that has begun."""

    @property
    def context(self) -> TraceContext | None:
        """None when nothing is traced."""
        ...

    def set(self, name: str, value: AttributeValue) -> None:
        """Add an attribute."""
        ...

    def fail(self, description: str) -> None:
        """The work did not succeed."""
        ...

    def drop(self) -> None:
        """Nothing came of it: it is not reported. Whatever has it as its parent would be without one."""
        ...

    def end(self) -> None: ...


class Tracer(Protocol):
    def begin(
        self,
        name: str,
        *,
        parent: TraceContext | None,
        kind: SpanKind,
        attributes: Mapping[str, AttributeValue],
        began_at: datetime | None,
    ) -> Span: ...

    def close(self) -> None:
        """Report what has ended, within a few seconds, and stop."""
        ...


class _NoSpan:
    @property
    def context(self) -> None:
        return None

    def set(self, name: str, value: AttributeValue) -> None: ...

    def fail(self, description: str) -> None: ...

    def drop(self) -> None: ...

    def end(self) -> None: ...


NO_SPAN: Final[Span] = _NoSpan()
_tracer: Tracer | None = None


def use_tracer(tracer: Tracer | None) -> None:
    """Create spans with ``tracer`` from here on, in this process; closes the one before."""
    global _tracer  # of the process, like its logging
    before, _tracer = _tracer, tracer
    if before is not None:
        before.close()


def is_tracing() -> bool:
    return _tracer is not None


@contextmanager
def span(
    name: str,
    *,
    parent: TraceContext | None = None,
    kind: SpanKind = SpanKind.INTERNAL,
    **attributes: AttributeValue,
) -> Iterator[Span]:
    """A span for the block, which is the current one in it. An exception that leaves the block makes it a failed one.

    parent      None takes the current one, or begins a trace
    attributes  names with ``__`` in place of each dot
    """
    if _tracer is None:
        yield NO_SPAN
        return
    named = {key.replace("__", "."): value for key, value in attributes.items()}
    begun = _tracer.begin(name, parent=parent or CURRENT.get(), kind=kind, attributes=named, began_at=None)
    token = CURRENT.set(begun.context)
    try:
        yield begun
    except Exception as error:
        begun.fail(f"{type(error).__name__}: {error}"[:500])
        raise
    finally:
        CURRENT.reset(token)
        begun.end()


def record(
    name: str,
    *,
    parent: TraceContext,
    began_at: datetime,
    kind: SpanKind = SpanKind.INTERNAL,
    attributes: Mapping[str, AttributeValue],
) -> TraceContext | None:
    """A span that ends now and began at a time that somebody noted; None when nothing is traced."""
    if _tracer is None:
        return None
    begun = _tracer.begin(name, parent=parent, kind=kind, attributes=attributes, began_at=began_at)
    begun.end()
    return begun.context
