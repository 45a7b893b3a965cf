"""What holds over many plans of one pool, whatever is submitted and ends between them.

Each plan is carried out, and who was asked to leave has left by the next: whatever a plan promises has to be true then.
"""

from __future__ import annotations

import random
from collections import Counter
from datetime import timedelta
from typing import Any

import msgspec
from hypothesis import settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, initialize, invariant, precondition, rule

from services.scheduler.plan.decisions import Plan
from services.scheduler.plan.planner import plan
from services.scheduler.plan.snapshot import PoolPolicy, PoolSnapshot
from services.scheduler.plan.topology.levels import TopologyRequest
from tests.scenarios.queue.virtual_queue import LEVEL, VirtualQueue
from tests.unit.scheduler.plan.test_plan_properties import has_effect

NODES = {"a": 4, "b": 4, "c": 2}
RACKS = {"a": "r", "b": "r", "c": ""}
TAKES = 10
"""Minutes that every task runs, and so at most as many plans."""
POLICIES = (
    PoolPolicy(preemption=True, min_runtime=timedelta(minutes=3)),
    PoolPolicy(preemption=True),
    PoolPolicy(queue="fair_share", min_runtime=timedelta(minutes=3)),
    PoolPolicy(queue="fair_share"),
    PoolPolicy(),
    PoolPolicy(queue="fifo"),
    PoolPolicy(queue="round_robin"),
)
GANGS = ((1,), (1,), (2,), (3,), (4,), (2, 2), (4, 4), (2, 2, 2, 2, 2))
"""Each has room in the empty pool."""
TOPOLOGIES = (None, None, TopologyRequest(LEVEL, required=True), TopologyRequest(LEVEL, required=False))
"""In the rack there is room for two pods of 4."""


class Plans(RuleBasedStateMachine):
    def __init__(self) -> None:
        super().__init__()
        self.queue = VirtualQueue(PoolPolicy(), nodes=NODES, task_minutes=TAKES, racks=RACKS)
        self.promised: dict[str, Any] = {}
        """Places that others were asked to leave, by whom they are for."""
        self.moves_per_hour = 0
        self.rng = random.Random(0)

    @initialize(policy=st.sampled_from(POLICIES), seed=st.integers(0, 2**16), moves=st.sampled_from((0, 2, 50)))
    def begin(self, policy: PoolPolicy, seed: int, moves: int) -> None:
        self.queue = VirtualQueue(policy, nodes=NODES, task_minutes=TAKES, racks=RACKS, moves_per_hour=moves)
        self.moves_per_hour = moves
        self.rng = random.Random(seed)

    @rule(seed=st.integers(0, 2**16), count=st.integers(1, 6))
    def submit(self, seed: int, count: int) -> None:
        """As many as make a queue: one by one they would hardly ever be in each other's way."""
        rng = random.Random(seed)
        for _ in range(count):
            may_leave, priority = rng.random() < 0.7, rng.choice((10, 42, 42, 90))
            pods = rng.choice(GANGS)
            near = rng.choice(TOPOLOGIES) if len(pods) == 2 else None
            self.queue.submit(rng.choice("jkl"), pods, priority=priority, preemptible=may_leave, topology=near)

    @precondition(lambda self: any(not one.leaving for one in self.queue.held.values()))
    @rule(index=st.integers(0, 99))
    def end(self, index: int) -> None:
        """A task is done sooner."""
        running = [name for name, one in self.queue.held.items() if not one.leaving]
        del self.queue.held[running[index % len(running)]]

    @rule(times=st.integers(1, 4))
    def plan(self, times: int) -> None:
        for _ in range(times):
            self.one_plan()

    def one_plan(self) -> None:
        """A minute passes; then there is one plan, which leaves nothing for another one to do."""
        before, self.promised = self.promised, {}
        waiting = {request.allocation: request for request in self.queue.pending}
        made = self.queue.step()
        starts = {start.allocation: start for start in made.starts}
        for name, places in before.items():
            assert name in starts, "nobody has left in vain"
            assert starts[name].placements == places
        for name, places in self.queue.came_back.items():
            assert starts[name].placements == places, "who was moved goes on where it was moved to"
        for name, start in starts.items():
            if name in waiting:
                assert tuple(place.slots for place in start.placements) == waiting[name].pods, "gangs start whole"
        self.note_promises(made)
        pool = self.queue.snapshot
        again = self.queue.plan_again()
        assert plan(self.shuffled(pool)) == again
        assert not has_effect(again), "a plan applied twice changes nothing"

    def note_promises(self, made: Plan) -> None:
        """Who was asked to leave gives a place to somebody, and nothing that was given is taken back."""
        for start in made.starts:
            # Its node may have had free slots that are kept for others: those who leave make up for them.
            assert start.placements == self.promised.pop(start.allocation, start.placements)
        given = {one.allocation: one.placements for one in made.nominated}
        assert all(given.values())
        started = {start.allocation: start.placements for start in made.starts}
        self.promised |= {name: places for name, places in given.items() if name not in started}
        given |= started
        asked = [(one.allocation, one.makes_room_for) for one in made.preempted]
        asked += [(one.allocation, one.makes_room_for) for one in made.moved]
        for allocation, makes_room_for in asked:
            places = {place.node for place in given[makes_room_for]}
            assert places & {node for node, _ in self.queue.held[allocation].pods}
        moved_lately = sum(at > self.queue.now - timedelta(hours=1) for at in self.queue.moved_at)
        assert moved_lately <= self.moves_per_hour

    def shuffled(self, pool: PoolSnapshot) -> PoolSnapshot:
        def mixed(items: Any) -> Any:
            return tuple(self.rng.sample(items, len(items)))

        nodes = mixed(pool.nodes)
        return msgspec.structs.replace(pool, nodes=nodes, held=mixed(pool.held), pending=mixed(pool.pending))

    @invariant()
    def no_node_is_oversold(self) -> None:
        used: Counter[str] = Counter()
        for one in self.queue.held.values():
            for node, slots in one.pods:
                used[node] += slots
        assert all(slots <= NODES[node] for node, slots in used.items())

    def teardown(self) -> None:
        """Nothing starves: without anything new, all that waits starts, though each may leave for each other once."""
        left = len(self.queue.pending) + len(self.queue.held)
        for _ in range((left + 1) * (left + 1) * TAKES):
            if not self.queue.pending:
                return
            self.one_plan()
        assert not self.queue.pending


Plans.TestCase.settings = settings(max_examples=40, stateful_step_count=12, deadline=None)
TestPlans = Plans.TestCase
