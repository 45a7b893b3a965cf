"""Whom a share may ask to leave, compared with a look at everybody for each that asks."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator
from datetime import timedelta

from hypothesis import given
from hypothesis import strategies as st

from services.scheduler.plan.ordering.fair_share import ShareTree, owner_of
from services.scheduler.plan.ordering.ranking import ranking
from services.scheduler.plan.preemption.larger_shares import LargerShares
from services.scheduler.plan.preemption.victims import PossibleVictim, candidates
from services.scheduler.plan.snapshot import HeldAllocation, PendingAllocation, PoolPolicy
from tests.unit.scheduler.plan.test_plan_properties import NOW

SHARES = ("x", "y", "team", "team/x", "team/y", "team/x/j1", "team/x/j2", "team-b/x", "j1", "j2", "j3")


@given(st.data())
def test_they_are_those_that_a_look_at_everybody_finds(data: st.DataObject) -> None:
    """Whatever has started or left in between."""
    sizes = st.sampled_from((1, 2, 4, 8))
    held = [
        HeldAllocation(
            allocation=f"h{number}",
            job=f"j{number}",
            share=data.draw(st.sampled_from(SHARES)),
            pods=(("a", data.draw(sizes)),),
            started_at=NOW - timedelta(minutes=number % 3),
        )
        for number in range(data.draw(st.integers(0, 12)))
    ]
    tree = ShareTree(
        data.draw(st.dictionaries(st.sampled_from(SHARES), st.sampled_from((0.0, 0.5, 2.0)))),
        float,
        data.draw(st.dictionaries(st.sampled_from(SHARES), st.sampled_from((0.0, 1.5)))),
    )
    for one in held:
        tree.add(owner_of(one), one.slots)
    offered = candidates(held, ranking(PoolPolicy(queue="fair_share")), NOW)
    shares, gone = LargerShares(tree, offered), set[str]()
    for number in range(data.draw(st.integers(1, 6))):
        request = PendingAllocation(
            allocation=f"p{number}",
            job=f"j{number}",
            share=data.draw(st.sampled_from(SHARES)),
            pods=(data.draw(sizes),),
            priority=42,
            submitted_at=NOW,
            requested_at=NOW,
        )
        found = list(shares.asked_by(request, gone))
        assert found == list(_asked_by(request, tree, offered, gone))
        for victim in found[: data.draw(st.integers(0, 2))]:
            gone.add(victim.held.allocation)
            tree.add(owner_of(victim.held), -victim.held.slots)
        tree.add(owner_of(request), request.slots)


def _asked_by(
    request: PendingAllocation, tree: ShareTree, offered: list[PossibleVictim], gone: set[str]
) -> Iterator[PossibleVictim]:
    owners = {owner_of(one.held) for one in offered}
    parted = [(owner, tree.part(owner_of(request), owner)) for owner in owners]
    others = [(owner, *pair) for owner, pair in parted if pair is not None]
    given_up: Counter[int] = Counter()
    for owner, asks, gives in sorted(others, key=lambda other: (-other[2].ratio, other[0])):
        for one in offered:
            if owner_of(one.held) != owner or one.held.allocation in gone:
                continue
            after = given_up[id(gives)] + one.held.slots
            if asks.ratio_with(request.slots) <= gives.ratio_with(-after):
                given_up[id(gives)] = after
                yield one
