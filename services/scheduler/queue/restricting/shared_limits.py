"""Limits of users, groups and workspaces, as far as they concern a plan.

A limit of all pools together counts what is held in the others, so that of two pools that plan at the same time the
second one has to see what the first has started: an advisory lock, which every plan takes after that of its pool, lets
one follow the other. Plans that no such limit concerns do not take it.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Mapping, Sequence, Set
from datetime import datetime
from typing import Any, Final, NamedTuple

from msgspec import Struct

from libs.db.engine import Connection
from libs.db.prepared.statements import PreparedStatement
from libs.slot_hours.period_use import PeriodUse
from libs.slot_hours.periods import Period, next_begin
from libs.slot_hours.use import Key, Use
from services.scheduler.plan.snapshot import HourLimit, SlotLimit

LOCK: Final = 0x5E50_1182
"""Advisory lock of plans that a limit of all pools concerns."""
_LOCK_LIMITS: Final = PreparedStatement("SELECT pg_advisory_xact_lock(:key::bigint)")
_HOUR_S: Final = 3600
_SCOPES: Final = ("user", "group", "workspace")
"""The narrowest first: of several limits that are reached it is the reason."""
_LIMITS: Final = PreparedStatement("""
    SELECT id, scope, subject_id, pool, period, amount, preempts
    FROM resource_limits WHERE pool IN ('', :pool) ORDER BY id
""")
_MEMBERS: Final = PreparedStatement("SELECT group_id, user_id FROM group_members WHERE group_id = ANY(:groups)")
_NAMES: Final = PreparedStatement("""
    SELECT 'user' AS scope, id, username AS name FROM users WHERE id = ANY(:users)
    UNION ALL SELECT 'group', id, name FROM groups WHERE id = ANY(:groups)
    UNION ALL SELECT 'workspace', id, name FROM workspaces WHERE id = ANY(:workspaces)
""")
_HELD_ELSEWHERE: Final = PreparedStatement("""
    SELECT j.owner_id, j.workspace_id, sum(a.slots) AS slots,
           sum(a.slots) FILTER (WHERE a.preempted_at IS NOT NULL OR a.killed_at IS NOT NULL) AS leaving
    FROM allocations a JOIN jobs j ON j.job_id = a.job_id
    WHERE a.pool <> :pool AND a.released_at IS NULL AND a.assigned_at IS NOT NULL AND a.slots > 0
      AND (j.owner_id = ANY(:users) OR j.workspace_id = ANY(:workspaces))
    GROUP BY j.owner_id, j.workspace_id
""")

Row = Mapping[Any, Any]


class _Holder(NamedTuple):
    scope: str
    ident: int


class _Concern(NamedTuple):
    """A limit, and for whom it is."""

    limit: Row
    holder: _Holder

    @property
    def key(self) -> str:
        return f"{self.limit['id']}/{self.holder.ident}"


class SharedLimits(Struct, frozen=True):
    """The limits that concern a plan, by their keys."""

    limits: Mapping[str, SlotLimit | HourLimit] = {}
    keys: Mapping[tuple[int, int], tuple[str, ...]] = {}
    """Of what an owner has in a workspace."""

    def keys_of(self, row: Row) -> tuple[str, ...]:
        return self.keys.get((row["owner_id"], row["workspace_id"]), ())


async def load_shared_limits(
    connection: Connection,
    pool: str,
    pending: Iterable[Row],
    held: Iterable[Row],
    *,
    use: PeriodUse,
    now: datetime,
    lock: bool,
    of_all_held: bool = False,
) -> SharedLimits:
    """Those that concern something in ``pending``, and those that let something in ``held`` leave.

    A row has ``owner_id``, ``workspace_id`` and ``slots``; what has no slots is not limited.
    use          remembers what was used, from plan to plan
    lock         nobody else plans by limits of all pools until the transaction ends
    of_all_held  all that concern something in ``held``
    """
    rows = await _LIMITS.rows(connection, pool=pool)
    if not rows:
        return SharedLimits()
    groups = await _members(connection, {row["subject_id"] for row in rows if row["scope"] == "group"})
    table = _Table(rows, groups)
    waiting = {(row["owner_id"], row["workspace_id"]) for row in pending if row["slots"] and row["owner_id"]}
    running = {(row["owner_id"], row["workspace_id"]) for row in held if row["slots"] and row["owner_id"]}
    uses = {one: table.uses(*one) for one in waiting | running}
    concerned = {each.key: each for one in waiting for each in uses[one]}
    concerned |= {each.key: each for one in running for each in uses[one] if each.limit["preempts"] or of_all_held}
    if not concerned:
        return SharedLimits()
    if lock and any(not one.limit["pool"] for one in concerned.values()):
        await _LOCK_LIMITS.rows(connection, key=LOCK)
    elsewhere = await _held_elsewhere(connection, pool, concerned.values(), groups)
    periods: set[Period] = {one.limit["period"] for one in concerned.values() if one.limit["period"]}
    used = {period: await use.read(connection, period, now) for period in sorted(periods)}
    names = await _names(connection, {one.holder for one in concerned.values()})
    return SharedLimits(
        {
            key: _hour_limit(one, names, used[one.limit["period"]], groups, now)
            if one.limit["period"]
            else _slot_limit(one, names, elsewhere, groups)
            for key, one in sorted(concerned.items())
        },
        {owned: tuple(one.key for one in found if one.key in concerned) for owned, found in uses.items()},
    )


class _Table:
    """The rows by whom they are for."""

    def __init__(self, rows: Iterable[Row], groups: Mapping[int, Set[int]]) -> None:
        self._by_holder: defaultdict[_Holder, list[Row]] = defaultdict(list)
        for row in rows:
            self._by_holder[_Holder(row["scope"], row["subject_id"])].append(row)
        self._groups_of: defaultdict[int, list[int]] = defaultdict(list)
        for group, members in sorted(groups.items()):
            for user in members:
                self._groups_of[user].append(group)

    def uses(self, owner: int, workspace: int) -> list[_Concern]:
        """The limits that count what ``owner`` has in ``workspace``."""
        of_scope = {"user": [owner], "group": self._groups_of[owner], "workspace": [workspace]}
        return [
            _Concern(limit, holder)
            for scope in _SCOPES
            for holder in (_Holder(scope, ident) for ident in of_scope[scope])
            for limit in self._limits_of(holder)
        ]

    def _limits_of(self, holder: _Holder) -> list[Row]:
        """Its own, and those for everybody where it has none of its own."""
        own = self._by_holder.get(holder, [])
        said = {(row["pool"], row["period"]) for row in own}
        for_all = self._by_holder.get(_Holder(holder.scope, 0), [])
        return [*own, *(row for row in for_all if (row["pool"], row["period"]) not in said)]


def _slot_limit(
    one: _Concern, names: Mapping[_Holder, str], elsewhere: Sequence[Row], groups: Mapping[int, Set[int]]
) -> SlotLimit:
    counted = [] if one.limit["pool"] else [row for row in elsewhere if _counts(row, one.holder, groups)]
    return SlotLimit(
        holder=_in_words(one.holder, names),
        where=_where(one.limit),
        most=int(one.limit["amount"]),
        elsewhere=sum(row["slots"] for row in counted),
        leaving=sum(row["leaving"] or 0 for row in counted),
        preempts=one.limit["preempts"],
    )


def _hour_limit(
    one: _Concern,
    names: Mapping[_Holder, str],
    used: Mapping[Key, Use],
    groups: Mapping[int, Set[int]],
    now: datetime,
) -> HourLimit:
    total = Use()
    for (pool, owner, workspace), use in used.items():
        if one.limit["pool"] in ("", pool):
            row = {"owner_id": owner, "workspace_id": workspace}
            total += use if _counts(row, one.holder, groups) else Use()
    return HourLimit(
        holder=_in_words(one.holder, names),
        where=_where(one.limit),
        period=one.limit["period"],
        most_s=one.limit["amount"] * _HOUR_S,
        spent_s=total.spent_s,
        rest_s=total.rest_s,
        next_at=next_begin(one.limit["period"], now),
        preempts=one.limit["preempts"],
    )


def _in_words(holder: _Holder, names: Mapping[_Holder, str]) -> str:
    return f"{holder.scope} {names.get(holder, holder.ident)}"


def _where(limit: Row) -> str:
    return f" of resource pool {limit['pool']}" if limit["pool"] else ""


def _counts(row: Row, holder: _Holder, groups: Mapping[int, Set[int]]) -> bool:
    if holder.scope == "group":
        return row["owner_id"] in groups[holder.ident]
    return bool(row["owner_id" if holder.scope == "user" else "workspace_id"] == holder.ident)


async def _members(connection: Connection, groups: Set[int]) -> Mapping[int, Set[int]]:
    found: dict[int, set[int]] = {group: set() for group in groups}
    if groups:
        for row in await _MEMBERS.rows(connection, groups=sorted(groups)):
            found[row["group_id"]].add(row["user_id"])
    return found


async def _held_elsewhere(
    connection: Connection, pool: str, concerns: Iterable[_Concern], groups: Mapping[int, Set[int]]
) -> Sequence[Row]:
    holders = {one.holder for one in concerns if not one.limit["pool"] and not one.limit["period"]}
    if not holders:
        return ()
    users = {one.ident for one in holders if one.scope == "user"}
    users.update(*(groups[one.ident] for one in holders if one.scope == "group"))
    workspaces = sorted(one.ident for one in holders if one.scope == "workspace")
    return await _HELD_ELSEWHERE.rows(connection, pool=pool, users=sorted(users), workspaces=workspaces)


async def _names(connection: Connection, holders: Iterable[_Holder]) -> dict[_Holder, str]:
    ids: dict[str, list[int]] = {scope: [] for scope in _SCOPES}
    for one in sorted(holders):
        ids[one.scope].append(one.ident)
    found = await _NAMES.rows(connection, users=ids["user"], groups=ids["group"], workspaces=ids["workspace"])
    return {_Holder(row["scope"], row["id"]): row["name"] for row in found}
