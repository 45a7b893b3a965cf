"""The random stream of a search: MT19937, so that a seed gives the same trials as it always gave.

All trials of a search draw from one stream; its state is part of the snapshot, so a restored search draws on where it
was. Source: spec/experiments.md 2.2.
"""

import uuid
from collections.abc import Mapping
from typing import Annotated, Any, Self

import msgspec
import numpy as np
from msgspec import Meta, Struct

_WORD_BITS = 32
_WORDS = 624


class StreamState(Struct, frozen=True):
    """The whole state of MT19937: its words, and how many of them have been used up."""

    key: Annotated[list[Annotated[int, Meta(ge=0, lt=1 << _WORD_BITS)]], Meta(min_length=_WORDS, max_length=_WORDS)]
    pos: Annotated[int, Meta(ge=0, le=_WORDS)]


class RandomStream:
    """A stream that moves on with every draw; hand it around, do not copy it."""

    def __init__(self, generator: np.random.RandomState) -> None:
        self._generator = generator

    @classmethod
    def from_seed(cls, seed: int) -> Self:
        """Start a stream; ``seed`` is 0..2^32-1, ValueError otherwise."""
        return cls(np.random.RandomState(seed))

    @classmethod
    def restore(cls, snapshot: Mapping[str, Any]) -> Self:
        """Continue the stream that ``snapshot()`` described."""
        state = msgspec.convert(snapshot, StreamState)
        generator = np.random.RandomState(0)
        generator.set_state(("MT19937", np.array(state.key, dtype=np.uint32), state.pos, 0, 0.0))
        return cls(generator)

    def snapshot(self) -> dict[str, Any]:
        """``{"key": [624 words], "pos": n}``, plain integers."""
        state = self._generator.get_state(legacy=False)["state"]
        return {"key": state["key"].tolist(), "pos": int(state["pos"])}

    def intn(self, n: int) -> int:
        """Draw one of 0..n-1, all equally likely; n = 1 consumes nothing.

        Masked rejection: words are drawn, cut to the bit length of n-1, and thrown away while they are too large.
        Above 2^32 a draw takes two words, the high one first.
        """
        if n < 1:
            raise ValueError(f"cannot draw from {n} values")
        limit = n - 1
        if limit == 0:
            return 0
        mask = (1 << limit.bit_length()) - 1
        draw = self._word if limit < 1 << _WORD_BITS else self._two_words
        while (value := draw() & mask) > limit:
            pass
        return value

    def unit(self) -> float:
        """Draw from [0, 1) with 53 random bits."""
        return float(self._generator.random_sample())

    def uniform(self, minval: float, maxval: float) -> float:
        """Draw from [minval, maxval)."""
        return minval + (maxval - minval) * self.unit()

    def request_id(self) -> str:
        """Draw four words, each little-endian, as the text of a version 4 UUID."""
        return str(uuid.UUID(bytes=self._generator.bytes(16), version=4))

    def _word(self) -> int:
        return int.from_bytes(self._generator.bytes(4), "little")

    def _two_words(self) -> int:
        high = self._word()
        return high << _WORD_BITS | self._word()
