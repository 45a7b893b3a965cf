"""Applies migrations in a process of its own: a service keeps none of the memory that they take.

``python -m libs.db.schema.apart REVISION`` with the URL of the database on standard input, where nobody else reads it.
"""

from __future__ import annotations

import asyncio
import os
import sys
from typing import Final

from libs.errors import ResoluteError

MODULE: Final = "libs.db.schema.apart"


class MigrationFailed(ResoluteError):
    """A migration did not go through; the process that applied it has said why."""


async def apply_apart(url: str, to: str) -> None:
    """``applying.apply_migrations``; what the process says goes where our own errors go.

    Raises ConnectionError when the database was lost meanwhile, and MigrationFailed. The process ends with whoever
    cancels this, and its transaction with it.
    """
    child = await asyncio.create_subprocess_exec(sys.executable, "-m", MODULE, to, stdin=asyncio.subprocess.PIPE)
    try:
        await child.communicate(url.encode())
    finally:
        if child.returncode is None:
            child.kill()
            await child.wait()
    if child.returncode == os.EX_TEMPFAIL:
        raise ConnectionError("the database was lost while it was brought to its schema")
    if child.returncode != 0:
        raise MigrationFailed(f"the database could not be brought to the schema {to}: see the lines before")


def main() -> int:
    # Imported here: whoever starts the process does without what it loads.
    from libs.db.failures import is_connection_failure  # noqa: PLC0415
    from libs.db.schema.applying import apply_migrations  # noqa: PLC0415

    try:
        asyncio.run(apply_migrations(sys.stdin.read(), sys.argv[1]))
    except Exception as error:
        if not is_connection_failure(error):
            raise
        sys.stderr.write(f"the database was lost: {error}\n")
        return os.EX_TEMPFAIL
    return 0


if __name__ == "__main__":
    sys.exit(main())
