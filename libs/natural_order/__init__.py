"""The order of names: by services, and by the database."""
