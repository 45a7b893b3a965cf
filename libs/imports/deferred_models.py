"""Models of pydantic that are put together when somebody uses them.

A library defines models for all that it offers. What validates them takes most of their memory, and nobody needs it of
models that are never used.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager

from pydantic import BaseModel, ConfigDict


@contextmanager
def models_deferred() -> Iterator[None]:
    """Models that are defined in the block are put together with their first use.

    Source: https://docs.pydantic.dev/latest/api/config/#pydantic.config.ConfigDict.defer_build
    """
    before = BaseModel.model_config
    BaseModel.model_config = ConfigDict(defer_build=True)
    try:
        yield
    finally:
        BaseModel.model_config = before
