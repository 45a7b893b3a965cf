"""Hosts of storage that was stored before the addresses of users' storage were checked."""

import re
from urllib.parse import urlsplit

import sqlalchemy as sa
from alembic import op

revision = "0005"
down_revision = "0004"

SECTIONS = """
    SELECT config AS section FROM storage_backends
    UNION ALL SELECT config -> 'checkpoint_storage' FROM experiments
    UNION ALL SELECT checkpoint_storage FROM workspaces
    UNION ALL SELECT config -> 'checkpoint_storage' FROM templates
    UNION ALL SELECT invariant_config -> 'checkpoint_storage' FROM config_policies
"""
FIELDS = ("endpoint_url", "account_url", "connection_string")


def upgrade() -> None:
    op.create_table(
        "storage_hosts",
        sa.Column("host", sa.Text(), nullable=False),
        sa.Column("port", sa.Integer(), nullable=False),
        sa.PrimaryKeyConstraint("host", "port", name=op.f("pk_storage_hosts")),
    )
    connection = op.get_bind()
    values = ", ".join(f"section ->> '{field}' AS {field}" for field in FIELDS)
    query = f"SELECT DISTINCT {values} FROM ({SECTIONS}) AS sections"  # noqa: S608
    named = {(field, value) for row in connection.execute(sa.text(query)) for field, value in row._mapping.items()}
    found = {host for field, value in named if value and (host := _host(field, value)) is not None}
    if found:
        table = sa.table("storage_hosts", sa.column("host"), sa.column("port"))
        connection.execute(sa.insert(table), [{"host": host, "port": port} for host, port in sorted(found)])


def _host(field: str, value: str) -> tuple[str, int] | None:
    url = _blob_endpoint(value) if field == "connection_string" else value
    try:
        parts = urlsplit(url.strip())
        port = parts.port or {"http": 80, "https": 443}[parts.scheme]
    except (ValueError, KeyError):
        return None
    host = (parts.hostname or "").removesuffix(".")
    return (host, port) if re.fullmatch(r"[a-z0-9._:-]+", host) else None


def _blob_endpoint(connection_string: str) -> str:
    pairs = dict(part.strip().split("=", 1) for part in connection_string.split(";") if "=" in part)
    fields = {name.lower(): value for name, value in pairs.items()}
    if fields.get("usedevelopmentstorage", "").lower() == "true":
        return "http://127.0.0.1:10000"
    suffix = fields.get("endpointsuffix") or "core.windows.net"
    made = f"{fields.get('defaultendpointsprotocol', 'https')}://{fields.get('accountname', '')}.blob.{suffix}"
    return fields.get("blobendpoint") or made
