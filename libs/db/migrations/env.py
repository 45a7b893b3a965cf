"""Alembic's entry point: runs on the connection that ``libs.db.migrate`` hands over."""

from alembic import context

from libs.db.tables import metadata

connection = context.config.attributes["connection"]
context.configure(connection=connection, target_metadata=metadata, transactional_ddl=True)
with context.begin_transaction():
    context.run_migrations()
