"""Source of new trials: the space and the random stream of one search, shared by all its brackets."""

from typing import Any

from msgspec import Struct

from libs.searchers.actions import Create
from libs.searchers.sampling.hparams import sample_hparams
from libs.searchers.sampling.rng import RandomStream
from libs.searchers.sampling.space import SearchSpace

_SEEDS = 1 << 31


class TrialSource(Struct, frozen=True):
    """Makes Create actions. Draws in a fixed order: hyperparameters, request id, seed
    (docs/reference/experiments.md 2.2)."""

    space: SearchSpace
    stream: RandomStream

    def sampled(self) -> Create:
        """A trial with randomly drawn hyperparameters."""
        return self.with_hparams(sample_hparams(self.space, self.stream))

    def with_hparams(self, hparams: dict[str, Any]) -> Create:
        """A trial with given hyperparameters; only its id and seed are drawn."""
        request_id = self.stream.request_id()
        return Create(request_id, self.stream.intn(_SEEDS), hparams)
