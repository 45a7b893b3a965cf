"""PostgreSQL: tables by noun, transactions, the outbox, migrations."""
