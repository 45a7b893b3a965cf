"""What of a configuration is not shown to people who may read the experiment.

Source: spec/experiments.md 1.2 (data) and 1.9.
"""

from __future__ import annotations

import copy
from typing import Any, Final

from libs.config.shape import Object

MASK: Final = "********"


def mask_secrets(config: Object) -> Object:
    """A copy of ``config`` in which every value under ``data.secrets`` is hidden; its keys stay visible."""
    masked = copy.deepcopy(config)
    data = masked.get("data")
    if isinstance(data, dict) and data.get("secrets") is not None:
        data["secrets"] = _hidden(data["secrets"])
    return masked


def _hidden(secrets: Any) -> Any:
    return dict.fromkeys(secrets, MASK) if isinstance(secrets, dict) else MASK
