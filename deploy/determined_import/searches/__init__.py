"""Searches that had not ended: told again what has happened, so that they go on here where they were."""
