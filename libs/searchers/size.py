"""Number of trials that a search creates at once, computed beforehand: a typing error must not fill the memory."""

from collections.abc import Mapping
from typing import Any, Final

from libs.searchers.config import parse_searcher
from libs.searchers.errors import InvalidSearcher

MAX_AT_ONCE: Final = 100_000
"""Points of a grid, or trials that begin together. Trials that follow one another may be more."""


def check_size(searcher: Mapping[str, Any], hyperparameters: Mapping[str, Any]) -> None:
    """Raises InvalidSearcher for a search beyond ``MAX_AT_ONCE``, and whatever is wrong with it otherwise."""
    chosen = parse_searcher(searcher)
    if chosen.method.count_at_once(chosen.config, hyperparameters) > MAX_AT_ONCE:
        raise InvalidSearcher(
            f"{searcher['name']} search begins with more than {MAX_AT_ONCE} trials; "
            "lower max_concurrent_trials, max_trials or, in a grid, the count of hyperparameters"
        )
