"""Heads are counted as they come, and refused where they become too much."""

from __future__ import annotations

from collections.abc import Callable
from http import HTTPStatus

import pytest

from libs.serving.heads import HeadMeter, Refusal
from libs.serving.limits import HttpLimits

LIMITS = HttpLimits(line_bytes=1024, head_bytes=4096, headers=16)


def lines(meter: HeadMeter) -> None:
    for _ in range(2):
        meter.request_line(600)


def one_header(meter: HeadMeter) -> None:
    meter.header(1025)


def many_headers(meter: HeadMeter) -> None:
    for _ in range(17):
        meter.header(2)


def long_headers(meter: HeadMeter) -> None:
    for _ in range(5):
        meter.header(1000)


def silence(meter: HeadMeter) -> None:
    meter.fed(1000)
    meter.check()
    meter.fed(25)
    meter.check()


@pytest.mark.parametrize(
    ("use", "status"),
    [
        (lines, HTTPStatus.REQUEST_URI_TOO_LONG),
        (one_header, HTTPStatus.REQUEST_HEADER_FIELDS_TOO_LARGE),
        (many_headers, HTTPStatus.REQUEST_HEADER_FIELDS_TOO_LARGE),
        (long_headers, HTTPStatus.REQUEST_HEADER_FIELDS_TOO_LARGE),
        (silence, HTTPStatus.REQUEST_HEADER_FIELDS_TOO_LARGE),
    ],
)
def test_each_bound_refuses(use: Callable[[HeadMeter], None], status: HTTPStatus) -> None:
    with pytest.raises(Refusal) as refused:
        use(HeadMeter(LIMITS))
    assert refused.value.status is status


def test_every_request_is_counted_anew() -> None:
    meter = HeadMeter(LIMITS)
    for _ in range(100):
        meter.begin()
        meter.fed(1000)
        meter.request_line(500)
        meter.header(1000)
        meter.told()
        meter.check()
