"""The role of the services: made, given what is there, and left alone when all of it is so."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Iterator
from contextlib import asynccontextmanager, contextmanager
from pathlib import Path
from typing import Any
from uuid import uuid4

import asyncpg
import pytest
from msgspec import structs

from deploy.local.servers.postgres import TEST_SETTINGS
from libs.db.connecting.settings import asyncpg_url
from libs.db.migrate import upgrade
from libs.db.schema.found import schema_of
from libs.db.services_role import handover
from libs.db.services_role.role import ServicesRole, provide_role
from libs.errors import FailedPrecondition
from tests.harness import PostgresServer, eventually

OWNERS = """
SELECT DISTINCT pg_get_userbyid(owner) FROM (
    SELECT relowner FROM pg_class WHERE relnamespace = 'public'::regnamespace
    UNION SELECT proowner FROM pg_proc WHERE pronamespace = 'public'::regnamespace
    UNION SELECT typowner FROM pg_type WHERE typnamespace = 'public'::regnamespace
    UNION SELECT nspowner FROM pg_namespace WHERE nspname = 'public'
) AS object (owner)
"""
WRITES = """
BEGIN;
INSERT INTO outbox (subject, payload) VALUES ('subject', '');
INSERT INTO workspaces (name, owner_id) VALUES ('for a moment', 1);
INSERT INTO projects (workspace_id, name, key, owner_id)
    SELECT id, 'for a moment', 'MOMENT', 1 FROM workspaces WHERE name = 'for a moment';
INSERT INTO workspace_pins (workspace_id, user_id) SELECT id, 1 FROM workspaces WHERE name = 'for a moment';
COMMIT;
BEGIN;
DELETE FROM projects WHERE name = 'for a moment';
DELETE FROM workspaces WHERE name = 'for a moment';
COMMIT
"""
"""With triggers, numbers from sequences, and rows that go with others."""


@pytest.fixture(scope="module")
def guarded_server(server_directory: Path) -> Iterator[PostgresServer]:
    """A server that asks for passwords."""
    directory = server_directory / f"pg-{uuid4().hex[:8]}"
    server = PostgresServer(directory, password="root's", settings=TEST_SETTINGS, dies_with_parent=True)
    try:
        server.start()
        asyncio.run(upgrade(server.url()))
        yield server
    finally:
        server.stop()


@contextmanager
def database(server: PostgresServer, template: str) -> Iterator[str]:
    name = f"d_{uuid4().hex[:12]}"
    server.execute(f"CREATE DATABASE {name} TEMPLATE {template}")
    yield asyncpg_url(server.url(name))
    server.execute(f"DROP DATABASE {name} WITH (FORCE)")


@pytest.fixture
def new(guarded_server: PostgresServer) -> Iterator[str]:
    """A database without any table, as its superuser."""
    with database(guarded_server, "template1") as url:
        yield url


@pytest.fixture
def administrator(guarded_server: PostgresServer) -> Iterator[str]:
    """A database with all tables, as the superuser who owns them."""
    with database(guarded_server, "resolute") as url:
        yield url


@pytest.fixture
def role() -> ServicesRole:
    return ServicesRole(user=f"services-{uuid4().hex[:8]}", password="it's a/secret?")


@asynccontextmanager
async def connected(url: str) -> AsyncIterator[Any]:
    connection = await asyncpg.connect(url)
    try:
        yield connection
    finally:
        await connection.close()


async def owners(url: str) -> set[str]:
    async with connected(url) as connection:
        return {name for (name,) in await connection.fetch(OWNERS)}


async def versions(url: str) -> list[Any]:
    """Changes with everything that is written about roles and objects."""
    async with connected(url) as connection:
        return list(
            await connection.fetch(
                "SELECT xmin::text FROM pg_authid UNION ALL SELECT xmin::text FROM pg_auth_members UNION ALL"
                " SELECT xmin::text FROM pg_class UNION ALL SELECT xmin::text FROM pg_default_acl UNION ALL"
                " SELECT xmin::text FROM pg_namespace UNION ALL SELECT xmin::text FROM pg_db_role_setting"
            )
        )


async def test_existing_tables_are_handed_over_and_a_repetition_writes_nothing(
    administrator: str, role: ServicesRole
) -> None:
    async with connected(administrator) as superuser:
        await superuser.execute("CREATE TYPE colour AS ENUM ('red'); CREATE DOMAIN short AS text; ")
        url = await provide_role(administrator, role)
        assert await owners(administrator) == {role.user}
        before = await versions(administrator)
        assert await provide_role(administrator, role) == url
        assert await versions(administrator) == before
        # The release before goes on as the superuser, beside and after going back.
        await superuser.execute("CREATE TABLE of_before (id bigint GENERATED ALWAYS AS IDENTITY, n serial)")
        async with connected(url) as services:
            await services.execute("INSERT INTO of_before DEFAULT VALUES")
            rights = await services.fetchrow("SELECT * FROM pg_roles WHERE rolname = current_user")
            assert not any(rights[f"rol{right}"] for right in ("super", "createdb", "createrole", "replication"))
            await services.execute("DROP TABLE of_before; CREATE TABLE of_now ()")
            with pytest.raises(asyncpg.InsufficientPrivilegeError):
                await services.execute("COPY of_now TO PROGRAM 'cat'")
        await superuser.execute("DROP TABLE of_now")


async def test_a_new_database_belongs_to_the_role_from_its_first_table_on(new: str, role: ServicesRole) -> None:
    url = await provide_role(new, role)
    await upgrade(url)
    assert await owners(new) == {role.user}
    assert not (await schema_of(url)).is_outdated


async def test_several_at_once(administrator: str, role: ServicesRole) -> None:
    urls = await asyncio.gather(*(provide_role(administrator, role) for _ in range(4)))
    assert len(set(urls)) == 1
    assert await owners(administrator) == {role.user}


async def test_a_table_in_use_is_handed_over_when_it_is_free_and_holds_up_nobody_for_long(
    administrator: str, role: ServicesRole, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(handover, "WAITS_FOR_LOCK", "100ms")
    monkeypatch.setattr(handover, "_PAUSE_S", 0.1)
    async with connected(administrator) as reader, connected(administrator) as other:
        reading = reader.transaction()
        await reading.start()
        await reader.fetch("SELECT * FROM experiments")
        providing = asyncio.create_task(provide_role(administrator, role))
        await eventually(lambda: _owns_something(administrator, role), what="some objects are handed over")
        async with asyncio.timeout(20):
            await other.fetch("SELECT * FROM experiments")
        assert not providing.done()
        await reading.rollback()
        await providing
    assert await owners(administrator) == {role.user}


async def _owns_something(url: str, role: ServicesRole) -> bool:
    return role.user in await owners(url)


class Killed(Exception):
    """Stands for ``kill -9``: what was executed has committed, and the connection is gone."""


def kill_after(steps: int, monkeypatch: pytest.MonkeyPatch) -> None:
    left = [steps]
    execute = asyncpg.Connection.execute

    async def counting(self: Any, *arguments: Any, **options: Any) -> Any:
        if not left[0]:
            self.terminate()
            raise Killed
        left[0] -= 1
        return await execute(self, *arguments, **options)

    monkeypatch.setattr(asyncpg.Connection, "execute", counting)


async def test_killed_between_any_two_steps_the_next_one_goes_on_and_nobody_logs_in_before_the_end(
    administrator: str, role: ServicesRole, monkeypatch: pytest.MonkeyPatch
) -> None:
    url = role.address(administrator)
    assert url is not None
    killed = 0
    async with connected(administrator) as service_of_before:
        while True:
            with monkeypatch.context() as patched:
                kill_after(killed, patched)
                try:
                    await provide_role(administrator, role)
                    break
                except (Killed, asyncpg.InterfaceError):  # the latter from the end of a transaction
                    killed += 1
            with pytest.raises(asyncpg.InvalidAuthorizationSpecificationError):
                await asyncpg.connect(url)
            await service_of_before.execute(WRITES)
    assert killed > 8
    assert await owners(administrator) == {role.user}
    async with connected(url) as services:
        await services.execute(WRITES)


async def test_an_administrator_who_is_no_superuser_goes_on_with_the_rights_that_it_had(
    new: str, role: ServicesRole
) -> None:
    """As the first user of a database that somebody else runs."""
    other = await _owner_of_database(new, "CREATEROLE")
    await upgrade(other)
    url = await provide_role(other, role)
    assert await owners(new) == {role.user}
    async with connected(other) as release_before, connected(url) as services:
        await release_before.execute(WRITES + "; CREATE TABLE of_before (id bigint); DROP TABLE outbox")
        await services.execute("DROP TABLE of_before")
    assert await provide_role(other, role) == url


async def test_who_may_not_make_roles_is_told_and_goes_on_without_one(new: str, role: ServicesRole) -> None:
    other = await _owner_of_database(new, "NOCREATEROLE")
    await upgrade(other)
    with pytest.raises(FailedPrecondition, match=f"the role {role.user} cannot be made.*permission denied"):
        await provide_role(other, role)
    async with connected(other) as services:
        await services.execute(WRITES)


async def test_a_new_password_counts_and_that_of_another_installation_is_left_alone(
    guarded_server: PostgresServer, administrator: str, role: ServicesRole
) -> None:
    await provide_role(administrator, role)
    changed = structs.replace(role, password="another")
    async with connected(await provide_role(administrator, changed)):
        pass
    with (
        database(guarded_server, "template1") as second,
        pytest.raises(FailedPrecondition, match="another installation uses it"),
    ):
        await provide_role(second, structs.replace(role, password="its own"))
    async with connected(await provide_role(administrator, changed)):
        pass


@pytest.mark.parametrize("right", ["SUPERUSER", "CREATEROLE", "CREATEDB"])
async def test_a_role_that_may_more_is_refused(administrator: str, role: ServicesRole, right: str) -> None:
    async with connected(administrator) as superuser:
        await superuser.execute(f'CREATE ROLE "{role.user}" {right}')
        with pytest.raises(FailedPrecondition, match="give that of the services another name"):
            await provide_role(administrator, role)
        await superuser.execute(f'DROP ROLE "{role.user}"')


async def test_the_administrator_itself_is_refused(administrator: str) -> None:
    with pytest.raises(FailedPrecondition, match="which is that of the administrator"):
        await provide_role(administrator, ServicesRole(user="resolute", password="x"))


async def test_tables_in_a_schema_of_another_name_are_found_by_the_role(new: str, role: ServicesRole) -> None:
    async with connected(new) as superuser:
        await superuser.execute("CREATE SCHEMA resolute")  # which "$user" of the search path finds
    await upgrade(new)
    url = await provide_role(new, role)
    assert (await schema_of(url)).found == (await schema_of(new)).found is not None
    async with connected(url) as services:
        await services.execute(WRITES)


async def _owner_of_database(administrator: str, right: str) -> str:
    """URL for a role that owns the database, and has the right to make others or has it not."""
    name = f"owner_{uuid4().hex[:8]}"
    async with connected(administrator) as superuser:
        await superuser.execute(f"CREATE ROLE {name} LOGIN PASSWORD 'x' {right}")
        database = await superuser.fetchval("SELECT current_database()")
        await superuser.execute(f"ALTER DATABASE {database} OWNER TO {name}")
    return f"postgresql://{name}:x@{administrator.rpartition('@')[2]}"
