"""Isolates a pod: its own view of the file system, its namespaces and what it may do; only the standard library."""
