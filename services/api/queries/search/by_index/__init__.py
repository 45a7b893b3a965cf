"""Filters of searches that an index answers: what finds their rows, and how many there are."""
