"""Heads are counted as they come, and refused where they become too much."""

from __future__ import annotations

from collections.abc import Callable
from http import HTTPStatus

import pytest

from libs.serving.heads import HeadMeter, RequestRefused
from libs.serving.limits import HttpLimits

LIMITS = HttpLimits(line_bytes=1024, head_bytes=4096, headers=16)


def request_line(meter: HeadMeter) -> None:
    meter.feed(1200)
    meter.check(b"a" * 1025, [])


def one_header(meter: HeadMeter) -> None:
    meter.feed(1200)
    meter.check(b"", [(b"x", b"a" * 1024)])


def many_headers(meter: HeadMeter) -> None:
    meter.feed(100)
    meter.check(b"", [(b"a", b"b")] * 17)


def many_headers_at_once(meter: HeadMeter) -> None:
    meter.feed(100)
    meter.complete(b"/", [(b"a", b"b")] * 17)


def many_headers_with_those_behind_the_body(meter: HeadMeter) -> None:
    meter.feed(100)
    meter.complete(b"/", [(b"a", b"b")] * 9)
    meter.feed(100)
    meter.check(b"/", [(b"a", b"b")] * 8)


def long_headers(meter: HeadMeter) -> None:
    for _ in range(5):
        meter.feed(1100)
    meter.check(b"", [(b"", b"a" * 1000)] * 5)


def silence(meter: HeadMeter) -> None:
    meter.feed(1000)
    meter.check(b"", [])
    meter.feed(25)
    meter.check(b"", [])


@pytest.mark.parametrize(
    ("use", "status"),
    [
        (request_line, HTTPStatus.REQUEST_URI_TOO_LONG),
        (one_header, HTTPStatus.REQUEST_HEADER_FIELDS_TOO_LARGE),
        (many_headers, HTTPStatus.REQUEST_HEADER_FIELDS_TOO_LARGE),
        (many_headers_at_once, HTTPStatus.REQUEST_HEADER_FIELDS_TOO_LARGE),
        (many_headers_with_those_behind_the_body, HTTPStatus.REQUEST_HEADER_FIELDS_TOO_LARGE),
        (long_headers, HTTPStatus.REQUEST_HEADER_FIELDS_TOO_LARGE),
        (silence, HTTPStatus.REQUEST_HEADER_FIELDS_TOO_LARGE),
    ],
)
def test_each_bound_refuses(use: Callable[[HeadMeter], None], status: HTTPStatus) -> None:
    with pytest.raises(RequestRefused) as refused:
        use(HeadMeter(LIMITS))
    assert refused.value.status is status


def test_every_request_is_counted_anew() -> None:
    meter = HeadMeter(LIMITS)
    for _ in range(100):
        meter.feed(1000)
        meter.begin()
        meter.complete(b"a" * 500, [(b"x", b"a" * 400)])
        meter.feed(4000)
        meter.told()
        meter.check(b"a" * 500, [])
