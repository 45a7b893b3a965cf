"""Use that is forgotten exponentially, as an average of slots. Pure.

The weight of what was held halves with every half-life: who has held four slots for one half-life, and none before, has
used two; one half-life later that is one. As in Slurm (``PriorityDecayHalfLife``,
https://slurm.schedmd.com/priority_multifactor.html) and in the time-aware fairness of KAI-Scheduler, it is slots times
seconds that count, whatever jobs they were.
"""

from __future__ import annotations

from datetime import timedelta


def decayed(used: float, after: timedelta, half_life: timedelta, *, held: float = 0.0) -> float:
    """What ``used`` comes to ``after`` a time in which ``held`` slots were held all the time."""
    left: float = 0.5 ** (after / half_life)
    return used * left + held * (1.0 - left)
