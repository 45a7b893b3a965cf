"""Lists find experiments by a part of their name, as ILIKE does, whatever letters it is made of."""

from __future__ import annotations

from collections.abc import AsyncIterator
from typing import Final

import asyncpg
import pytest_asyncio

from libs.db.connecting.settings import DatabaseSettings, asyncpg_url
from libs.db.engine import Database, connect_database
from libs.ids import UserId
from services.api.access.principal import Principal
from services.api.access.rights.rights import UserRights
from services.api.queries.experiments.experiments import list_experiments
from services.api.wire.experiments.experiments import GetExperimentsQuery

_NAMES: Final = (
    "a ab abc xAbCx 100%-of-it 1000-of-it a_b_c Größe GRÖSSE ΟΔΟΣ-ΑΒΓ İstanbul 日本語の名前 té́ 😀😀😀 a\\b\\c"
)
NAMES: Final = _NAMES.split()
_WANTED: Final = "a B abc ABC 0%-o 100 _b_ a_b röß RÖS δος ΑΒΓ stan istan İst 本語の 本 té́ 😀😀😀 😀 \\b\\ nothing"
WANTED: Final = _WANTED.split()
_BY_BITMAP: Final = "SELECT set_config('enable_seqscan', 'off', false), set_config('enable_indexscan', 'off', false)"
READER: Final = UserRights(Principal(user_id=UserId(2), username="determined"))
_INSERT: Final = """
INSERT INTO experiments (state, config, original_config, owner_id, project_id, job_id, start_time)
SELECT 'COMPLETED', jsonb_build_object('name', name), '', 2, 1, 'named ' || name, now() FROM unnest($1::text[]) AS name
"""
_ILIKE: Final = """SELECT config ->> 'name' FROM experiments
WHERE config ->> 'name' ILIKE '%' || replace(replace($1, '_', '/_'), '%', '/%') || '%' ESCAPE '/' ORDER BY id"""


@pytest_asyncio.fixture
async def connection(database_url: str) -> AsyncIterator[asyncpg.Connection]:
    connection = await asyncpg.connect(asyncpg_url(database_url))
    await connection.execute("DELETE FROM experiments")
    await connection.execute(_INSERT, NAMES)
    await connection.execute(_WITHOUT_NAME)
    yield connection
    await connection.close()


_WITHOUT_NAME: Final = """
INSERT INTO experiments (state, config, original_config, owner_id, project_id, job_id, start_time)
VALUES ('COMPLETED', '{}', '', 2, 1, 'without a name', now())
"""


async def test_all_with_a_text_in_their_name_are_found(connection: asyncpg.Connection, database_url: str) -> None:
    async with connect_database(DatabaseSettings(url=database_url)) as db:
        for wanted in WANTED:
            expected = [name for (name,) in await connection.fetch(_ILIKE, wanted)]
            assert await _names(db, wanted) == (expected, len(expected)), wanted
            # The same by the index, which a table as small as this one is read without.
            assert await _names(db, wanted, _BY_BITMAP) == (
                expected,
                len(expected),
            ), wanted


async def test_there_is_something_to_be_found(connection: asyncpg.Connection) -> None:
    found = {wanted: await connection.fetch(_ILIKE, wanted) for wanted in WANTED}
    assert {wanted for wanted, rows in found.items() if not rows} <= {"nothing", "istan", "İst", "δος", "RÖS"}


async def test_long_names_have_the_same_trigrams_as_short_ones(connection: asyncpg.Connection) -> None:
    async def trigrams(name: str) -> set[str] | None:
        found = await connection.fetchval("SELECT name_trigrams($1)", name)
        return None if found is None else set(found)

    for name in (*NAMES, "Größe der 日本語 😀😀😀"):
        padded = await trigrams(f"{' ' * 1000}{name}{' ' * 1000}")
        assert padded == await trigrams(f"   {name}   "), name
        short = await trigrams(name)
        assert short is None or short <= (padded or set()), name
    # The square of its length would be a day.
    assert await trigrams("ab日" * 300_000) == {"ab日", "b日a", "日ab"}


async def _names(db: Database, wanted: str, setting: str = "SELECT 1") -> tuple[list[str], int]:
    async with db.read() as reading:
        await reading.exec_driver_sql(setting)
        found, pagination = await list_experiments(reading, GetExperimentsQuery(name=wanted), rights=READER)
        await reading.exec_driver_sql("RESET ALL")
    return [each.name for each in found], pagination.total
