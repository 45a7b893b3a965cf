"""Definition of a search method: all that the rest of the system needs to know of it, said by its own module.

The configuration of experiments, the limits on a search, its preview and the searcher read definitions only, so that
a new method is one module and its line in ``table.py``.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Annotated, Any, Final, Generic, TypeVar

from msgspec import Meta, Struct

from libs.searchers.methods.method import SearchMethod
from libs.searchers.sampling.space import SearchSpace
from libs.searchers.sampling.trial_source import TrialSource
from libs.shapes.shape import Fields

Positive = Annotated[int, Meta(ge=1)]
Concurrency = Annotated[int, Meta(ge=0)]
"""Most trials that run at once; 0 leaves it to the search method."""
DEFAULT_CONCURRENT_TRIALS: Final = 16

Config = TypeVar("Config")


class PreviewTrial(Struct, frozen=True):
    """``count`` trials that train for ``value`` units of ``name``, or to completion if ``max_length``."""

    count: int
    name: str | None = None
    value: int | None = None
    max_length: bool = False


class MethodDefinition(Struct, Generic[Config], frozen=True, kw_only=True):
    """One search method, by the ``name`` that configurations choose it with."""

    name: str
    config: type[Config]
    """What a stored configuration is decoded to."""
    fields: Fields
    """What users may write, beside what all methods share."""
    defaults: Mapping[str, Any] = {}
    required: tuple[str, ...] = ()
    """Fields without which a search cannot run, beside the metric; any layer may bring them."""
    is_timed: bool = False
    """Whether it stops trials by ``max_time`` and ``time_metric``, which then have to be given."""
    build: Callable[[Config, TrialSource, Mapping[str, Any] | None], SearchMethod]
    """A new search, or the one that a snapshot of its own describes."""
    count_at_once: Callable[[Config, Mapping[str, Any]], int]
    """Trials, or points of a grid, that are laid out before the first one runs, by the hyperparameters."""
    preview: Callable[[Config, Mapping[str, Any]], list[PreviewTrial]]
    """Trials by the length of their training, shortest first, by the hyperparameters."""
    most_refusals: Callable[[Config, SearchSpace], int | None]
    """How many trials in a row may be refused, the last of them without a replacement; None is any number."""
