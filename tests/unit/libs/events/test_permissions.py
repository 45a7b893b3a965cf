"""Whatever pools are called, the permissions of one launcher end where those of another begin."""

from __future__ import annotations

import re
from collections.abc import Iterable

from hypothesis import assume, given
from hypothesis import strategies as st

from libs.events import subjects
from libs.events.accounts import CONTROL_PLANE, ORIGINAL_API, accounts, subscriber_account
from libs.events.permissions import (
    OWN_RIGHTS,
    SERVICES_INBOX,
    SUBSCRIBERS_INBOX,
    launcher_inbox,
    launcher_permissions,
    subscriber_permissions,
)

POOLS = st.text(min_size=1) | st.sampled_from(["a", "a.b", "a_b", "*", ">", "a.>", "services", "a b", '"', "$x", "ä"])
_VALID = re.compile(r"[$A-Za-z0-9_=*>-]+(\.[$A-Za-z0-9_=*>-]+)*")


def covers(patterns: Iterable[str], subject: str) -> bool:
    """Whether one of the patterns matches ``subject``; wildcards in ``subject`` count as any token."""
    return any(_overlap(pattern.split("."), subject.split(".")) for pattern in patterns)


def _overlap(one: list[str], other: list[str]) -> bool:
    if one[:1] == [">"] or other[:1] == [">"]:
        return bool(one and other)
    if not one or not other:
        return one == other
    return (one[0] == other[0] or "*" in (one[0], other[0])) and _overlap(one[1:], other[1:])


def written_by(pool: str) -> list[str]:
    return [
        subjects.kv_subject(subjects.CAPACITY_BUCKET, subjects.capacity_key(pool)),
        subjects.observed(pool, "1.a.1"),
        subjects.logs_of_launcher(pool, "1.a"),
    ]


@given(POOLS, POOLS)
def test_launchers_of_two_pools_share_nothing_but_the_rights_to_fetch_and_to_ask_for_theirs(
    one: str, other: str
) -> None:
    assume(one != other)
    ours, theirs = launcher_permissions(one), launcher_permissions(other)
    shared = [pattern for pattern in ours.publish if covers(theirs.publish, pattern)]
    # The first is from a watch whose name one has to know.
    assert shared == ["$JS.API.CONSUMER.MSG.NEXT.KV_ORDERS.*", OWN_RIGHTS]
    assert not [pattern for pattern in ours.subscribe if covers(theirs.subscribe, pattern)]
    for subject in written_by(other):
        assert covers(theirs.publish, subject)
        assert not covers(ours.publish, subject)


@given(POOLS)
def test_a_launcher_says_nothing_that_only_services_say(pool: str) -> None:
    allowed = launcher_permissions(pool).publish
    for subject in (
        subjects.event("allocation", "1.a.1", "ended"),
        subjects.event("allocation", "1.a.1", "observed"),
        subjects.event("job", pool, "changed"),
        subjects.logs("1.a"),
        subjects.log_stored("1.a"),
        subjects.rpc("logs", "cleanup"),
        subjects.launcher_rpcs(pool),
        subjects.kv_subject(subjects.ORDERS_BUCKET, subjects.order_key(pool, "1.a.1")),
        subjects.kv_subject(subjects.ORDERS_BUCKET, subjects.placeholders_key(pool)),
    ):
        assert not covers(allowed, subject)


@given(POOLS)
def test_what_a_launcher_may_do_are_valid_subjects(pool: str) -> None:
    permissions = launcher_permissions(pool)
    for subject in (*permissions.publish, *permissions.subscribe):
        assert _VALID.fullmatch(subject)


@given(POOLS)
def test_inboxes_are_apart(pool: str) -> None:
    assert len({launcher_inbox(pool), SUBSCRIBERS_INBOX, SERVICES_INBOX}) == 3
    for inbox in (launcher_inbox(pool), SUBSCRIBERS_INBOX, SERVICES_INBOX):
        assert "." not in inbox  # so that different ones have nothing in common


def test_subscribers_do_not_touch_what_the_scheduler_reads() -> None:
    allowed = subscriber_permissions().publish
    for verb in ("CREATE", "DELETE", "INFO", "PAUSE", "RESET", "DURABLE.CREATE", "MSG.NEXT", "UNPIN"):
        subject = f"$JS.API.CONSUMER.{verb}.{subjects.EVENTS_STREAM}"
        assert not covers(allowed, subject)
        assert not covers(allowed, f"{subject}.{subjects.OBSERVER}")
    assert not covers(allowed, f"{ORIGINAL_API}.>")
    assert not covers(allowed, subjects.ALL_EVENTS)
    assert not covers(allowed, "$JS.API.STREAM.DELETE.*")


def test_accounts_import_what_the_other_exports_to_them() -> None:
    every = accounts(control_plane=[], subscribers={None: [], "grafana": [], "api": []})
    theirs = [subscriber_account(name) for name in (None, "grafana", "api")]
    assert [*every] == [CONTROL_PLANE, *theirs]
    for kind in ("stream", "service"):
        for account in theirs:
            exported = {each[kind] for each in every[CONTROL_PLANE]["exports"] if kind in each}
            imported = {each[kind]["subject"] for each in every[account]["imports"] if kind in each}
            assert imported == exported
            exported = {each[kind] for each in every[account]["exports"] if kind in each}
            found = [each[kind] for each in every[CONTROL_PLANE]["imports"] if kind in each]
            assert {each["subject"] for each in found if each["account"] == account} == exported
    assert all(each["accounts"] == theirs for each in every[CONTROL_PLANE]["exports"])
    assert all(each["accounts"] == [CONTROL_PLANE] for account in theirs for each in every[account]["exports"])
    reached = [each["to"] for each in every[CONTROL_PLANE]["imports"]]
    assert len(reached) == len(set(reached))
