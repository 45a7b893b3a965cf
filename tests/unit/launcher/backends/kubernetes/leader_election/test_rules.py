"""When a lease may be taken, and what is written into it."""

from __future__ import annotations

from datetime import UTC, datetime
from operator import attrgetter

import msgspec
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, initialize, invariant, rule
from msgspec import Struct

from services.launcher.backends.kubernetes.client.objects import Lease, LeaseSpec, Meta
from services.launcher.backends.kubernetes.leader_election.rules import Sight, given_up, look, may_take, taken
from services.launcher.backends.kubernetes.settings import StandbySettings

NOW = datetime(2026, 1, 2, 3, 4, 5, 678, tzinfo=UTC)


def lease(holder: str | None = "other", duration: int | None = 15, version: int = 1, **spec: str) -> Lease:
    return Lease(
        metadata=Meta(name="lease", resource_version=str(version)),
        spec=LeaseSpec(holder_identity=holder, lease_duration_seconds=duration, **spec),  # type: ignore[arg-type]
    )


class Case(Struct, frozen=True):
    name: str
    sight: Sight
    now: float
    free: bool


CASES = [
    Case("there is none", Sight(None, 0.0), 0.0, True),
    Case("it was released", Sight(lease(None), 0.0), 0.0, True),
    Case("it was released in the way of client-go", Sight(lease(""), 0.0), 0.0, True),
    Case("it is ours, from before a restart", Sight(lease("me"), 0.0), 0.0, True),
    Case("another has it and was just seen", Sight(lease(), 100.0), 100.0, False),
    Case("another did not renew it for a while", Sight(lease(), 100.0), 114.9, False),
    Case("another did not renew it for as long as it says", Sight(lease(), 100.0), 115.0, True),
    Case("another asked for longer than we would", Sight(lease(duration=60), 100.0), 120.0, False),
    Case("another asked for less than we would", Sight(lease(duration=5), 100.0), 105.0, True),
    Case("it does not say how long", Sight(lease(duration=None), 100.0), 107.0, True),
    Case("it does not say how long, and it is too early", Sight(lease(duration=None), 100.0), 106.9, False),
]


@pytest.mark.parametrize("case", CASES, ids=attrgetter("name"))
def test_a_lease_is_taken_when_nobody_holds_it_any_more(case: Case) -> None:
    assert may_take(case.sight, identity="me", lease_s=7, now=case.now) is case.free


@pytest.mark.parametrize("wrong_by", [-3600.0, 0.0, 3600.0])
def test_what_time_others_think_it_is_does_not_matter(wrong_by: float) -> None:
    renewed = datetime.fromtimestamp(NOW.timestamp() + wrong_by, UTC).isoformat()
    sight = look(None, lease(renew_time=renewed), now=50.0)
    assert not may_take(sight, identity="me", lease_s=15, now=64.9)
    assert may_take(sight, identity="me", lease_s=15, now=65.0)


def test_only_a_change_of_what_it_says_gives_the_holder_more_time() -> None:
    first = look(None, lease(renew_time="1"), now=10.0)
    assert look(first, lease(renew_time="1", version=2), now=20.0).since == 10.0
    assert look(first, lease(renew_time="2", version=2), now=20.0).since == 20.0
    assert look(first, lease("third", renew_time="1", version=2), now=20.0).since == 20.0
    gone = look(first, None, now=20.0)
    assert (gone.lease, gone.since) == (None, 20.0)
    assert look(gone, lease(renew_time="1"), now=30.0).since == 30.0


def test_what_is_written() -> None:
    new = taken(None, identity="me", lease_s=15, now=NOW)
    assert new == {
        "holderIdentity": "me",
        "leaseDurationSeconds": 15,
        "acquireTime": "2026-01-02T03:04:05.000678Z",
        "renewTime": "2026-01-02T03:04:05.000678Z",
        "leaseTransitions": 0,
    }
    later = datetime(2026, 1, 2, 3, 4, 7, tzinfo=UTC)
    spec = msgspec.convert(new, LeaseSpec)
    renewed = taken(spec, identity="me", lease_s=15, now=later)
    assert renewed == {**new, "renewTime": "2026-01-02T03:04:07.000000Z"}
    of_another = taken(spec, identity="other", lease_s=15, now=later)
    assert of_another == {
        **new,
        "holderIdentity": "other",
        "acquireTime": "2026-01-02T03:04:07.000000Z",
        "renewTime": "2026-01-02T03:04:07.000000Z",
        "leaseTransitions": 1,
    }


def test_a_lease_that_was_given_up_is_free() -> None:
    left = msgspec.convert({**msgspec.to_builtins(lease("me").spec), **given_up()}, LeaseSpec)
    assert may_take(look(None, Lease(metadata=Meta(), spec=left), now=0.0), identity="other", lease_s=15, now=0.0)


@pytest.mark.parametrize(
    ("times", "works"),
    [
        ({}, True),
        ({"lease_s": 3, "renew_deadline_s": 2, "retry_s": 0.5}, True),
        ({"renew_deadline_s": 15}, False),
        ({"renew_deadline_s": 20}, False),
        ({"retry_s": 8}, False),
        ({"retry_s": 0}, False),
        ({"lease_s": 2.5}, False),
    ],
)
def test_times_that_would_let_two_act_are_refused(times: dict[str, float], works: bool) -> None:
    try:
        msgspec.convert(times, StandbySettings)
    except msgspec.ValidationError:
        assert not works
    else:
        assert works


@given(
    st.floats(0, 1e6, allow_nan=False),
    st.lists(st.tuples(st.floats(0, 10, allow_nan=False), st.booleans()), max_size=30),
)
def test_nobody_takes_a_lease_that_is_being_renewed(start: float, looks: list[tuple[float, bool]]) -> None:
    now, count = start, 0
    sight = look(None, lease(renew_time="0"), now=now)
    last_renewal = now
    for pause, renewed in looks:
        now += pause
        count += renewed
        if renewed:
            last_renewal = now
        sight = look(sight, lease(renew_time=str(count)), now=now)
        assert may_take(sight, identity="me", lease_s=15, now=now) == (now - last_renewal >= 15)


class Rivals(RuleBasedStateMachine):
    """Launchers that read, write, lose answers, freeze and die in any order, at a server that keeps versions.

    What a holder believes is what the shell does with these rules: it acts until ``DEADLINE`` after it sent its last
    write that it knows to have succeeded.
    """

    LEASE, DEADLINE = 15, 10

    @initialize()
    def begin(self) -> None:
        self.now = 0.0
        self.stored: Lease | None = None
        self.version = 0
        self.sights: dict[str, Sight] = {}
        self.held_until: dict[str, float] = {}

    @rule(pause=st.floats(0, 6))
    def time_passes(self, pause: float) -> None:
        self.now += pause

    @rule(who=st.sampled_from(["a", "b", "c"]))
    def reads(self, who: str) -> None:
        self.sights[who] = look(self.sights.get(who), self.stored, now=self.now)

    @rule(who=st.sampled_from(["a", "b", "c"]), took=st.floats(0, 3), answered=st.booleans())
    def writes(self, who: str, took: float, answered: bool) -> None:
        sight = self.sights.get(who)
        if sight is None:
            return
        holds = self.held_until.get(who, -1.0) > self.now
        if not holds and not may_take(sight, identity=who, lease_s=self.LEASE, now=self.now):
            return
        sent_at = self.now
        self.now += took
        if (sight.lease and sight.lease.metadata.resource_version) != (
            self.stored and self.stored.metadata.resource_version
        ):
            return  # 409
        self.version += 1
        spec = taken(sight.lease.spec if sight.lease else None, identity=who, lease_s=self.LEASE, now=NOW)
        written = msgspec.convert({**spec, "renewTime": str(self.version)}, LeaseSpec)
        self.stored = Lease(metadata=Meta(resource_version=str(self.version)), spec=written)
        if answered:
            self.sights[who] = look(sight, self.stored, now=self.now)
            self.held_until[who] = sent_at + self.DEADLINE

    @rule(who=st.sampled_from(["a", "b", "c"]))
    def dies(self, who: str) -> None:
        """And comes back under its name."""
        self.sights.pop(who, None)
        self.held_until.pop(who, None)

    @invariant()
    def one_acts(self) -> None:
        acting = [who for who, until in getattr(self, "held_until", {}).items() if until > self.now]
        assert len(acting) <= 1


TestRivals = Rivals.TestCase
TestRivals.settings = settings(max_examples=100, stateful_step_count=40, deadline=None)
