"""Drawing one point of a hyperparameter space (docs/reference/experiments.md 2.2)."""

from typing import Any, assert_never

from libs.searchers.sampling.rng import RandomStream
from libs.searchers.sampling.space import Categorical, Const, Double, Int, Log, Node, SearchSpace


def sample_hparams(space: SearchSpace, stream: RandomStream) -> dict[str, Any]:
    """Draw every hyperparameter, keys in sorted order at every depth; constants draw nothing."""
    return {key: _sample(node, stream) for key, node in space.items}


def _sample(node: Node, stream: RandomStream) -> Any:
    match node:
        case SearchSpace():
            return sample_hparams(node, stream)
        case Const(val=val):
            return val
        case Int(minval=minval, maxval=maxval):
            return minval + stream.intn(maxval - minval + 1)
        case Double(minval=minval, maxval=maxval):
            return stream.uniform(minval, maxval)
        case Log(base=base, minval=minval, maxval=maxval):
            return base ** stream.uniform(minval, maxval)
        case Categorical(vals=vals):
            return vals[stream.intn(len(vals))]
        case _:
            assert_never(node)
