"""Experiments and trials that run elsewhere, and only report (docs/reference/experiments.md 12)."""
