"""Bindings of workspaces to namespaces of a cluster, and the namespaces that were made for workspaces.

Written by the api; the scheduler deletes what was made for workspaces that are gone.
"""

from __future__ import annotations

from sqlalchemy import BigInteger, Boolean, Column, ForeignKey, Integer, Table, Text

from libs.db.tables.metadata import metadata, moment

# What is not here runs in the namespace of its pool.
workspace_namespace_bindings = Table(
    "workspace_namespace_bindings",
    metadata,
    Column("workspace_id", BigInteger, ForeignKey("workspaces.id", ondelete="CASCADE"), primary_key=True),
    Column("cluster_name", Text, primary_key=True),
    Column("namespace", Text, nullable=False),
    # The namespace is the one that was made for the workspace.
    Column("auto_created", Boolean, nullable=False),
)

# Every namespace that was made, or that somebody is about to make: a row is there before its namespace and goes after
# it, so that none is forgotten whoever dies in between. The rows of a workspace that is gone ask for deletion.
auto_created_namespaces = Table(
    "auto_created_namespaces",
    metadata,
    Column("cluster_name", Text, primary_key=True),
    Column("namespace", Text, primary_key=True),
    # No reference: it outlives the workspace, and is there before it.
    Column("workspace_id", BigInteger, nullable=False, index=True),
    # Until then a request is at work with it, and nobody deletes it. NULL when none is.
    moment("claimed_until"),
    # Slots that were last asked for as its limit. Counts for planners where no launcher says how it is: one that has
    # nothing in a namespace does not look there.
    Column("quota_slots", Integer),
)
