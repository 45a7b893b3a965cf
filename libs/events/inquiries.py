"""What the scheduler asks a launcher when it may have missed something: to say again what it sees.

Request and reply on ``launcher_rpc(pool, SAY_AGAIN)``. The reply says that the question was understood; what there is
to say comes as observations.
"""

from __future__ import annotations

from typing import Final

from msgspec import Struct

SAY_AGAIN: Final = "say-again"
"""``SayAgainAsked`` -> ``Done``."""


class SayAgainAsked(Struct, frozen=True, kw_only=True, tag_field="type", tag="say_again.asked"):
    """What was heard last; of what agrees with it nothing has to be said."""

    heard: dict[str, int]
    """Allocation -> revision of the newest observation that was applied, 0 for none."""
