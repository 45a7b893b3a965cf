"""What the random requests are spared, and which answers of 500 and more are right, each with its reason."""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import Any, Final


@dataclass(frozen=True, kw_only=True)
class Expected:
    """An answer that looks like a failure.

    status     of the answer
    operation  pattern of ``GET /path``
    says       pattern in the answer
    because    why it is right
    """

    status: int
    operation: str = ""
    says: str
    because: str

    def covers(self, status: int, operation: str, text: str) -> bool:
        right = status == self.status and re.search(self.operation, operation) is not None
        return right and re.search(self.says, text) is not None


EXPECTED: Final = (
    Expected(
        status=501,
        says='"Not Implemented"',
        because="the reference answers so to every path below /api/v1 that there is not",
    ),
    Expected(
        status=501,
        operation="slots/{slotId}/(en|dis)able$",
        says="not enabled or disabled one by one",
        because="Kubernetes knows nodes that take nothing new, but no such devices of a node",
    ),
)

SPARED: Final = {
    "POST /api/v1/auth/logout": "would end the session that all requests are made in",
    **{
        f"GET /api/v1/experiments/{path}": "goes on for as long as its experiment, and none ends here"
        for path in (
            "metrics-stream/metric-names",
            "{experimentId}/metrics-stream/batches",
            "{experimentId}/metrics-stream/trials-snapshot",
            "{experimentId}/metrics-stream/trials-sample",
        )
    },
}
"""Operations that are not called, and why."""

QUIET: Final[dict[str, Any]] = {"follow": "false", "timeoutSeconds": "0", "periodSeconds": "0"}
"""Query parameters that ask for an answer which comes when something happens, and what they are instead."""
