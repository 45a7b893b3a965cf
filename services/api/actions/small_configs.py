"""Configurations and files so small that the way to a thread and back costs more than the work on them.

Everything else is computed in threads: a megabyte of configuration would hold up all other requests for a second.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Mapping, Sequence
from typing import Any, Final, ParamSpec, TypeVar

from services.api.wire.experiments.model_definitions import File

SMALL_TEXT: Final = 4096
"""Characters; a step of the work on so many takes about two milliseconds at most."""
FEW_TRIALS: Final = 16
_SAMPLED: Final = frozenset({"single", "random"})
"""Methods that begin with no more trials than ``max_trials`` says; brackets may have thousands of rungs."""

FEW_FILES: Final = 16
SMALL_FILES_BYTES: Final = 16_384
"""Of all contents together; to pack so much takes about a millisecond."""

Given = ParamSpec("Given")
Result = TypeVar("Result")


def is_small(text: str) -> bool:
    """Whether a configuration as it was submitted is; one with anchors may stand for much more than it shows."""
    return len(text) <= SMALL_TEXT and "&" not in text


def starts_small(searcher: Mapping[str, Any]) -> bool:
    """Whether a search begins with few trials."""
    return searcher["name"] in _SAMPLED and int(searcher.get("max_trials") or 1) <= FEW_TRIALS


def are_few(files: Sequence[File]) -> bool:
    """Whether uploaded files are few and small."""
    return len(files) <= FEW_FILES and sum(len(file.content) for file in files) <= SMALL_FILES_BYTES


async def computed(
    is_small: bool, work: Callable[Given, Result], *arguments: Given.args, **named: Given.kwargs
) -> Result:
    """The result of ``work``, which neither waits nor is awaited: made here, or in a thread."""
    if is_small:
        return work(*arguments, **named)
    return await asyncio.to_thread(work, *arguments, **named)
