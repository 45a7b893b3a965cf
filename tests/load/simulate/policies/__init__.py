"""Policies: the planner of a pool, and what it is compared with."""
