"""Uploads of users for their tasks: packed once, kept as they are, listed on request. Pure."""
