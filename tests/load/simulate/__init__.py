"""Simulator of a pool's queue in virtual time: the planner, and other schedulers, on traces of real clusters."""
