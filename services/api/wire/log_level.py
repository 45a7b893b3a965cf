"""The level of a log line, as the REST API has it for tasks, the master and webhooks alike."""

from __future__ import annotations

from services.api.wire.base import WireEnum


class LogLevel(WireEnum):
    UNSPECIFIED = "LOG_LEVEL_UNSPECIFIED", 0
    TRACE = "LOG_LEVEL_TRACE", 1
    DEBUG = "LOG_LEVEL_DEBUG", 2
    INFO = "LOG_LEVEL_INFO", 3
    WARNING = "LOG_LEVEL_WARNING", 4
    ERROR = "LOG_LEVEL_ERROR", 5
    CRITICAL = "LOG_LEVEL_CRITICAL", 6
