"""What a row says about a function of the client's bindings."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any


@dataclass(frozen=True)
class Call:
    """A call of ``determined.common.api.bindings`` with objects that there are, by their names in braces
    (``tests/integration/api/whole_client/objects.py``); its answer parses, or it is refused with the words in
    ``refused`` for the reason in ``because``.

    arguments  by their names; ``body`` as JSON
    """

    function: str
    arguments: dict[str, Any] = field(default_factory=dict)
    refused: str = ""
    because: str = ""
