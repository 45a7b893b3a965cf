"""Templates: configurations that others start from. Written by the api."""

from __future__ import annotations

from sqlalchemy import BigInteger, Column, ForeignKey, Table, Text, text

from libs.db.tables.metadata import document, metadata

templates = Table(
    "templates",
    metadata,
    Column("name", Text, primary_key=True),
    document("config", default="{}"),
    # Goes with its workspace.
    Column(
        "workspace_id",
        BigInteger,
        ForeignKey("workspaces.id", ondelete="CASCADE"),
        nullable=False,
        index=True,
        server_default=text("1"),
    ),
)
