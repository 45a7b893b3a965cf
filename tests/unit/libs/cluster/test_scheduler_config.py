"""The scheduler of a pool: what makes sense together, and what is refused at once."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
import yaml

from libs.cluster.config import SchedulerConfig
from libs.cluster.loading import load_cluster_config
from libs.errors import InvalidRequest

FAIR = {"type": "fair_share", "share_by": ["user"]}


def load(tmp_path: Path, scheduler: dict[str, Any]) -> SchedulerConfig:
    path = tmp_path / "cluster.yaml"
    path.write_text(yaml.safe_dump({"resource_pools": [{"pool_name": "default", "scheduler": scheduler}]}))
    config = load_cluster_config(path)
    return config.scheduler_of(config.resource_pools[0])


@pytest.mark.parametrize(("written", "seconds"), [("7d", 604_800), ("1d12h", 129_600), (90, 90), (None, None)])
def test_a_half_life(written: object, seconds: int | None, tmp_path: Path) -> None:
    assert load(tmp_path, {**FAIR, "half_life": written}).half_life_s == seconds


@pytest.mark.parametrize(
    ("scheduler", "refusal"),
    [
        ({**FAIR, "half_life": "soon"}, "half_life: must be whole seconds above 0, or a text"),
        ({**FAIR, "half_life": 0}, "half_life: must be whole seconds above 0, or a text"),
        ({"type": "fair_share", "half_life": "7d"}, "half_life: needs type fair_share and share_by"),
        ({"type": "priority", "share_by": ["user"], "half_life": "7d"}, "half_life: needs type fair_share"),
    ],
)
def test_a_half_life_that_makes_no_sense(scheduler: dict[str, Any], refusal: str, tmp_path: Path) -> None:
    with pytest.raises(InvalidRequest, match=refusal):
        load(tmp_path, scheduler)
