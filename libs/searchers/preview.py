"""Preview of a search before it runs: how many trials train for how long
(docs/reference/experiments.md 3.6)."""

from collections.abc import Mapping
from typing import Any

from libs.searchers.config import parse_searcher
from libs.searchers.methods.definition import PreviewTrial


def preview(config_searcher: Mapping[str, Any], hyperparameters: Mapping[str, Any]) -> list[PreviewTrial]:
    """Trials of a search by the length of their training, shortest first; raises InvalidSearcher or InvalidSpace."""
    chosen = parse_searcher(config_searcher)
    return chosen.method.preview(chosen.config, hyperparameters)
