"""Which metrics a trial has reported. An endpoint of our own; the reference interface has none."""

from __future__ import annotations

from services.api.wire.base import Message, Pagination


class GetTrialMetricNamesQuery(Message):
    """All of ``group``, ``prefix``, ``text`` and ``regex`` that are given have to fit.

    text       occurs in the name, whatever the case of its letters
    regex      matches somewhere in the name; as PostgreSQL understands it
    separator  lists, in place of names, what stands between ``prefix`` and the next separator
    """

    group: str = ""
    prefix: str = ""
    text: str = ""
    regex: str = ""
    separator: str = ""
    offset: int = 0
    limit: int = 0


class MetricName(Message, kw_only=True):
    group: str
    name: str


class MetricGroupCount(Message, kw_only=True):
    group: str
    count: int


class MetricSegment(Message, kw_only=True):
    """``count`` metrics have names that go on after the prefix with the segment and then end or have a separator.

    is_metric  whether one of these names ends there
    """

    segment: str
    count: int
    is_metric: bool


class GetTrialMetricNamesResponse(Message, kw_only=True):
    """``groups`` counts everything that fits; the page is one of ``segments`` if there is a separator."""

    groups: list[MetricGroupCount]
    names: list[MetricName]
    segments: list[MetricSegment]
    pagination: Pagination
