"""The database of an old installation: its tables, from the reference, and rows of every kind."""
