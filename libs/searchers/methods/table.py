"""Table of the search methods that new experiments may use."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Final

from libs.searchers.methods import adaptive_asha, async_halving, grid, random_search, single
from libs.searchers.methods.definition import MethodDefinition

METHODS: Final[Mapping[str, MethodDefinition[Any]]] = {
    method.name: method
    for method in (
        single.DEFINITION,
        random_search.DEFINITION,
        grid.DEFINITION,
        adaptive_asha.DEFINITION,
        async_halving.DEFINITION,
    )
}
