"""The role that services connect to the database as: it owns the schema of this installation, and is no superuser."""
