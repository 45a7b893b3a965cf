from __future__ import annotations

from datetime import timedelta

import pytest

from libs.cluster.config import TokenConfig
from libs.errors import InvalidRequest
from services.api.access.token_lifetimes import UNLIMITED_DAYS, lifespan

LIMITS = TokenConfig(max_lifespan_days=60, default_lifespan_days=30)


@pytest.mark.parametrize(
    ("asked", "limits", "expected"),
    [
        ("", LIMITS, timedelta(days=30)),
        ("-1", LIMITS, timedelta(days=60)),
        ("1440h", LIMITS, timedelta(days=60)),
        ("1h30m0.5s", LIMITS, timedelta(hours=1.5, seconds=0.5)),
        ("", TokenConfig(max_lifespan_days=5), timedelta(days=5)),
        ("-1", TokenConfig(max_lifespan_days=-1), timedelta(days=UNLIMITED_DAYS)),
        ("90000h", TokenConfig(max_lifespan_days=-1), timedelta(hours=90000)),
    ],
)
def test_tokens_live_as_long_as_asked_within_the_limit(asked: str, limits: TokenConfig, expected: timedelta) -> None:
    assert lifespan(asked, limits) == expected


@pytest.mark.parametrize("asked", ["1441h", "-2", "0h", "h", "5", "5d", "1h ", "1h,1m", "9" * 400 + "h", "\u0661h"])
def test_other_lifespans_are_refused(asked: str) -> None:
    with pytest.raises(InvalidRequest):
        lifespan(asked, LIMITS)
