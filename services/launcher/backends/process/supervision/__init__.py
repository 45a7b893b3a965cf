"""Runs the supervisor of each allocation: it starts pods, watches them and outlives the launcher."""
