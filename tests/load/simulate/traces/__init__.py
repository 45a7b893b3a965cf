"""Traces: which jobs were submitted when, and what they held for how long."""
