"""The schema of a database: which it has, and how migrations are applied."""
