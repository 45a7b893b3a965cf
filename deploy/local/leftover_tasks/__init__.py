"""Finds and ends tasks that still run when the system is stopped."""
