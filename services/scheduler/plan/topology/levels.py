"""What a gang asks of the topology of its pool: a level, such as racks, in one domain of which all of its pods run."""

from __future__ import annotations

from typing import Final

from msgspec import Struct

_HOST: Final = "kubernetes.io/hostname"


class TopologyRequest(Struct, frozen=True, gc=False, cache_hash=True):
    level: str
    """Key of the label whose values name the domains."""
    required: bool
    """Whether it waits rather than run in several of them."""


class LevelChoice(Struct, frozen=True, gc=False):
    """A request as one pool understands it."""

    level: int
    """Place in the levels of the pool, the widest first; those that it does not have are ``UNKNOWN_LEVEL``."""
    required: bool


UNKNOWN_LEVEL: Final = -1


def in_words(level: str) -> str:
    """What a domain is called: ``rack`` for ``example.com/rack``."""
    return "host" if level == _HOST else level.rpartition("/")[2]
