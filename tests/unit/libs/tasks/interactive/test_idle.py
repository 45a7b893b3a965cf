from __future__ import annotations

from datetime import UTC, datetime, timedelta

import pytest

from libs.cluster.config import ClusterConfig
from libs.tasks.interactive.idle import idle_reason, idle_timeout_s, is_idle
from libs.tasks.interactive.kinds import InteractiveType

NOON = datetime(2030, 1, 1, 12, tzinfo=UTC)
LONG_AGO = NOON - timedelta(days=1)
OWN = ClusterConfig(notebook_timeout=600, tensorboard_timeout=0)


@pytest.mark.parametrize(
    ("task_type", "configured", "cluster", "seconds"),
    [
        ("NOTEBOOK", None, ClusterConfig(), None),
        ("TENSORBOARD", None, ClusterConfig(), 300.0),
        ("NOTEBOOK", None, OWN, 600.0),
        ("TENSORBOARD", None, OWN, None),
        ("NOTEBOOK", "1m30s", OWN, 90.0),
        ("TENSORBOARD", "1m30s", OWN, 90.0),
        ("NOTEBOOK", "0s", ClusterConfig(), 0.0),
        ("SHELL", "1m30s", OWN, None),
        ("COMMAND", "1m30s", OWN, None),
    ],
)
def test_what_is_configured_goes_before_what_is_usual(
    task_type: InteractiveType, configured: str | None, cluster: ClusterConfig, seconds: float | None
) -> None:
    assert idle_timeout_s(task_type, configured, cluster) == seconds


@pytest.mark.parametrize(
    ("seconds_later", "timeout_s", "not_before", "idle"),
    [
        (600, 600.0, LONG_AGO, False),
        (600.001, 600.0, LONG_AGO, True),
        (0, 0.0, LONG_AGO, False),
        (0.001, 0.0, LONG_AGO, True),
        (700, 600.0, NOON + timedelta(seconds=700), False),
        (701, 600.0, NOON + timedelta(seconds=700), True),
        (601, 600.0, NOON + timedelta(seconds=60), True),
    ],
)
def test_when_it_is_idle(seconds_later: float, timeout_s: float, not_before: datetime, idle: bool) -> None:
    now = NOON + timedelta(seconds=seconds_later)
    assert is_idle(NOON, timeout_s, now=now, not_before=not_before) is idle


@pytest.mark.parametrize(
    ("timeout_s", "text"), [(600.0, "10m0s"), (0.25, "250ms"), (5400.0, "1h30m0s"), (1.1, "1.1s"), (0.0, "0s")]
)
def test_the_reason(timeout_s: float, text: str) -> None:
    assert idle_reason(timeout_s) == f"idle for more than {text}: service is inactive"
