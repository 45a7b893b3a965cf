"""Searches of runs: which there are, how many, and what is shown of each (docs/reference/platform.md 9)."""
