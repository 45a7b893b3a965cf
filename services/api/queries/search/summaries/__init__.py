"""Summaries in lists of runs and of experiments, which show a part of each."""
