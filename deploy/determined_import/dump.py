"""A dump of the old database, restored to where an import can read it: by PostgreSQL's own programs."""

from __future__ import annotations

import asyncio
import os
import shutil
from pathlib import Path
from typing import Final
from urllib.parse import unquote, urlsplit

import asyncpg

from deploy.determined_import.connecting import CONNECT_TIMEOUT_S
from deploy.determined_import.refusal import ImportRefused
from libs.db.connecting.settings import asyncpg_url
from libs.db.failures import DRIVER_ERRORS

_CUSTOM_FORMAT: Final = b"PGDMP"


async def restore_dump(dump: Path, url: str) -> None:
    """Restore a dump, plain or in the custom format, into the empty database at ``url``: all of it or nothing.

    Does nothing where it was restored already, as by an import that was cut off later. Raises ImportRefused.
    """
    program, *arguments = restore_command(dump)
    if not await _is_empty(url):
        return
    path = shutil.which(program)
    if path is None:
        raise ImportRefused(
            f"{program} is not on the PATH: install the client programs of PostgreSQL (on Debian: apt-get install"
            f" postgresql-client), or restore {dump} elsewhere and name that database with --source"
        )
    address, password = without_password(asyncpg_url(url))
    restoring = await asyncio.create_subprocess_exec(
        path,
        *arguments,
        "-d",
        address,
        stdout=asyncio.subprocess.DEVNULL,
        stderr=asyncio.subprocess.PIPE,
        env={**os.environ, **({} if password is None else {"PGPASSWORD": password})},
    )
    _, said = await restoring.communicate()
    if restoring.returncode != 0:
        raise ImportRefused(f"{program} could not restore {dump}: {said.decode(errors='replace').strip()}")


def restore_command(dump: Path) -> list[str]:
    """Program and arguments that restore a dump. Raises ImportRefused.

    Owners and rights stay behind, since their users do not exist where it goes.
    """
    try:
        with dump.open("rb") as file:
            is_custom = file.read(len(_CUSTOM_FORMAT)) == _CUSTOM_FORMAT
    except OSError as error:
        raise ImportRefused(f"the dump cannot be read: {error}; one that is a directory is restored by hand") from error
    if is_custom:
        return ["pg_restore", "--no-owner", "--no-privileges", "--single-transaction", str(dump)]
    return ["psql", "-X", "-q", "-v", "ON_ERROR_STOP=1", "--single-transaction", "-f", str(dump)]


def without_password(url: str) -> tuple[str, str | None]:
    """The address for a command line, which everybody on the machine can read, and the password in it."""
    parts = urlsplit(url)
    if parts.password is None:
        return url, None
    user, _, host = parts.netloc.rpartition("@")
    return parts._replace(netloc=f"{user.partition(':')[0]}@{host}").geturl(), unquote(parts.password)


async def _is_empty(url: str) -> bool:
    try:
        connection = await asyncpg.connect(asyncpg_url(url), timeout=CONNECT_TIMEOUT_S)
    except (OSError, *DRIVER_ERRORS) as error:
        raise ImportRefused(f"the database for the dump does not answer: {error}") from error
    try:
        return bool(await connection.fetchval("SELECT to_regclass('experiments') IS NULL"))
    finally:
        await connection.close()
