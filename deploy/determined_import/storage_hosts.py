"""Hosts of storage that an import brings along: their checkpoints can be read here, whatever their addresses are."""

from __future__ import annotations

import json
from typing import Any, Final

from deploy.determined_import.kinds.compared import key, row_hash
from deploy.determined_import.kinds.copied import CopiedTable
from deploy.determined_import.kinds.experiments import EXPERIMENTS
from deploy.determined_import.kinds.reports import STORAGES
from deploy.determined_import.kinds.workspaces import POLICIES, TEMPLATES, WORKSPACES
from libs.checkpoint_storage.endpoints import named_endpoint
from libs.outbound.destinations import Authority, authority_of

_SECTIONS: Final[tuple[tuple[CopiedTable, str], ...]] = (
    (STORAGES, "t.config"),
    (EXPERIMENTS, "t.config -> 'checkpoint_storage'"),
    (WORKSPACES, "t.checkpoint_storage"),
    (TEMPLATES, "t.config -> 'checkpoint_storage'"),
    (POLICIES, "t.invariant_config -> 'checkpoint_storage'"),
)


async def remember_storage_hosts(connection: Any) -> None:
    """Let the api connect to the storage that imported rows name; not to what was written over them here."""
    found: set[Authority] = set()
    for table, section in _SECTIONS:
        query = (
            f"SELECT DISTINCT ({section})::text FROM {table.target.name} t"  # noqa: S608
            f" JOIN import_rows r ON r.kind = '{table.kind}' AND r.key = {key(table, 't')}"
            f" WHERE jsonb_typeof({section}) = 'object' AND r.target_hash = {row_hash(table, 't')}"
        )
        for (text,) in await connection.fetch(query):
            url = named_endpoint(json.loads(text))
            if url is not None and (host := authority_of(url)) is not None:
                found.add(host)
    insert = "INSERT INTO storage_hosts (host, port) VALUES ($1, $2) ON CONFLICT DO NOTHING"
    await connection.executemany(insert, sorted(found))
