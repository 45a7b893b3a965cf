"""Where the database is and how to log in. Imports no driver: whoever only reads settings does without one."""

from __future__ import annotations

from typing import Annotated, Final
from urllib.parse import quote

from msgspec import Meta, Struct

from libs.secret_files import read_secret

APPLICATION: Final = "resolute-2"
"""Name of the connections of services, by which they know each other's release."""
FORMER_APPLICATION: Final = "resolute"
"""That of services which know summaries of metrics as a column of their trial only (migration 0009)."""
IMPORT_APPLICATION: Final = "resolute import"
"""That of an import from another installation."""


class DatabaseSettings(Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    url: str = "postgresql://postgres@127.0.0.1:5432/resolute"
    """``postgresql://user:password@host:port/name``; ``?sslmode=verify-full&sslrootcert=FILE`` and the like encrypt."""
    password: str | None = None
    """In place of one in ``url``."""
    password_file: str | None = None
    """File with the password, read for each new connection, so that a new password needs no restart; wins."""
    pool_size: Annotated[int, Meta(ge=1)] = 10
    """Connections that one process keeps open at most."""
    connect_timeout_s: Annotated[float, Meta(gt=0)] = 60.0
    """How long a starting service waits for the database before it gives up."""
    migrate: bool = True
    """Whether services bring the schema up to date when they start. Otherwise they wait until ``resolute db upgrade``
    has."""


def asyncpg_url(url: str) -> str:
    """The same database, named the way asyncpg wants it."""
    _, separator, rest = url.partition("://")
    if not separator:
        raise ValueError(f"database url {url!r} must look like postgresql://user@host:port/name")
    return f"postgresql://{rest}"


def address(settings: DatabaseSettings) -> str:
    """Where the database is and how to log in at this moment, the way asyncpg wants it. Raises OSError."""
    url = asyncpg_url(settings.url)
    password = settings.password if settings.password_file is None else read_secret(settings.password_file)
    if password is None:
        return url
    place, slash, rest = url.removeprefix("postgresql://").partition("/")
    login, _, hosts = place.rpartition("@")
    return f"postgresql://{login.partition(':')[0]}:{quote(password, safe='')}@{hosts}{slash}{rest}"


class DatabaseAddress:
    """The address for whoever makes connections of his own and has no pool."""

    def __init__(self, settings: DatabaseSettings) -> None:
        self._settings = settings

    @property
    def url(self) -> str:
        """As it is at this moment; a password may change meanwhile. Raises OSError."""
        return address(self._settings)
