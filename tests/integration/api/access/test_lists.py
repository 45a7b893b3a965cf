"""No list shows or counts what cannot be had alone, whatever roles somebody has."""

from __future__ import annotations

import json
from collections.abc import Iterator
from contextlib import ExitStack
from functools import cache
from typing import Any

import httpx
import pytest
from hypothesis import Phase, example, given, settings
from hypothesis import strategies as st
from sqlalchemy import delete, insert, select

from libs.db.engine import Connection
from libs.db.tables.users import group_members, groups, role_assignments
from tests.integration.api.access.one_of_each import Objects, make
from tests.integration.api.access.persons import Persons, api_with, give
from tests.integration.api.world import World, two_nodes
from tests.scenarios.rights_lists import LISTS, RightsList
from tests.scenarios.rights_matrix import CLUSTER_ROLES, LOCAL_ROLES

WORKSPACES = 3
VIEWER = 4
PAGE = 2
ITSELF = "itself"
NAME = "reader"

HOLDERS = st.sampled_from([ITSELF, 0, 1])
"""The user, or one of two groups."""
LOCAL = st.tuples(HOLDERS, st.sampled_from(LOCAL_ROLES), st.integers(0, WORKSPACES - 1))
EVERYWHERE = st.tuples(HOLDERS, st.sampled_from((*LOCAL_ROLES, *CLUSTER_ROLES)), st.none())
ASSIGNMENTS = st.tuples(st.lists(LOCAL, max_size=4, unique=True), st.lists(EVERYWHERE, max_size=1) | st.just([])).map(
    lambda both: [*both[0], *both[1]]
)
# A smaller example would need some hundred requests for each attempt.
ONCE: Any = {"derandomize": True, "phases": (Phase.explicit, Phase.generate)}
MEMBERSHIPS = st.sets(st.sampled_from([0, 1]))


class Reader:
    """Somebody with one set of roles, and what that gives them; nothing of it changes while they look."""

    def __init__(self, client: httpx.Client) -> None:
        self._client = client
        self.may_have = cache(self._may_have)

    def ask(self, method: str, path: str, body: Any = None) -> httpx.Response:
        return self._client.request(method, path, **({} if body is None else {"json": body}))

    def _may_have(self, alone: str) -> bool:
        method, path, *body = alone.split(" ", 2)
        reply = self.ask(method, path, json.loads(body[0]) if body else None)
        assert reply.status_code in ({200, 403, 404} if method == "PATCH" else {200, 404}), (alone, reply.text)
        return reply.status_code != 404

    def whole(self, row: RightsList, address: str) -> list[str | None]:
        """All that the list shows, by what has it alone; nothing where the list itself cannot be had."""
        if not row.paged:
            reply = self._list(row, address, None)
            return [] if reply is None else [row.alone(item) for item in row.items(reply)]
        reply = self._list(row, address, {"offset": 0, "limit": 500})
        if reply is None:
            return []
        shown = [row.alone(item) for item in row.items(reply)]
        assert reply["pagination"]["total"] == len(shown), row.call
        assert shown == self._in_pages(row, address, total=len(shown)), row.call
        return shown

    def _in_pages(self, row: RightsList, address: str, *, total: int) -> list[str | None]:
        shown: list[str | None] = []
        while len(shown) < total:
            reply = self._list(row, address, {"offset": len(shown), "limit": PAGE})
            assert reply is not None
            page = [row.alone(item) for item in row.items(reply)]
            shown.extend(page)
            assert page, row.call
            assert reply["pagination"]["total"] == total, row.call
            assert reply["pagination"]["endIndex"] == len(shown), row.call
        return shown

    def _list(self, row: RightsList, address: str, page: dict[str, int] | None) -> Any:
        if row.method == "GET":
            reply = self._client.get(address, params=httpx.URL(address).params.merge(page or {}))
        else:
            reply = self.ask(row.method, address, {**(row.body or {}), **(page or {})})
        # A list of the things in something, or of what somebody has, where that cannot be had.
        assert reply.status_code == 200 or (reply.status_code == 404 and not row.paged) or row.each, reply.text
        return reply.json() if reply.status_code == 200 else None


def addresses(row: RightsList, objects: Objects) -> list[str]:
    if row.each is None:
        return [row.address]
    before, _, rest = row.address.partition("{")
    return [f"{before}{ident}{rest.partition('}')[2]}" for ident in objects.of(row.each)]


class Lists:
    """An api with objects, the same for all examples, and what an administrator is shown of them."""

    def __init__(self, persons: Persons) -> None:
        self.persons = persons
        persons.add(NAME)
        users = [1, persons.ids[NAME]]
        self.objects: Objects = persons.world.in_database(lambda c: make(c, count=WORKSPACES, users=users))
        for experiment in self.objects.of("experiment"):
            path = f"/api/v1/experiments/{experiment}/labels/{experiment}"
            assert persons.clients["admin"].put(path).status_code == 200
        persons.world.in_database(self._known_assignments)
        admin = Reader(persons.clients["admin"])
        self.rows = [(row, address) for row in LISTS for address in addresses(row, self.objects)]
        self.known = {(row.call, address): set(admin.whole(row, address)) for row, address in self.rows}

    async def _known_assignments(self, connection: Connection) -> None:
        """Of somebody else, so that those who may look at roles find some everywhere."""
        for workspace in self.objects.of("workspace"):
            await give(connection, 2, VIEWER, int(workspace))
            group = {"group_id": self.objects.of("group of others")[0], "role_id": VIEWER, "workspace_id": workspace}
            await connection.execute(insert(role_assignments).values(group))

    def reader(self, memberships: set[int], assignments: list[tuple[Any, int, int | None]]) -> Reader:
        """Somebody who is in these groups, where they and the groups have these roles and no others."""
        user, workspaces, group_ids = self.persons.ids[NAME], self.objects.of("workspace"), self.objects.of("group")

        async def work(connection: Connection) -> None:
            own = await connection.scalar(select(groups.c.id).where(groups.c.user_id == user))
            holders = {ITSELF: own, 0: group_ids[0], 1: group_ids[1]}
            await connection.execute(delete(role_assignments).where(role_assignments.c.group_id.in_(holders.values())))
            await connection.execute(delete(group_members).where(group_members.c.user_id == user))
            for group in memberships:
                await connection.execute(insert(group_members).values(group_id=holders[group], user_id=user))
            for holder, role, number in assignments:
                scope = None if number is None else workspaces[number]
                row = {"group_id": holders[holder], "role_id": role, "workspace_id": scope}
                await connection.execute(insert(role_assignments).values(row))

        self.persons.world.in_database(work)
        return Reader(self.persons.clients[NAME])

    def check(self, memberships: set[int], assignments: list[tuple[Any, int, int | None]]) -> None:
        reader = self.reader(memberships, assignments)
        for row, address in self.rows:
            shown = reader.whole(row, address)
            alone = {each for each in shown if each is not None}
            hidden = {each for each in alone if not reader.may_have(each)}
            assert not hidden, f"{row.call} shows what cannot be had"
            if row.complete:
                missing = {each for each in self.known[row.call, address] - alone if each and reader.may_have(each)}
                assert not missing, f"{row.call} does not show what can be had"
        counts = reader.ask("GET", "/api/v1/tasks/count").json()
        for kind, count in counts.items():
            listed = reader.ask("GET", f"/api/v1/{kind}").json()[kind]
            assert count == sum(each["state"] == "STATE_RUNNING" for each in listed), kind


@pytest.fixture(scope="module")
def lists(world: World) -> Iterator[Lists]:
    world.publish(two_nodes())
    with ExitStack() as stack, api_with(world, "rbac") as api:
        yield Lists(Persons(world, api, stack))


@pytest.mark.parametrize("row", LISTS, ids=lambda row: row.call)
def test_administrators_are_shown_something(lists: Lists, row: RightsList) -> None:
    assert any(known for (call, _), known in lists.known.items() if call == row.call)


@settings(max_examples=4, **ONCE)
@example(memberships=set(), assignments=[])
@example(memberships=set(), assignments=[(ITSELF, VIEWER, 0)])
@example(memberships={1}, assignments=[(1, 5, 1), (0, 2, 2), (ITSELF, 6, 0)])
@given(memberships=MEMBERSHIPS, assignments=ASSIGNMENTS)
def test_lists_show_what_can_be_had_alone(
    lists: Lists, memberships: set[int], assignments: list[tuple[Any, int, int | None]]
) -> None:
    lists.check(memberships, assignments)


@pytest.mark.slow
@settings(max_examples=40, **ONCE)
@given(memberships=MEMBERSHIPS, assignments=ASSIGNMENTS)
def test_lists_show_what_can_be_had_alone_whoever_looks(
    lists: Lists, memberships: set[int], assignments: list[tuple[Any, int, int | None]]
) -> None:
    lists.check(memberships, assignments)
