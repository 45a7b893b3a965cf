"""Loads: what a queue does under the work of real clusters."""
