"""``det agent | slot | master | resources | dev | version``."""

from __future__ import annotations

from typing import Final

from tests.scenarios.leaves.leaf import Leaf

_DAYS: Final = "2030-01-01 2030-01-02"
_TIMES: Final = "2030-01-01T00:00:00 2030-01-02T00:00:00"

_ONE_BY_ONE: Final = "slots are not enabled or disabled one by one"

LEAVES: Final = (
    Leaf("agent disable", "{busy_agent} --drain", formats="json csv"),
    Leaf("agent enable", "{busy_agent}"),
    Leaf("agent list", formats="json csv"),
    Leaf("slot disable", "{agent} 0", says=_ONE_BY_ONE, code=1, because="slots go out of service with their node"),
    Leaf("slot enable", "{agent} 0", says=_ONE_BY_ONE, code=1, because="slots come into service with their node"),
    Leaf("slot list", formats="json csv"),
    Leaf("master cluster-message set", "--message busy"),
    Leaf("master cluster-message get", formats="json yaml"),
    Leaf("master cluster-message clear"),
    Leaf("master config set", "--log.level=DEBUG"),
    Leaf("master config show", formats="json yaml"),
    Leaf("master info", formats="json yaml", anonymous=""),
    Leaf("master logs", "--tail 1"),
    Leaf("resources aggregated", _DAYS, formats="json"),
    Leaf("resources allocations", _TIMES),
    Leaf("resources raw", _TIMES, formats="json"),
    Leaf("dev auth-token", anonymous=""),
    Leaf("dev bindings call", "get_GetMe"),
    Leaf("dev bindings list", anonymous=""),
    Leaf("dev curl", "/api/v1/me", anonymous=""),
    Leaf("version", anonymous=""),
)
