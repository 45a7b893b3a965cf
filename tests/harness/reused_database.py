"""A database that is as migrations leave it for one test after another: emptying it costs a tenth of making a new one,
which is a copy of six hundred files."""

from __future__ import annotations

from typing import Final
from uuid import uuid4

import asyncpg

from libs.db.connecting.settings import asyncpg_url
from tests.harness import PostgresServer
from tests.harness.containers import ContainerPostgres
from tests.harness.loop_thread import LoopThread
from tests.harness.services_role import as_services

_REMEMBER: Final = """
CREATE SCHEMA as_migrated;
CREATE TABLE as_migrated."sequences of public" AS
    SELECT sequencename AS name, start_value, last_value FROM pg_sequences WHERE schemaname = 'public';
DO $$
DECLARE
    name text;
    filled boolean;
BEGIN
    FOR name IN SELECT tablename FROM pg_tables WHERE schemaname = 'public' LOOP
        EXECUTE format('SELECT EXISTS (SELECT FROM public.%I)', name) INTO filled;
        IF filled THEN
            EXECUTE format('CREATE TABLE as_migrated.%I AS TABLE public.%I', name, name);
        END IF;
    END LOOP;
END
$$
"""
"""Rows of tables that have some, and where numbers go on."""
_END_OTHERS: Final = """
SELECT pg_terminate_backend(pid, 10000) FROM pg_stat_activity
WHERE datname = current_database() AND pid <> pg_backend_pid()
"""
_EMPTY: Final = """
-- Neither triggers nor foreign keys, so that tables may come in any order.
SET session_replication_role = replica;
DO $$
DECLARE
    name text;
BEGIN
    FOR name IN SELECT tablename FROM pg_tables WHERE schemaname = 'public' LOOP
        EXECUTE format('DELETE FROM public.%I', name);
    END LOOP;
    FOR name IN SELECT tablename FROM pg_tables WHERE schemaname = 'as_migrated' AND tablename NOT LIKE '% %' LOOP
        EXECUTE format('INSERT INTO public.%I OVERRIDING SYSTEM VALUE SELECT * FROM as_migrated.%I', name, name);
    END LOOP;
END
$$;
SELECT setval(format('public.%I', name), coalesce(last_value, start_value), last_value IS NOT NULL)
FROM as_migrated."sequences of public"
"""


class ReusedDatabase:
    """For tests that change rows and no tables."""

    def __init__(self, server: PostgresServer | ContainerPostgres, template: str) -> None:
        self._server = server
        self.name = f"reused_{uuid4().hex[:12]}"
        server.execute(f"CREATE DATABASE {self.name} TEMPLATE {template}")
        server.execute(_REMEMBER, database=self.name)

    @property
    def url(self) -> str:
        return as_services(self._server.url(self.name))

    def empty(self) -> None:
        """End all connections to it, as when it is dropped, and put it back to what migrations left."""
        with LoopThread() as loop:  # tests have an event loop of their own
            loop.run(_empty(asyncpg_url(self._server.url(self.name))))

    def drop(self) -> None:
        self._server.execute(f"DROP DATABASE {self.name} WITH (FORCE)")


async def _empty(url: str) -> None:
    # Not with psql: to fork a process of tests, and to start a program, takes ten times as long.
    connection = await asyncpg.connect(url)
    try:
        await connection.execute(_END_OTHERS)
        await connection.execute(_EMPTY)
    finally:
        await connection.close()
