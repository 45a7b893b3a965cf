"""Decides when a search gives up, because the code refuses whatever hyperparameters it is given.

A refused trial says nothing about the search and is replaced, so a mistake in the code would otherwise be replaced for
ever: a search method says how many in a row are too many (``MethodDefinition.most_refusals``).
Source: docs/reference/experiments.md 3.1 to 3.4 and 5.2 (early exit).
"""

from msgspec import Struct

from libs.searchers.actions import Create


class Refusals(Struct):
    """Trials refused one after the other; ``withheld`` waits until one of those that still run shows what it is."""

    in_a_row: int = 0
    withheld: list[Create] = []
