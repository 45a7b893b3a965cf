"""The one ``MetaData`` that all tables belong to, and column shapes that recur."""

from __future__ import annotations

from typing import Any

from sqlalchemy import BigInteger, Column, DateTime, Identity, MetaData, text
from sqlalchemy.dialects.postgresql import JSONB

metadata = MetaData(
    naming_convention={
        "ix": "ix_%(table_name)s_%(column_0_N_name)s",
        "uq": "uq_%(table_name)s_%(column_0_N_name)s",
        "fk": "fk_%(table_name)s_%(column_0_N_name)s",
        "pk": "pk_%(table_name)s",
    }
)


def serial_id(name: str = "id", *, start: int = 1) -> Column[int]:
    return Column(name, BigInteger, Identity(start=start), primary_key=True)


def moment(name: str, *, nullable: bool = True, default_now: bool = False) -> Column[Any]:
    """A point in time, kept with its time zone."""
    return Column(
        name,
        DateTime(timezone=True),
        nullable=nullable and not default_now,
        server_default=text("now()") if default_now else None,
    )


def change_number(*, indexed: bool = True) -> Column[int]:
    """Number of the last change that subscribers to updates are told of, in the order of commits; written by a trigger
    of the first migration."""
    return Column("seq", BigInteger, nullable=False, server_default="0", index=indexed)


def document(name: str, *, nullable: bool = True, default: str | None = None) -> Column[Any]:
    """A JSON document. SQL NULL, never JSON null, stands for absence."""
    return Column(
        name,
        JSONB(none_as_null=True),
        nullable=nullable and default is None,
        server_default=text(f"'{default}'::jsonb") if default is not None else None,
    )
