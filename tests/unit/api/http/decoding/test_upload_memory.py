"""Large bodies share a bounded memory; small ones are not counted."""

from __future__ import annotations

import pytest

from libs.errors import Unavailable
from services.api.http.decoding.upload_memory import BODY_FACTOR, SMALL_BYTES, UploadMemory

LARGE = 4 * SMALL_BYTES


def test_large_bodies_are_refused_when_they_would_not_fit_together() -> None:
    memory = UploadMemory(BODY_FACTOR * LARGE)
    with memory.reservation() as first, memory.reservation() as second:
        first.grow(LARGE // 2)
        first.grow(LARGE)
        with pytest.raises(Unavailable):
            second.grow(LARGE)
        second.grow(SMALL_BYTES)


def test_memory_comes_back_whatever_became_of_the_request() -> None:
    memory = UploadMemory(BODY_FACTOR * LARGE)
    for _ in range(3):
        with pytest.raises(Unavailable), memory.reservation() as reservation:  # noqa: PT012
            reservation.grow(LARGE)
            reservation.grow(LARGE + 1)
    assert memory.free_bytes == BODY_FACTOR * LARGE
