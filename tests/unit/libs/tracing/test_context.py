"""Trace contexts as headers and rows carry them (W3C Trace Context, level 1)."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from libs.tracing.context import CURRENT, TraceContext, add_trace_ids, current_traceparent, parse_traceparent

TRACE, SPAN = "4bf92f3577b34da6a3ce929d0e0e4736", "00f067aa0ba902b7"


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        (f"00-{TRACE}-{SPAN}-01", TraceContext(TRACE, SPAN)),
        (f" 00-{TRACE}-{SPAN}-00 ", TraceContext(TRACE, SPAN, is_sampled=False)),
        (f"00-{TRACE}-{SPAN}-03", TraceContext(TRACE, SPAN)),
        (f"cc-{TRACE}-{SPAN}-01-what-will-be", TraceContext(TRACE, SPAN)),
        (f"00-{TRACE}-{SPAN}-01-more", None),
        (f"ff-{TRACE}-{SPAN}-01", None),
        (f"00-{'0' * 32}-{SPAN}-01", None),
        (f"00-{TRACE}-{'0' * 16}-01", None),
        (f"00-{TRACE.upper()}-{SPAN}-01", None),
        ("nonsense", None),
        ("", None),
        (None, None),
    ],
)
def test_a_traceparent_is_read_as_the_standard_says(text: str | None, expected: TraceContext | None) -> None:
    assert parse_traceparent(text) == expected


@given(st.integers(1, 2**128 - 1), st.integers(1, 2**64 - 1), st.booleans())
def test_what_is_written_is_read_again(trace: int, span: int, is_sampled: bool) -> None:
    context = TraceContext(f"{trace:032x}", f"{span:016x}", is_sampled)
    assert parse_traceparent(context.traceparent) == context


@given(st.text())
def test_nothing_that_a_client_sends_is_an_error(text: str) -> None:
    parse_traceparent(text)


def test_lines_logged_inside_of_a_trace_name_it() -> None:
    assert add_trace_ids(None, "info", {"event": "a"}) == {"event": "a"}
    token = CURRENT.set(TraceContext(TRACE, SPAN))
    try:
        assert add_trace_ids(None, "info", {"event": "a"}) == {"event": "a", "trace_id": TRACE, "span_id": SPAN}
        assert current_traceparent() == f"00-{TRACE}-{SPAN}-01"
    finally:
        CURRENT.reset(token)
