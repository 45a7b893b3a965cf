"""The key by which the database orders names is the one of ``libs.natural_order.keys``."""

from __future__ import annotations

import json
from collections.abc import AsyncIterator

import asyncpg
import pytest
from hypothesis import given
from hypothesis import strategies as st

from libs.db.connecting.settings import asyncpg_url
from libs.natural_order.keys import natural_sort_key
from tests.harness.loop_thread import LoopThread

letters = st.characters(exclude_characters="\x00", exclude_categories=["Cs"])
names = st.text(letters | st.sampled_from("aAzZ059 -_ÄäßẞİıΣσςЯ٣³Ⱥ"), max_size=40)


@pytest.fixture
async def connection(database_url: str) -> AsyncIterator[asyncpg.Connection]:
    connection = await asyncpg.connect(asyncpg_url(database_url))
    yield connection
    await connection.close()


@given(st.lists(names | names.map(lambda name: 10 * name) | st.from_regex("[0-9]{1,60}", fullmatch=True), min_size=1))
def test_database_and_services_have_the_same_keys(database_url: str, given_names: list[str]) -> None:
    source = "FROM unnest($1::text[]) WITH ORDINALITY AS given (name, place)"
    keys = f"SELECT array_agg(natural_sort_key(name) ORDER BY place) {source}"
    order = f'SELECT array_agg(name ORDER BY natural_sort_key(name COLLATE "C")) {source}'

    async def ask() -> tuple[list[str], list[str]]:
        connection = await asyncpg.connect(asyncpg_url(database_url))
        try:
            return await connection.fetchval(keys, given_names), await connection.fetchval(order, given_names)
        finally:
            await connection.close()

    with LoopThread() as loop:
        found, ordered = loop.run(ask())
    assert found == [natural_sort_key(name) for name in given_names]
    assert [name[:256] for name in ordered] == [name[:256] for name in sorted(given_names, key=natural_sort_key)]


async def test_keys_do_not_depend_on_the_collation(connection: asyncpg.Connection) -> None:
    names = ["Äpfel 10", "äpfel 9", "İstanbul", "ISTANBUL", "ΣΑΣ", "co-op", "coop"]
    collations = await connection.fetch(
        "SELECT collname FROM pg_collation"
        " WHERE collencoding IN (-1, pg_char_to_encoding('UTF8')) AND collisdeterministic"
    )
    assert len(collations) > 1
    for (collation,) in collations:
        for name in names:
            key = await connection.fetchval(f'SELECT natural_sort_key($1 COLLATE "{collation}")', name)
            assert key == natural_sort_key(name), (name, collation)


async def test_every_letter_has_the_same_key(connection: asyncpg.Connection) -> None:
    letters = [chr(code) for code in range(1, 0x3000)]
    names = [*letters, "".join(letters[0x40:0x130]), "ÀĀΑАꙀḀ԰Ա"]
    query = (
        "SELECT natural_sort_key(name) FROM unnest($1::text[]) WITH ORDINALITY AS given (name, place) ORDER BY place"
    )
    assert [key for (key,) in await connection.fetch(query, names)] == [natural_sort_key(name) for name in names]


async def test_names_of_any_length_are_stored(connection: asyncpg.Connection) -> None:
    insert = (
        "INSERT INTO experiments (state, config, original_config, owner_id, project_id, job_id, start_time)"
        " VALUES ('COMPLETED', $1, '', 2, 1, $2, now())"
    )
    transaction = connection.transaction()
    await transaction.start()
    rare = "".join(chr(0x10000 + 37 * n) for n in range(5000))
    for number, name in enumerate((rare, "9a" * 5000, "7" * 100_000, "Ⱥ" * 5000, None, 7, ["x"])):
        await connection.execute(insert, json.dumps({"name": name}), f"odd {number}")
    await connection.execute(insert, "[]", "no name at all")
    await transaction.rollback()


async def test_no_key_starts_a_query_of_its_own(connection: asyncpg.Connection) -> None:
    """As a function in SQL does for each row, unless it is so simple that it is inlined."""
    query = (
        "SELECT lanname FROM pg_proc JOIN pg_language ON pg_language.oid = prolang WHERE proname = 'natural_sort_key'"
    )
    assert await connection.fetchval(query) == "plpgsql"
