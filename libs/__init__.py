"""Contracts and code that at least two services need, and nothing else."""
