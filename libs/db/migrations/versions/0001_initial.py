"""The first schema, with its built-in users, workspace and project."""

from alembic import op

from libs.db.tables import logs, metadata, metrics

revision = "0001"
down_revision = None

SEED = """
INSERT INTO cluster (id, cluster_id) VALUES (1, gen_random_uuid()::text);
INSERT INTO users (username, admin) VALUES ('admin', true), ('determined', false);
INSERT INTO workspaces (name, owner_id, immutable) VALUES ('Uncategorized', 1, true);
INSERT INTO projects (workspace_id, name, key, owner_id, immutable) VALUES (1, 'Uncategorized', 'UNCAT', 1, true);
"""

# Whoever relays the outbox hears of a commit at once.
NOTIFY = """
CREATE FUNCTION notify_outbox() RETURNS trigger LANGUAGE plpgsql AS
$$ BEGIN PERFORM pg_notify('outbox', ''); RETURN NULL; END $$;
CREATE TRIGGER outbox_news AFTER INSERT ON outbox FOR EACH STATEMENT EXECUTE FUNCTION notify_outbox();
"""


def upgrade() -> None:
    metadata.create_all(op.get_bind())
    for statement in (*metrics.partition_ddl(), *logs.partition_ddl()):
        op.execute(statement)
    for script in (SEED, NOTIFY):
        for statement in _statements(script):
            op.execute(statement)


def _statements(script: str) -> list[str]:
    return [part.strip() for part in script.split(";\n") if part.strip()]
