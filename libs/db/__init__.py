"""PostgreSQL: tables by noun, transactions, the outbox, migrations."""

from libs.imports.partial import import_partly

# Its sessions bring the object-relational mapper along, a third of what SQLAlchemy takes; statements here are Core.
import_partly("sqlalchemy.ext.asyncio", {"engine": ("AsyncConnection", "AsyncEngine", "create_async_engine")})
