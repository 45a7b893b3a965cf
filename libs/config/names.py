"""Names for things whose owners gave them none: three words, easy to say and to tell apart.

Source: docs/reference/experiments.md 1.2 (name); docs/reference/tasks-and-cli.md 2.4 (description).
"""

from __future__ import annotations

import random
from typing import Final

WORDS: Final = tuple(
    """
    amber apple arrow aspen autumn bamboo basil beacon berry birch bison blossom breeze bridge brook cactus candle
    canyon cedar cherry cliff clover cobalt comet copper coral cotton crane cricket crystal daisy dawn delta desert
    dolphin dove dune eagle echo elm ember fable falcon fern field finch fjord flame flint forest fox garden garnet
    ginger glacier granite grove harbor harvest hawk hazel heron hill honey island ivory jade jasmine juniper kestrel
    kite lagoon lake lantern lark laurel lemon lily linden lotus maple marble meadow melody mesa mint mist moon moss
    mountain nectar nutmeg oak oasis ocean olive onyx opal orchid otter owl palm panda peach pebble pepper pine planet
    plum pond poppy prairie quail quartz quill rain raven reed ridge river robin rose saffron sage sail salmon sand
    sequoia shadow shell silver sky snow sparrow spring spruce star stone storm summer summit sun swan thistle thunder
    tiger topaz trail tulip tundra valley velvet violet walnut wave willow wind winter wolf wren yarrow zephyr
    """.split()  # noqa: SIM905
)


def three_words(rng: random.Random) -> str:
    """Three different words joined by ``-``."""
    return "-".join(rng.sample(WORDS, 3))


def random_name(rng: random.Random, kind: str = "Experiment") -> str:
    """A name such as ``Experiment (amber-kite-moss)``."""
    return f"{kind} ({three_words(rng)})"
