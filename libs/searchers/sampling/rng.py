"""The random stream of a search: MT19937, so that a seed gives the same trials as it always gave.

All trials of a search draw from one stream; its state is part of the snapshot, so a restored search draws on where it
was. The generator is that of the standard library, set up as the original authors do it and numpy's ``RandomState``,
which is not how ``random.seed`` does. Source: docs/reference/experiments.md 2.2.
"""

import random
import uuid
from collections.abc import Mapping
from itertools import accumulate
from typing import Annotated, Any, Final, Self

import msgspec
from msgspec import Meta, Struct

_WORD_BITS: Final = 32
_WORDS: Final = 624
_MULTIPLIER: Final = 1812433253
_STATE_VERSION: Final = 3
"""Of what ``random.Random.setstate`` takes."""


class StreamState(Struct, frozen=True):
    """The whole state of MT19937: its words, and how many of them have been used up."""

    key: Annotated[list[Annotated[int, Meta(ge=0, lt=1 << _WORD_BITS)]], Meta(min_length=_WORDS, max_length=_WORDS)]
    pos: Annotated[int, Meta(ge=0, le=_WORDS)]


class RandomStream:
    """A stream that moves on with every draw; hand it around, do not copy it."""

    def __init__(self, state: StreamState) -> None:
        self._generator = random.Random()  # noqa: S311  (draws to be repeated, not secrets)
        self._generator.setstate((_STATE_VERSION, (*state.key, state.pos), None))

    @classmethod
    def from_seed(cls, seed: int) -> Self:
        """Start a stream; ``seed`` is 0..2^32-1, ValueError otherwise."""
        if not 0 <= seed < 1 << _WORD_BITS:
            raise ValueError(f"a seed is between 0 and 2^{_WORD_BITS}-1, not {seed}")
        return cls(StreamState(list(accumulate(range(1, _WORDS), _next_word, initial=seed)), _WORDS))

    @classmethod
    def restore(cls, snapshot: Mapping[str, Any]) -> Self:
        """Continue the stream that ``snapshot()`` described."""
        return cls(msgspec.convert(snapshot, StreamState))

    def snapshot(self) -> dict[str, Any]:
        """``{"key": [624 words], "pos": n}``, plain integers."""
        _, (*key, pos), _ = self._generator.getstate()
        return {"key": key, "pos": pos}

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
        return self._generator.random()

    def uniform(self, minval: float, maxval: float) -> float:
        """Draw from [minval, maxval)."""
        return minval + (maxval - minval) * self.unit()

    def request_id(self) -> str:
        """Draw four words, each little-endian, as the text of a version 4 UUID."""
        return str(uuid.UUID(bytes=b"".join(self._word().to_bytes(4, "little") for _ in range(4)), version=4))

    def _word(self) -> int:
        return self._generator.getrandbits(_WORD_BITS)

    def _two_words(self) -> int:
        high = self._word()
        return high << _WORD_BITS | self._word()


def _next_word(word: int, number: int) -> int:
    """The word of a new state that follows ``word``, which is the ``number``-th."""
    return (_MULTIPLIER * (word ^ word >> 30) + number) % (1 << _WORD_BITS)
