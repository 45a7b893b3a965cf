"""Databases of their own on the server of the system, for benchmarks that fill one."""

from __future__ import annotations

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import Any
from uuid import uuid4

import asyncpg

from tests.bench.system import BenchSystem


@asynccontextmanager
async def empty_database(system: BenchSystem) -> AsyncIterator[str]:
    """A new, empty database beside that of the system."""
    name = f"bench_{uuid4().hex[:12]}"
    await _execute(system.database_url, f"CREATE DATABASE {name}")
    try:
        yield f"{system.database_url.rpartition('/')[0]}/{name}"
    finally:
        await _execute(system.database_url, f"DROP DATABASE {name} WITH (FORCE)")


async def _execute(url: str, statement: str) -> None:
    connection: Any = await asyncpg.connect(url)
    try:
        await connection.execute(statement)
    finally:
        await connection.close()
