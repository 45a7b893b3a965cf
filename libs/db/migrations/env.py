"""Alembic's entry point: runs on the connection that ``libs.db.migrate`` hands over."""

from alembic import context

from libs.db.tables import metadata

connection = context.config.attributes["connection"]
# A migration lets go of what it has locked before the next one locks anything: services use the tables meanwhile.
context.configure(
    connection=connection, target_metadata=metadata, transactional_ddl=True, transaction_per_migration=True
)
with context.begin_transaction():
    context.run_migrations()
