"""Life of an experiment: its search, its trials, their attempts, and its end."""
