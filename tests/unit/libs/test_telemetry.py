"""Log lines that machines can read, and counters that tests can."""

from __future__ import annotations

import io
import json
import logging

import pytest
import structlog

from libs import telemetry
from libs.telemetry import TelemetrySettings, configure_logging


@pytest.fixture
def stream(loggers: None) -> io.StringIO:
    return io.StringIO()


def test_lines_are_json_with_facts_and_context(stream: io.StringIO) -> None:
    configure_logging(TelemetrySettings(), service="scheduler", stream=stream)
    with structlog.contextvars.bound_contextvars(allocation="1.a.1"):
        structlog.get_logger().info("gang.waiting", slots=16)
    line = json.loads(stream.getvalue())
    assert line.pop("timestamp").endswith("Z")
    assert line == {
        "event": "gang.waiting", "slots": 16, "level": "info", "service": "scheduler", "allocation": "1.a.1",
    }  # fmt: skip


def test_exceptions_carry_their_stack_and_libraries_speak_the_same(stream: io.StringIO) -> None:
    configure_logging(TelemetrySettings(), service="api", stream=stream)
    try:
        raise ValueError("told to fail")
    except ValueError:
        structlog.get_logger().exception("loop.failed")
    logging.getLogger("library").warning("from %s", "outside")
    first, second = (json.loads(line) for line in stream.getvalue().splitlines())
    assert "ValueError: told to fail" in first["exception"]
    assert (second["event"], second["service"]) == ("from outside", "api")


def test_level_is_respected(stream: io.StringIO) -> None:
    configure_logging(TelemetrySettings(log_level="warning", log_format="console"), service="api", stream=stream)
    structlog.get_logger().info("quiet")
    structlog.get_logger().warning("loud")
    assert "quiet" not in stream.getvalue()
    assert "loud" in stream.getvalue()


def test_counters_can_be_read() -> None:
    counted = telemetry.counter("resolute_test_total", "For this test", "kind")
    assert telemetry.value("resolute_test_total", kind="a") == 0
    counted.labels("a").inc(2)
    assert telemetry.value("resolute_test_total", kind="a") == 2
